"""A service of real processes to be hurt, and measures of its recovery."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import numpy as np
import psutil
import small_campaign
import xarray as xr
from holding import Holding

from afterslip.archive import open_greens

AFTERSLIP = str(Path(sys.executable).with_name("afterslip"))
N_GROUPS = 6
POLL_S = 0.05
# the kernel gives ports from the second one on to connections
PORTS = 10_000
FIRST_GIVEN = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
# one for all, as each sets up TLS anew; who answers may be another one next time
http = httpx.Client(limits=httpx.Limits(max_keepalive_connections=0))


def spec(name="fault test"):
    """Return a campaign of 11,000 unknowns in six groups of about a second."""
    whole = copy.deepcopy(small_campaign.SPEC)
    del whole["stations"]
    whole["name"] = name
    whole["model"]["mesh"]["size"] = {"fault": 14, "far": 80}
    whole["sources"] = {"fault": "main", "along_strike": 4, "down_dip": 3}
    # hard enough that there is time to do harm
    whole["times"]["until"] = "100 yr"
    whole["solver"] = {"tolerance": 1e-10, "time_tolerance": 1e-9}
    return whole


def until(condition, seconds=60.0, what="it never came true", poll=POLL_S):
    """Wait for something true and return it; a service may be away meanwhile."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with contextlib.suppress(httpx.TransportError, psutil.NoSuchProcess):
            if value := condition():
                return value
        time.sleep(poll)
    reported = what() if callable(what) else what
    raise AssertionError(f"not within {seconds:g} s: {reported}")


def free_port():
    """Return a port that nobody listens on, and that no connection is given.

    What is killed and started again must find its port free.
    """
    while True:
        port = PORTS + secrets.randbelow(FIRST_GIVEN - PORTS)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port


def start(log, *command, **environment):
    """Start a program in a session of its own, so that all of it can be ended."""
    with log.open("a") as stream:
        return subprocess.Popen(
            command,
            stdout=stream,
            stderr=subprocess.STDOUT,
            env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
            start_new_session=True,
            preexec_fn=_hear_the_terminal,
        )


