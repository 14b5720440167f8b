"""Sums over the nodes that parts share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from afterslip_solver.backend import LANES, Backend
from afterslip_solver.model import Int
from afterslip_solver.parallel.communicator import Communicator, Span


class Halo:
    """The shared rows of a part's nodal vectors.

    They are the last ones: first come the rows that no other part has, then those
    that this part owns, then the others'. All copies of a row are summed in the order
    of the ranks, so that they stay equal to the last bit.

    Parameters
    ----------
    backend : where vectors live. communicator : to the other parts.
    n : rows of a vector. owned : rows that this part owns, the first ones.
    shared : by peer, rows that it has too, in an order that both agree on.

    Attributes
    ----------
    owned : as given. first : of the shared rows. rows : number sent in one sum.
    """

    def __init__(
        self,
        backend: Backend,
        communicator: Communicator,
        n: int,
        owned: int,
        shared: Mapping[int, Int],
    ) -> None:
        self._backend = backend
        self._communicator = communicator
        self.owned = owned
        peers = sorted(shared)
        lists = [shared[peer] for peer in peers]
        self.first = min((int(rows.min()) for rows in lists), default=n)
        n_tail = n - self.first
        self.rows = sum(len(rows) for rows in lists)
        self._n_buffer = n_tail + 2 * self.rows
        self._spans = _spans(peers, lists, n_tail, self.rows)
        self._packed = n_tail + self.rows
        out = np.concatenate([np.arange(n_tail), *(r - self.first for r in lists)])
        self._pack_rows = np.arange(len(out) + 1), out
        self._join_rows = self._joined(peers, lists, n_tail)
        self._direct = self._summed(dict(zip(peers, lists, strict=True)), n_tail)
        self._tables: dict[Any, Any] = {}

    def _joined(self, peers: list[int], lists: list[Int], n_tail: int) -> Any:
        """CSR of the buffer's rows that add up to each shared row, ranks ascending."""
        own = np.arange(n_tail)
        rank = self._communicator.rank
        ranks = [np.full(n_tail, rank)]
        ranks += [np.full(len(r), p) for p, r in zip(peers, lists, strict=True)]
        rows = np.concatenate([own, *(r - self.first for r in lists)])
        places = np.concatenate([own, n_tail + self.rows + np.arange(self.rows)])
        order = np.lexsort((np.concatenate(ranks), rows))
        counts = np.bincount(rows, minlength=n_tail)
        return np.concatenate([[0], np.cumsum(counts)]), places[order]

    def _summed(self, shared: dict[int, Int], n_tail: int) -> Any:
        """Return what sums the tail without buffers here, or None."""
        starts, places = self._join_rows
        # what is sent has no place there
        places = np.where(places < n_tail, places, places - self.rows)
        rows = {peer: r - self.first for peer, r in shared.items()}
        return self._communicator.shared_rows(rows, (starts, places))

    def _table(self, dtype: Any) -> Any:
        """Matrices, masks and the buffer for one precision."""
        if dtype not in self._tables:
            backend, (starts, places) = self._backend, self._join_rows
            pack = backend.weights(
                *self._pack_rows, np.ones(self._packed, dtype), self._n_buffer
            )
            join = backend.weights(
                starts, places, np.ones(len(places), dtype), self._n_buffer
            )
            masks = [
                backend.asarray(np.ones((n, 3), dtype))
                for n in (self._packed, len(starts) - 1)
            ]
            buffer = backend.xp.zeros((self._n_buffer, 3, LANES), dtype)
            self._tables[dtype] = pack, masks[0], join, masks[1], buffer
        return self._tables[dtype]

    def sum(self, x: Any) -> None:
        """Give the shared rows of x (n, 3, lane) the sum of all parts' values."""
        if self._communicator.size == 1:
            return
        tail = x[self.first :]
        if self._direct is not None:
            self._direct(tail)
            return
        pack, ones, join, own_ones, buffer = self._table(x.dtype)
        backend = self._backend
        if self._packed:
            backend.transfer(pack, ones, tail, buffer[: self._packed], False)
        self._communicator.exchange(buffer, self._spans)
        if self._packed:
            backend.transfer(join, own_ones, buffer, tail, False)

    def sum_host(self, values: Any) -> Any:
        """Sum of host values (n, 3, k), k at most four, over the parts."""
        wide = np.zeros((*values.shape[:2], LANES))
        wide[..., : values.shape[2]] = values
        on_device = self._backend.asarray(wide)
        self.sum(on_device)
        return self._backend.to_host(on_device)[..., : values.shape[2]]


def _spans(peers: list[int], lists: list[Int], n_tail: int, n_out: int) -> list[Span]:
    spans, start = [], n_tail
    for peer, rows in zip(peers, lists, strict=True):
        stop = start + len(rows)
        spans.append((peer, slice(start, stop), slice(start + n_out, stop + n_out)))
        start = stop
    return spans
