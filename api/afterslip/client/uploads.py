"""Send the files of a spec before the spec."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from afterslip.errors import Problem, SpecError
from afterslip.schemas.campaign import Campaign
from afterslip.spec.files import LocalFiles
from afterslip.spec.references import refs, with_refs


def prepare(
    campaign: Campaign | Mapping[str, Any] | str | Path,
    files_base: str | Path | None,
    upload: Callable[[bytes], str],
) -> dict[str, Any]:
    """Check a campaign, send its files, and return it with their digests.

    Nothing is sent before every file has been found.

    Parameters
    ----------
    upload : sends a content and returns its ``sha256:…``.

    Raises
    ------
    SpecError
        with every problem of the spec, or of all its files.
    """
    if isinstance(campaign, str | Path):
        campaign = Campaign.from_yaml(campaign)
    elif not isinstance(campaign, Campaign):
        campaign = Campaign.from_dict(campaign, files_base)
    files = LocalFiles(files_base if files_base is not None else campaign.base)
    content: dict[str, bytes] = {}
    problems: list[Problem] = []
    places = {p: r for p, r in refs(campaign).items() if not r.startswith("sha256:")}
    for path, ref in places.items():
        try:
            if ref not in content:
                content[ref] = files.read(ref)
                if not content[ref]:
                    problems.append(Problem(path, ref, "is an empty file"))
        except SpecError as error:
            problems += [
                Problem(path, ref, found.message, found.hint)
                for found in error.problems
            ]
    if problems:
        raise SpecError(problems)
    sent = {ref: upload(bytes_) for ref, bytes_ in content.items()}
    return with_refs(campaign, {p: sent[r] for p, r in places.items()}).to_dict()
