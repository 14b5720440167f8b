"""Stopping computing processes among their solves, from outside."""

from __future__ import annotations

import json
import time

BEAT_S = 0.3
MOMENT_S = 0.1  # of a group that solves for most of a second


class Holding:
    """Stops every computing process as soon as it is found, and steps it on.

    What is stopped is let go for a moment, again and again, until it is among its
    solves: no group ends before it is held, however quick it is and however slow we.

    Parameters
    ----------
    service : whose computing processes; one for each of its workers is held.
    n_free : so many attempts run freely before.

    Attributes
    ----------
    held : the processes that stand among their solves, by attempt.
    """

    def __init__(self, service, n_free):
        self._service, self._n_free = service, n_free
        self._free, self._stopped, self.held = [], {}, {}

    def all_held(self):
        """Look once at every process, and tell whether all are held."""
        for token, process in self._service.computing().items():
            if token in self.held or token in self._free:
                continue
            if len(self._free) < self._n_free:
                self._free.append(token)
            elif token not in self._stopped:
                self._stop(token, process)
            else:
                self._look(token, process)
        return len(self.held) == self._service.workers

    def _stop(self, token, process):
        """Stop a process, unless it has just ended its attempt."""
        process.suspend()
        if token in self._service.computing():
            self._stopped[token] = time.time()
        else:
            process.resume()

    def _look(self, token, process):
        """Hold a stopped process, or let it go for a moment."""
        folder = self._service.attempts / token
        progress = json.loads((folder / "progress.json").read_text())
        if progress["updated"] <= self._stopped[token] + BEAT_S:
            return  # its worker may not yet have read all that it said
        ends = (folder / "group.zarr").exists()
        if progress["solves_done"] and not ends:
            self.held[token] = process
            return
        if ends:
            self._free.append(token)
        del self._stopped[token]
        process.resume()
        time.sleep(MOMENT_S)
