"""Scalar waves in a closed box: the client's half of a second physics.

u_tt = c² (u_xx + u_yy + u_zz) with walls that reflect, from a Gaussian at rest on each
patch of the fault. The ground moves by u in the vertical, per metre of slip.
"""

from collections.abc import Iterator
from types import MappingProxyType
from typing import Annotated, Literal

import numpy as np
import xarray as xr
from pydantic import Field

from afterslip.archive.layout import StoreLayout, grouped
from afterslip.errors import Problem, one_problem
from afterslip.physics.base import Work
from afterslip.schemas.base import Schema
from afterslip.schemas.campaign import Campaign
from afterslip.schemas.fault import Sources
from afterslip.schemas.values import Count, Duration, Within
from afterslip.units import COMPONENTS, YEAR


class Waves(Schema):
    """How to solve."""

    cells: Annotated[int, Count(8, 512)] = Field(description="cells along x")
    width: Annotated[float, Within("km", above=0, most=1000)] = Field(
        description="of the Gaussian, km"
    )
    duration: Duration = Field(description="end of the series, e.g. 20 s")
    sampling: Duration = Field(description="time between frames, e.g. 1 s")


class BoxCampaign(Campaign):
    """A box, sources in it, and how long waves are followed."""

    physics: Literal["boxwaves"]
    sources: Sources
    waves: Waves

    @property
    def end(self) -> Duration:
        return self.waves.duration

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        if self.sources.components != ["strike"]:
            given = self.sources.components
            yield Problem(
                "sources.components", given, "must be [strike]", "no dip here"
            )
        for name in ("datasets", "inversions"):
            if getattr(self, name):
                yield Problem(name, None, "are not for scalar waves", "remove them")


class Grid:
    """Cells of a box whose first along x are at x[0]; m."""

    def __init__(self, dims, origin, h):
        self.dims, self.origin, self.h = dims, origin, h

    @classmethod
    def of(cls, spec: BoxCampaign) -> "Grid":
        domain = spec.model.domain
        assert domain is not None
        x, y = (1e3 * np.asarray(axis) for axis in (domain.x, domain.y))
        h = (x[1] - x[0]) / spec.waves.cells
        lengths = (x[1] - x[0], y[1] - y[0], 1e3 * domain.depth)
        return cls(tuple(round(float(n / h)) for n in lengths), (x[0], y[0]), float(h))


class SeriesReader:
    """Series at any place of the ground, linear between cells and frames."""

    def __init__(self, dataset: xr.Dataset) -> None:
        self.dataset = dataset
        self.times = np.asarray(dataset["frame_time"].values, dtype=float)

    @property
    def until(self) -> float:
        return float(self.times[-1])

    @property
    def stored(self):
        return self.dataset["frames"].values > 0

    def evaluate(self, times, nodes=None, sources=None) -> xr.DataArray:
        n = self.dataset.sizes["node"]
        chosen = np.arange(n) if nodes is None else np.asarray(nodes)
        return self._at(
            times, chosen[:, None], np.ones((len(chosen), 1)), sources
        ).rename(station="node")

    def sample(self, x, y, times, names=None, sources=None) -> xr.DataArray:
        a = self.dataset.attrs
        nx, ny = (int(a[name]) for name in ("nx", "ny"))
        fx = (np.asarray(x) - a["x0"]) / a["h"] - 0.5
        fy = (np.asarray(y) - a["y0"]) / a["h"] - 0.5
        if (np.abs(fx - (nx - 1) / 2) > nx / 2).any() or (
            np.abs(fy - (ny - 1) / 2) > ny / 2
        ).any():
            raise one_problem("stations", None, "are outside the box")
        fx, fy = np.clip(fx, 0, nx - 1), np.clip(fy, 0, ny - 1)
        i = np.minimum(fx.astype(int), nx - 2)
        j = np.minimum(fy.astype(int), ny - 2)
        p, q = fx - i, fy - j
        nodes = np.stack([i * ny + j, (i + 1) * ny + j, i * ny + j + 1,
                          (i + 1) * ny + j + 1], axis=1)  # fmt: skip
        weights = np.stack([(1 - p) * (1 - q), p * (1 - q), (1 - p) * q, p * q], axis=1)
        found = self._at(times, nodes, weights, sources)
        return found if names is None else found.assign_coords(station=list(names))

    def _at(self, times, nodes, weights, sources) -> xr.DataArray:
        t = np.atleast_1d(np.asarray(times, dtype=float))
        if (t < 0).any() or (t > self.until * (1 + 1e-9)).any():
            raise one_problem("times", float(t.max()), "are not in the series")
        field = self.dataset["wavefield"]
        rows = (
            np.arange(field.sizes["source"]) if sources is None else np.asarray(sources)
        )
        series = field.values[rows][:, :, nodes].astype(float)
        series = np.einsum("sfpk,pk->sfp", series, weights)
        upper = np.clip(np.searchsorted(self.times, t), 1, len(self.times) - 1)
        part = (t - self.times[upper - 1]) / (self.times[upper] - self.times[upper - 1])
        part = np.clip(part, 0.0, 1.0)[None, :, None]
        up = (1 - part) * series[:, upper - 1] + part * series[:, upper]
        values = np.stack([np.zeros_like(up), np.zeros_like(up), up], axis=-1)
        coords = {"time": t / YEAR, "component": list(COMPONENTS)}
        return xr.DataArray(
            values, coords, ("source", "time", "station", "component"), "displacement"
        )


class BoxWaves:
    """See `afterslip.physics.base.Physics`."""

    name, numerics, group_size, spec = "boxwaves", 1, 3, BoxCampaign
    inverts, unit, forward = False, "amplitude of the start", None

    def gpus(self, canonical):
        return 1

    parts = MappingProxyType(
        {"model": ("model",), "slip": ("sources",), "solver": ("waves",)}
    )

    def quality(self, spec):
        return {"duration": float(spec.waves.duration)}

    def worse(self, stored, wanted):
        return [] if stored["duration"] >= wanted["duration"] else ["waves.duration"]

    def serves(self, stored, wanted):
        return not self.worse(stored, wanted)

    def numbers(self, spec):
        waves = spec.waves
        return {"waves": [waves.cells, waves.width, float(waves.duration),
                          float(waves.sampling)]}  # fmt: skip

    def work(self, spec, inputs=None, mesh_bytes=None):
        cells = float(np.prod(Grid.of(spec).dims))
        return Work(
            spec.sources.along_strike * spec.sources.down_dip,
            {} if inputs is None else {"in the box: make waves.cells fewer": cells},
        )

    def layout(self, facts):
        series = grouped("wavefield", "frame node", "f4", "m m-1", "u of the ground",
                         whole=("node",))  # fmt: skip
        count = grouped(
            "frames", "", "i4", "1", "frames of a source, 0: not solved yet"
        )
        return StoreLayout(facts["sizes"], self.group_size, (series, count))

    def solved(self, stated, greens):
        return []

    def reader(self, dataset):
        return SeriesReader(dataset)


physics = BoxWaves()
