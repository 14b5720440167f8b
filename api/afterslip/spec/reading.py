"""Reading the files of a spec, each once, and noting everything that is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

import numpy as np

from afterslip.errors import Problem, SpecError
from afterslip.frame import Frame
from afterslip.readers.correlation import read_matrix
from afterslip.readers.motion import read_motion
from afterslip.readers.observations import Observations, read_observations
from afterslip.readers.rows import Rows
from afterslip.schemas.campaign import Campaign
from afterslip.schemas.forward import Forward
from afterslip.schemas.observation import Dataset, Sigma
from afterslip.schemas.values import Duration
from afterslip.spec.coverage import places_outside
from afterslip.spec.data import duplicates
from afterslip.spec.files import Files
from afterslip.spec.references import refs
from afterslip.units import DAY, YEAR
from afterslip_common.geometry import Box

T = TypeVar("T")
_ANY_SIGMA = Sigma(horizontal=1.0, vertical=1.0, los=1.0)


def observations_of(
    dataset: Dataset, content: bytes, frame: Frame, label: str
) -> Observations:
    """Read the file of a data set as its spec says.

    Raises
    ------
    SpecError
        With the line of everything wrong.
    """
    full = dataset.covariance is not None and dataset.covariance.file is not None
    # the diagonal of a full matrix stands for every sigma
    sigma = _ANY_SIGMA if full else dataset.sigma
    if dataset.series is not None:
        return read_motion(content, frame, dataset.series, sigma, label)
    return read_observations(
        content, frame, sigma, float(dataset.epoch), label, dict(dataset.types or {})
    )


class FileReader:
    """Reads each file once and collects what is wrong."""

    def __init__(self, spec: Campaign | Forward | Dataset, files: Files) -> None:
        self.refs = refs(spec)
        self.files = files
        self.problems: list[Problem] = []
        self._content: dict[str, bytes | None] = {}

    def read(self, path: str, parse: Callable[[bytes, str], T]) -> T | None:
        """Return a parsed file; None, with the problems noted, where it is wrong."""
        ref = self.refs[path]
        label = path if ref.startswith("sha256:") else f"{path} ({ref})"
        try:
            return parse(self._bytes(path, ref), label)
        except SpecError as error:
            self.problems += error.problems
        return None

    def _bytes(self, path: str, ref: str) -> bytes:
        content = self._content.get(ref)
        if content is None:
            try:
                content = self.files.read(ref)
            except SpecError as error:
                found = (Problem(path, ref, p.message, p.hint) for p in error.problems)
                raise SpecError(found) from None
            self._content[ref] = content
        return content

    def observations(
        self, dataset: Dataset, path: str, frame: Frame, box: Box, end: Duration | None
    ) -> Rows | None:
        """Read a data set and note what is outside domain and curve."""
        prefix = f"{path}." if path else ""
        matrix = dataset.covariance.file if dataset.covariance else None
        found = self.read(
            f"{prefix}file",
            lambda content, label: observations_of(dataset, content, frame, label),
        )
        if found is None:
            return None
        first = np.unique(np.array(found.name), return_index=True)[1]
        places = sorted(int(row) for row in first)
        self.problems += places_outside(box, frame, "station", found, places)
        self.problems += _late(found, end)
        rows = found.rows(dataset.name)
        self.problems += duplicates(rows)
        return rows if matrix is None else self._correlated(rows, prefix)

    def _correlated(self, rows: Rows, prefix: str) -> Rows | None:
        """Return rows with the full covariance of a file; None where it is wrong."""
        matrix = self.read(
            f"{prefix}covariance.file",
            lambda c, label: read_matrix(c, len(rows), label),
        )
        if matrix is None:
            return None
        return replace(
            rows,
            sigma=np.sqrt(np.diag(matrix)),
            given=np.ones(len(rows), dtype=bool),
            blocks=((np.arange(len(rows)), matrix),),
        )

    def check(self) -> None:
        """Raise what was found, if anything."""
        if self.problems:
            raise SpecError(self.problems)


def _late(found: Observations, end: Duration | None) -> Iterator[Problem]:
    """Say which data come after the Green's functions end."""
    if end is None:
        return
    late = np.flatnonzero(found.time > float(end) * (1 + 1e-9))
    if not len(late):
        return
    # years of flow, or seconds of waves
    unit, size, key = ("yr", YEAR, "times.until")
    if end < DAY:
        unit, size, key = ("s", 1.0, "the end of the Green's functions")
    yield Problem(
        found.place(int(late[0])),
        f"{found.time[late[0]] / size:.6g} {unit}",
        f"is later than {key} ({float(end) / size:.6g} {unit})",
        f"{len(late)} lines are: make {key} later or remove them",
    )