def _hear_the_terminal():
    """Undo what a shell does to programs that it starts in the background."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def session(leader, mark=None):
    """Return the processes of a session, also those whose parent has died.

    The number of a dead leader is given to others some day: where that matters,
    ``mark`` is a variable, and its value, that only our processes were started with.
    """
    found = []
    for pid in psutil.pids():
        with contextlib.suppress(ProcessLookupError, psutil.NoSuchProcess):
            if os.getsid(pid) == leader:
                process = psutil.Process(pid)
                ours = mark is None or process.environ().get(mark[0]) == mark[1]
                if ours and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
    return found


def ancestor(process, generations):
    """Return who started a process, so many generations before; same session only.

    What has outlived its parent for a moment has been handed to a process that is
    none of ours, and must not be hurt in its place.
    """
    found = process
    for _ in range(generations):
        found = found.parent()
        if found is None or os.getsid(found.pid) != os.getsid(process.pid):
            raise psutil.NoSuchProcess(process.pid, msg="its parent has died")
    return found


def end(leader, mark=None):
    """Kill everything in a session; see `session`."""
    for process in session(leader, mark):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


def computing(leader, attempts):
    """Return the busy computing processes of a session, by attempt.

    A computing process prints into the log of the attempt that it works on.

    Parameters
    ----------
    attempts : folder in which every attempt has one.
    """
    found = {}
    for process in session(leader):
        with contextlib.suppress(OSError, psutil.NoSuchProcess):
            if "afterslip_workers.child" not in " ".join(process.cmdline()):
                continue
            log = Path(f"/proc/{process.pid}/fd/1").readlink()
            if log.is_relative_to(attempts):
                found[log.parent.name] = process
    return found


class Service:
    """``afterslip serve`` with its own cluster, in a process of its own."""

    def __init__(self, folder, database, store=None, workers=2, **environment):
        self.folder, self.database = folder, database
        self.store = store or folder / "store"
        self.workers = workers
        # what one test leaves there is not another one's to deliver
        self.environment = {"AFTERSLIP_SPOOL": str(folder / "spool"), **environment}
        self.scheduler = "local"
        self.url = None
        self.process = None
        self._sessions, self._held = [], []
        folder.mkdir(parents=True, exist_ok=True)

    def start(self):
        """Start, or start again, and wait until it answers."""
        log = self.folder / f"serve-{len(self._sessions)}.log"
        command = ["serve", "--database", self.database, "--store", str(self.store)]
        command += ["--workers", str(self.workers), "--scheduler", self.scheduler]
        process = start(log, AFTERSLIP, *command, "--port", "0", **self.environment)
        self.process = process
        self._sessions.append(process.pid)

        def listens():
            assert process.poll() is None, log.read_text()[-3000:]
            lines = log.read_text().splitlines()
            urls = [line.split()[-1] for line in lines if "afterslip serves at" in line]
            self.url = urls[0] if urls else None
            return self.url and http.get(self.url + "/healthz").status_code == 200

        until(listens, 90, "the service answers", 0.05)
        return self

    def kill(self):
        """Kill the API with its dispatcher and scheduler, and wait for its end."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(20)

    def stop(self):
        """End every process of every start."""
        for leader in self._sessions:
            end(leader)
        if self.process is not None:
            self.process.wait(20)

    def computing(self):
        """Return the busy computing processes by attempt."""
        assert self.process is not None
        return computing(self.process.pid, self.attempts)

    @property
    def attempts(self):
        """The folder in which attempts work."""
        return self.store / "attempts"

    def get(self, path):
        """Return what the API says."""
        answer = http.get(f"{self.url}/v1{path}", timeout=60)
        assert answer.status_code < 500, answer.text
        return answer.json()

    def submit(self, name="fault test", **headers):
        """Submit the campaign and return its id."""
        url = f"{self.url}/v1/campaigns"
        answer = http.post(url, json=spec(name), headers=headers, timeout=60)
        assert answer.status_code == 201, answer.text
        return answer.json()["id"]

    def post(self, path):
        """Ask for an action."""
        answer = http.post(f"{self.url}/v1{path}", timeout=60)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def groups(self, campaign):
        """Return all groups of a campaign with every attempt at them."""
        base = f"/campaigns/{campaign}/groups"
        listed = self.get(base)["items"]
        return [self.get(f"{base}/{group['index']}") for group in listed]

    def greens(self, campaign):
        """Return where the campaign's Green's functions are."""
        return self.store / "campaigns" / campaign / "greens.zarr"

    def stamps(self, campaign, index):
        """Return inode and time of last change of every file of a group."""
        found = {}
        for path in sorted(self.greens(campaign).glob("*/c/**/*")):
            parts = path.relative_to(self.greens(campaign)).parts
            if path.is_file() and parts[2] == str(index):
                facts = path.stat()
                found["/".join(parts)] = (facts.st_ino, facts.st_mtime_ns)
        return found

    def hold_solving(self, campaign, accepted=1, left=2):
        """Wait until some groups are accepted and each worker solves another.

        Only so many groups run freely as it needs until all computing processes are
        warm. Those of all others are stopped among their solves until ``go_on``; who
        watches over them goes on.

        Returns
        -------
        Token of the attempt and the process that computes it.
        """

        def shown():
            reported = self.get(f"/campaigns/{campaign}")
            assert reported["state"] not in {"failed", "paused"}, reported["error"]
            return reported["progress"]

        until(lambda: shown()["total"], 300, self.log)  # the model has been built
        holding = Holding(self, n_free=max(accepted, self.workers))
        until(holding.all_held, 300, self.log, 0.02)
        self._held = list(holding.held.values())
        until(lambda: shown()["accepted"] >= accepted, 60, self.log)
        done = shown()
        assert done["total"] - done["accepted"] >= left, "too quick to be hurt"
        return next(iter(holding.held.items()))

    def go_on(self):
        """Let the computing processes that were stopped go on."""
        held, self._held = self._held, []
        for process in held:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.resume()

    def log(self):
        """Return what the service printed, for a person who looks for the cause."""
        parts = [path.read_text()[-3000:] for path in self.folder.glob("*.log")]
        return "\n----\n".join(parts)


