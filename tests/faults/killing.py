"""Kills processes of a deployment as a seed says, and writes a journal."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections import Counter
from pathlib import Path

import arena
import psutil
import sqlalchemy as sa
from drawing import draws

AIM_S = 2.0
# moments at which a result is handed over
HANDED_OVER = frozenset({"writing", "stored", "accepting", "inverting"})
# after so many kills the work may go on until something has been accepted
PROGRESS_EVERY, PROGRESS_S = 8, 180.0
KINDS = """
SELECT jobs.kind FROM jobs JOIN attempts ON attempts.job_id = jobs.id
WHERE attempts.token = :token
"""
LIVE = "SELECT state FROM jobs WHERE state IN ('queued', 'running', 'stored')"
ACCEPTED = "SELECT count(*) FROM jobs WHERE state = 'accepted'"
DISPATCHERS = frozenset({"leader", "standby"})
# of aimed draws at what computes, so many wait for any work, the others for a result
AT_WORK_SHARE = 0.5
COMPUTES = frozenset({"child", "worker", "nanny", "machine"})


class Killer:
    """Stops and kills processes.

    Attributes
    ----------
    done : number of kills and pauses, by victim and moment.
    journal : one line for each, for a person who looks for the cause.
    """

    def __init__(self, here, seed, users):
        self.here, self.seed, self.users = here, seed, users
        self._draws = draws(seed)
        self.kills: Counter[tuple[str, str]] = Counter()
        self.pauses: Counter[tuple[str, str]] = Counter()
        self.journal: list[str] = []
        self._paused: list[tuple[float, list[psutil.Process]]] = []
        self._began = time.monotonic()
        self._accepted = 0

    def kill(self, most):
        """Kill until so many are dead; processes that are only paused do not count."""
        struck = True
        while self.kills.total() < most:
            before = self.kills.total()
            draw = next(self._draws)
            # one whose victim was not there has waited already
            self._rest(draw.wait_s if struck else 0.05)
            assert self.users.trouble is None, self.users.trouble
            struck = False
            with contextlib.suppress(psutil.NoSuchProcess):
                struck = self._strike(draw)
            now = self.kills.total()
            if now > before and now % PROGRESS_EVERY == 0:
                self._await_progress()

    def resume_all(self):
        """Let everything that is paused go on."""
        self._resume(float("inf"))

    def _rest(self, seconds):
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(left, 0.05))
            self._resume(time.monotonic())

    def _resume(self, now):
        for due, processes in self._paused:
            if due <= now:
                for process in processes:
                    _signal(process, signal.SIGCONT)
        self._paused = [item for item in self._paused if item[0] > now]

    def _strike(self, draw):
        """Do what was drawn; False if there was nobody to do it to."""
        found = self.here.candidates(draw.role)
        if not found:
            return False
        processes = found[int(draw.rank * len(found))]
        moment = self._moment(draw.role, processes)
        if draw.aimed:
            end = time.monotonic() + AIM_S
            while not _worth(draw, moment) and time.monotonic() < end:
                self._rest(0.01)
                moment = self._moment(draw.role, processes)
        count = self.pauses if draw.pause_s else self.kills
        number = signal.SIGSTOP if draw.pause_s else signal.SIGKILL
        # a machine is gone at once: nothing of it may see the rest die
        sent = [process.pid for process in processes if _signal(process, number)]
        if not sent:
            return False
        count[draw.role, moment] += 1
        if draw.pause_s:
            self._paused.append((time.monotonic() + draw.pause_s, processes))
        what = f"paused {draw.pause_s:.1f} s" if draw.pause_s else "killed"
        took = time.monotonic() - self._began
        line = f"{took:8.2f} s  draw {draw.number:5d}  {draw.role} {what}"
        self._note(f"{line} {moment}, pids {' '.join(map(str, sent))}")
        return True

    def _note(self, line):
        self.journal.append(line)
        sys.stdout.write(line + "\n")
        sys.stdout.flush()

    def _moment(self, role, processes):
        """Say what a victim does just now."""
        try:
            if role in COMPUTES:
                return self._computing(processes)
            states = {state for (state,) in self.here.rows(LIVE)}
        except sa.exc.SQLAlchemyError:
            return "database busy"
        if "stored" in states:
            return "accepting"
        return "work under way" if states else "idle"

    def _computing(self, processes):
        """Say what the process that computes does, by what its attempt has written."""
        for top in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                for process in [top, *top.children(recursive=True)]:
                    folder = _attempt(process)
                    if folder is not None:
                        return self._phase(folder)
        return "idle"

    def _phase(self, folder):
        if (folder / "manifest.json").exists():
            return "stored"
        if (folder / "group.zarr").exists() or (folder / "result").exists():
            return "writing"
        kinds = [kind for (kind,) in self.here.rows(KINDS, token=folder.name)]
        doing = {"model": "building", "group": "solving", "inversion": "inverting"}
        return doing[kinds[0]] if kinds else "idle"

    def _await_progress(self):
        """Wait until more has been accepted than when this was asked last."""

        def more():
            with contextlib.suppress(sa.exc.SQLAlchemyError):
                ((found,),) = self.here.rows(ACCEPTED)
                self._resume(time.monotonic())
                return found > self._accepted and found
            return False

        self._accepted = arena.until(more, PROGRESS_S, self.here.log)


def _worth(draw, moment):
    """Tell whether an aimed draw has found its moment: of work, or of a result."""
    if draw.role in COMPUTES and draw.rank < AT_WORK_SHARE:
        return moment != "idle"
    return moment in HANDED_OVER


def _attempt(process):
    """Return the folder of the attempt that a computing process works on."""
    with contextlib.suppress(OSError, psutil.Error):
        if "afterslip_workers.child" in process.cmdline():
            log = Path(f"/proc/{process.pid}/fd/1").readlink()
            if log.name == "log.txt":
                return log.parent
    return None


def _signal(process, number):
    """Send a signal to a process that lives still; False if it does not."""
    with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError):
        if process.is_running():
            os.kill(process.pid, number)
            return True
    return False
