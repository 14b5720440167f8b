"""How a store of Green's functions is laid out, whatever its physics.

Everything that a group of sources writes is chunked by the group's size along
``source``, one chunk file per array and group. A group can therefore be written
elsewhere as a store of its own and be accepted by renaming its files. The names and
dimensions of a physics' own arrays are in its folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

CONVENTIONS = "CF-1.11 UGRID-1.0"

# dimensions of the same length in every store
_COMMON = {"component": 3, "axis": 3, "direction": 2, "face_node": 6}


@dataclass(frozen=True, slots=True)
class Variable:
    """An array of the store.

    Attributes
    ----------
    dtype : NumPy's short name, or "str".
    grouped : written by groups; else once, when the store is created. Its first
        dimension is then ``source``.
    whole : dimensions that the smallest part which can be read has in full; None:
        all, but for the sources of other groups.
    """

    name: str
    dims: tuple[str, ...]
    dtype: str
    grouped: bool = False
    attributes: dict[str, Any] = field(default_factory=dict)
    whole: tuple[str, ...] | None = None

    @property
    def fill(self) -> Any:
        """What a missing value reads as."""
        return {"f": np.nan, "i": 0, "s": ""}[self.dtype[0]]


@dataclass(frozen=True, slots=True)
class StoreLayout:
    """The arrays that groups write, and the lengths of their dimensions.

    Attributes
    ----------
    dims : lengths, ``source`` among them.
    group_size : sources of a group.
    grouped : the arrays that groups write.
    ragged : dimensions along which a source may have fewer values than the store.
    """

    dims: Mapping[str, int]
    group_size: int
    grouped: tuple[Variable, ...]
    ragged: frozenset[str] = frozenset()

    def of(self, dim: str) -> int:
        """Return the length of a dimension."""
        return int(self.dims[dim] if dim in self.dims else _COMMON[dim])

    def shape(self, variable: Variable) -> tuple[int, ...]:
        """Return the shape of an array of the campaign's store."""
        return tuple(self.of(dim) for dim in variable.dims)

    def files(self, variable: Variable) -> tuple[int, ...]:
        """Return the part that is one file."""
        whole = tuple(max(1, self.of(dim)) for dim in variable.dims)
        return (self.group_size, *whole[1:]) if variable.grouped else whole

    def chunks(self, variable: Variable) -> tuple[int, ...]:
        """Return the smallest part that can be read."""
        files = self.files(variable)
        if variable.whole is None:
            return files
        pairs = zip(variable.dims, files, strict=True)
        return tuple(n if dim in variable.whole else 1 for dim, n in pairs)


def fixed(
    name: str, dims: str, dtype: str, unit: str, text: str, **more: Any
) -> Variable:
    """Return an array that is written when the store is created.

    Parameters
    ----------
    dims : separated by spaces.
    unit : of CF; empty: none.
    text : its ``long_name``.
    more : further attributes.
    """
    attributes = {"long_name": text, **more}
    if unit:
        attributes["units"] = unit
    return Variable(name, tuple(dims.split()), dtype, False, attributes)


def grouped(
    name: str,
    dims: str,
    dtype: str,
    unit: str,
    text: str,
    whole: tuple[str, ...] | None = None,
    **more: Any,
) -> Variable:
    """Return an array that groups write; ``dims`` are those behind ``source``."""
    attributes = {"units": unit, "long_name": text, **more}
    return Variable(name, ("source", *dims.split()), dtype, True, attributes, whole)


def chunk_file(variable: Variable, group: int) -> str:
    """Return the file, below the store, of a group's part of an array.

    In a group's own store the group is number 0.
    """
    return "/".join([variable.name, "c", str(group), *("0" for _ in variable.dims[1:])])
