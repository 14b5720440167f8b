"""Where things lie below the root of a store.

::

    <store>/files/<sha256>                 uploaded inputs
    <store>/models/<digest>/               model cache
    <store>/campaigns/<id>/greens.zarr     accepted Green's functions
    <store>/campaigns/<id>/model.json      what the campaign was built from
    <store>/campaigns/<id>/inversions/<id>/
    <store>/attempts/<token>/              everything one attempt writes
"""

from __future__ import annotations

import re
from pathlib import Path

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def checked(name: str) -> str:
    """Return ``name`` if it can be one component of a path, else raise.

    Raises
    ------
    ValueError
        For anything that could leave its folder.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"{name!r} cannot name a folder of the store: "
            "use letters, digits, '.', '_' and '-'"
        )
    return name


def attempt(store: Path, token: str) -> Path:
    """Folder of one attempt."""
    return store / "attempts" / checked(token)


def campaign(store: Path, identity: str) -> Path:
    """Folder of one campaign."""
    return store / "campaigns" / checked(identity)


def greens(store: Path, identity: str) -> Path:
    """Zarr store of a campaign's Green's functions."""
    return campaign(store, identity) / "greens.zarr"


def inversion(store: Path, identity: str, name: str) -> Path:
    """Folder of one accepted inversion."""
    return campaign(store, identity) / "inversions" / checked(name)


def model(store: Path, digest: str) -> Path:
    """Folder of a cached model; ``digest`` may carry its ``sha256:`` prefix."""
    return store / "models" / checked(digest.removeprefix("sha256:"))