class Measure:
    """What a fault cost: made right before it, asked when all is over.

    Attributes
    ----------
    seconds : from the fault until all groups that were under way are accepted.
    under_way : indices of these groups.
    before : the accepted groups by index: their attempt, and of every file of
        theirs in the store what changes if it is written again.
    """

    def __init__(self, service, campaign, fault):
        self.campaign, self.fault = campaign, fault
        found = service.groups(campaign)
        self.before = {
            group["index"]: _standing(service, campaign, group)
            for group in found
            if group["state"] == "accepted"
        }
        active = {"queued", "running", "stored"}
        self.under_way = [g["index"] for g in found if g["state"] in active]
        assert self.under_way
        self.began = time.monotonic()
        self.seconds = None

    def recovered(self, service, seconds=300):
        """Wait until the groups that were under way are accepted."""
        path = f"/campaigns/{self.campaign}/groups"

        def accepted():
            states = [group["state"] for group in service.get(path)["items"]]
            return all(states[index] == "accepted" for index in self.under_way)

        until(accepted, seconds, service.log)
        self.seconds = time.monotonic() - self.began

    def close(self, service, undisturbed, record, seconds=300):
        """Wait for the campaign's end, check it, and write the figures down."""
        if self.seconds is None:
            self.recovered(service, seconds)
        shown = until(
            lambda: _ended(service.get(f"/campaigns/{self.campaign}")),
            seconds,
            service.log,
        )
        assert shown["state"] == "complete", (shown["error"], service.log())
        groups = service.groups(self.campaign)
        assert len(groups) == N_GROUPS
        tries = [attempt for group in groups for attempt in group["attempts"]]
        assert self.seconds is not None
        row = {
            "fault": self.fault,
            "seconds": round(self.seconds, 1),
            "groups again": len(tries) - len(groups),
            "solves again": sum(in_vain(group) for group in groups),
            "lost": sum(
                _standing(service, self.campaign, groups[index]) != was
                for index, was in self.before.items()
            ),
            "twice": sum(_n_accepted(group) - 1 for group in groups),
            "result": compare(service.greens(self.campaign), undisturbed),
        }
        record(row)
        assert row["lost"] == 0
        assert row["twice"] == 0
        return row


def _ended(shown):
    return shown if shown["state"] in {"complete", "failed", "paused"} else None


def _n_accepted(group):
    return sum(attempt["state"] == "accepted" for attempt in group["attempts"])


def _accepted(group):
    tokens = [a["token"] for a in group["attempts"] if a["state"] == "accepted"]
    assert len(tokens) == 1, group
    return tokens[0]


def _standing(service, campaign, group):
    """Return what must not change: whose result was accepted, and its files."""
    return _accepted(group), service.stamps(campaign, group["index"])


def in_vain(group):
    """Return the solves of all tries but one: no more were done in vain."""
    tries = group["attempts"]
    (solves,) = [a["stats"]["solves"] for a in tries if a["state"] == "accepted"]
    return (len(tries) - 1) * solves


def compare(ours, theirs):
    """Return ``bitwise`` or the largest difference; fail beyond the tolerance."""
    one, two = open_greens(ours), open_greens(theirs)
    assert one.attrs["status"] == "complete"
    if all(_digest(one[name]) == _digest(two[name]) for name in two.data_vars):
        return "bitwise"
    xr.testing.assert_allclose(one.response, two.response, atol=1e-7)
    return f"{float(np.nanmax(np.abs(one.response - two.response))):.0e} m"


def _digest(variable):
    return hashlib.sha256(np.ascontiguousarray(variable.values).tobytes()).hexdigest()


@contextlib.contextmanager
def frozen(process):
    """Stop a process for a while, as a machine does that is suspended."""
    os.kill(process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGCONT)
