"""Creating stores: the campaign's, and those of groups."""

from __future__ import annotations

import json
import os
import uuid
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from numpy.typing import ArrayLike, NDArray
from zarr.codecs import Crc32cCodec, ZstdCodec

from afterslip import integrity
from afterslip.archive.layout import CONVENTIONS, StoreLayout, Variable
from afterslip.errors import ArchiveError


def create_store(
    path: str | Path,
    layout: StoreLayout,
    fixed: Iterable[tuple[Variable, Any]],
    *,
    attributes: Mapping[str, Any] | None = None,
    store_id: str | None = None,
    crc32c: bool = True,
) -> None:
    """Create a campaign's store, in which no group is stored yet.

    Parameters
    ----------
    path : folder that must not exist.
    fixed : arrays that no group writes, with values.
    attributes : physics, spec, digests, versions, …; mappings and lists are stored
        as JSON.
    store_id : what its checksums name it by; None: random.
    crc32c : False writes no checksum into chunks, as release 0.1.0 did.

    Raises
    ------
    ArchiveError
        The folder exists.
    """
    if Path(path).exists():
        raise ArchiveError(f"{Path(path).name} exists already")
    root = zarr.open_group(str(path), mode="w", zarr_format=3)
    coordinates = []
    for variable, values in fixed:
        array = _create(root, variable, layout, layout.shape(variable), crc32c=crc32c)
        if variable.dtype == "str":
            array[...] = np.array(list(values), dtype=object)
        else:
            array[...] = np.asarray(values, dtype=variable.dtype)
        coordinates.append(variable.name)
    for variable in layout.grouped:
        _create(root, variable, layout, layout.shape(variable), crc32c=crc32c)
    root.attrs.update(
        {
            "Conventions": CONVENTIONS,
            "format_version": integrity.FORMAT_VERSION,
            "status": "building",
            # all other arrays are written by groups
            "coordinates": " ".join(coordinates),
            **_flat(attributes or {}),
        }
    )
    with warnings.catch_warnings():
        # consolidated metadata is an agreed extension of version 3, not its core
        warnings.simplefilter("ignore")
        zarr.consolidate_metadata(str(path))
    seal(Path(path), store_id or uuid.uuid4().hex)


def seal(path: Path, store_id: str) -> None:
    """Give a new store its checksums, those of its root last.

    Parameters
    ----------
    path : of a store in which no group is stored.
    """
    files = {}
    for file in sorted(path.rglob("*")):
        key = file.relative_to(path).as_posix()
        if file.is_file() and key != integrity.ROOT:
            files[key] = integrity.file_digests.of(file)
    fixed = path / integrity.FIXED
    fixed.parent.mkdir()
    fixed.write_bytes(integrity.write_checksums(store_id, files))
    root = json.loads((path / integrity.ROOT).read_bytes())
    root["attributes"]["store_id"] = store_id
    _replace(path / integrity.ROOT, integrity.signed(root))


def create_group_store(
    path: str | Path,
    layout: StoreLayout,
    values: Mapping[str, ArrayLike],
    *,
    crc32c: bool = True,
) -> list[str]:
    """Write a group as a store of its own, with the files of the campaign's store.

    Parameters
    ----------
    path : folder that must not exist.
    layout : of the campaign's store.
    values : for each of the layout's grouped arrays one whose first axis is the
        group's sources; along ragged dimensions it may be shorter than the store.
        What is missing stays NaN (0 for whole numbers).
    crc32c : as of the campaign's store.

    Returns
    -------
    Chunk files below ``path``, to be renamed to `chunk_file` of the campaign's group.

    Raises
    ------
    ArchiveError
        A value is missing, unknown, or does not fit; the folder exists.
    """
    wrong = {v.name for v in layout.grouped} ^ set(values)
    if wrong:
        raise ArchiveError(f"a group needs other arrays: {', '.join(sorted(wrong))}")
    if Path(path).exists():
        raise ArchiveError(f"{Path(path).name} exists already")
    blocks = [_fitting(v, layout, np.asarray(values[v.name])) for v in layout.grouped]
    root = zarr.open_group(str(path), mode="w", zarr_format=3)
    for variable, block in zip(layout.grouped, blocks, strict=True):
        shape = (layout.group_size, *layout.shape(variable)[1:])
        part = tuple(slice(n) for n in block.shape)
        _create(root, variable, layout, shape, crc32c=crc32c)[part] = block
    folder = Path(path)
    return sorted(
        str(file.relative_to(folder).as_posix())
        for file in folder.rglob("*")
        if file.is_file() and file.name != "zarr.json"
    )


def set_attributes(path: str | Path, **attributes: Any) -> None:
    """Change attributes of a store's root, atomically.

    Parameters
    ----------
    attributes : as for `create_store`, e.g. ``status="complete"``.

    Raises
    ------
    ArchiveError
        There is no store.
    """
    file = Path(path) / "zarr.json"
    try:
        document = json.loads(file.read_text())
    except (OSError, ValueError):
        raise ArchiveError(f"{Path(path).name} is not a store") from None
    document.setdefault("attributes", {}).update(_flat(attributes))
    _replace(file, integrity.signed_root(document))


def _replace(file: Path, document: Mapping[str, Any]) -> None:
    new = file.with_suffix(".new")
    with new.open("w") as stream:
        json.dump(document, stream, indent=1)
        stream.flush()
        os.fsync(stream.fileno())
    new.replace(file)


def _create(
    root: Any,
    variable: Variable,
    layout: StoreLayout,
    shape: tuple[int, ...],
    *,
    crc32c: bool,
) -> Any:
    files, chunks = layout.files(variable), layout.chunks(variable)
    with warnings.catch_warnings():
        # variable-length strings: agreed, but not in the core of version 3
        warnings.simplefilter("ignore")
        return root.create_array(
            variable.name,
            shape=shape,
            dtype=str if variable.dtype == "str" else variable.dtype,
            chunks=chunks if shape else (),
            shards=files if files != chunks else None,
            # last: it is of the bytes that are stored
            compressors=[ZstdCodec(), Crc32cCodec()] if crc32c else "auto",
            fill_value=variable.fill,
            dimension_names=list(variable.dims),
            attributes=variable.attributes,
            # a group's file must exist even where all its values are the fill value
            config={"write_empty_chunks": variable.grouped and files == chunks},
        )


def _fitting(
    variable: Variable, layout: StoreLayout, values: NDArray[Any]
) -> NDArray[Any]:
    """Return values in the store's type; the store may hold more than these."""
    shape = layout.files(variable)
    exact = [dim != "source" and dim not in layout.ragged for dim in variable.dims]
    fits = values.ndim == len(shape) and all(
        have == room if same else have <= room
        for have, room, same in zip(values.shape, shape, exact, strict=True)
    )
    if not fits:
        raise ArchiveError(
            f"{variable.name} has shape {values.shape}, which is no part of {shape}"
        )
    return values.astype(variable.dtype, copy=False)


def _flat(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: json.dumps(value) if isinstance(value, dict | list | tuple) else value
        for key, value in attributes.items()
    }
