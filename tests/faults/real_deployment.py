"""The deployment with the real solver, on either database and either kind of store."""

from __future__ import annotations

import contextlib
import json
import os
import random
import time

import arena
import deployed
import psutil
import sqlalchemy as sa

from afterslip_service.db.session import Database
from afterslip_workers import entry

RESTART_S = (0.1, 2.0)
LEADER = "SELECT holder, expires_at FROM leases WHERE name = 'dispatcher'"
FACTS = "SELECT facts FROM leases WHERE name = 'dispatcher'"
STORED = "SELECT count(*) FROM jobs WHERE state = 'stored'"
CHILD = "afterslip_workers.child"
# of what a killed worker has begun every try is lost through no fault of its own
LOST_LIMIT = "1000"


class RealDeployment(deployed.Deployment):
    """API, two dispatchers, a scheduler and two workers, as operators run them.

    Whatever dies is started again after a short random delay.

    Parameters
    ----------
    store : folder or s3://… address.
    delays : draws how long a process stays away.
    """

    def __init__(self, folder, database, store, delays: random.Random, **environment):
        super().__init__(
            folder,
            database,
            AFTERSLIP_LEASE="5",
            AFTERSLIP_LOST_AFTER="8",
            AFTERSLIP_LOST_LIMIT=LOST_LIMIT,
            AFTERSLIP_STORE=str(store),
            **environment,
        )
        # the solver is the real one, and so is the clock
        for name in ("PYTHONPATH", "AFTERSLIP_FAULTS_HOLDS", "AFTERSLIP_FAULTS_CLOCK"):
            del self.environment[name]
        self.store, self.delays = store, delays
        self.spool = folder / "spool"
        self.known = Database(database)
        self.restarts = 0

    def start(self):
        """Start everything and wait until it is ready."""
        for role in self.commands():
            self.launch(role)
        self._keeper.start()
        self.await_ready(180)
        return self

    def rows(self, statement, **values):
        """Return the rows of a statement on either database."""
        with self.known.read() as connection:
            return connection.execute(sa.text(statement), values).all()

    def stop(self):
        """End everything."""
        super().stop()
        self.known.close()

    @property
    def backend(self):
        """The store, to be read."""
        return entry.open_store(self.store)

    def _keep(self):
        """Start again what has died, each after a delay of its own."""
        due: dict[str, float] = {}
        while not self._stopped.wait(0.1):
            now = time.monotonic()
            for role, process in list(self.processes.items()):
                if process.poll() is None:
                    continue
                if role not in due:
                    due[role] = now + self.delays.uniform(*RESTART_S)
                elif now >= due[role] and not self._stopped.is_set():
                    del due[role]
                    self.restarts += 1
                    self.launch(role)

    def _leader(self):
        with contextlib.suppress(sa.exc.SQLAlchemyError):
            for holder, _ in self.rows(LEADER):
                pid = int(holder.split(":")[1])
                return pid if psutil.pid_exists(pid) else None
        return None

    def _workers(self):
        with self.known.read() as connection:
            facts = sa.text(FACTS).columns(facts=sa.JSON)
            found = connection.execute(facts).scalar()
        return (found or {}).get("slots", 0)

    def candidates(self, role):
        """Return the processes that play a role now, each as a list.

        A machine is all that runs under one ``afterslip worker``.
        """
        if role in {"api", "scheduler"}:
            return [[psutil.Process(self.processes[role].pid)]]
        if role in {"leader", "standby"}:
            leads = self._leader()
            both = [self.processes[f"dispatcher-{k}"].pid for k in (1, 2)]
            pids = [pid for pid in both if (pid == leads) == (role == "leader")]
            return [[psutil.Process(pid)] for pid in pids]
        found = []
        for number in range(1, deployed.WORKERS + 1):
            leader = self.processes[f"worker-{number}"].pid
            members = arena.session(leader, self.mark)
            if role == "machine":
                found += [members] if members else []
            else:
                found += [[p] for p in members if _role(p, leader) == role]
        return sorted(found, key=lambda processes: processes[0].pid)

    def leftovers(self):
        """Return the processes of starts that are over."""
        current = {process.pid for process in self.processes.values()}
        old = [leader for leader in self._sessions if leader not in current]
        return [p for leader in old for p in arena.session(leader, self.mark)]

    def fsck(self):
        """Run ``afterslip fsck`` with the database; return all that it found.

        Raises
        ------
        AssertionError
            If it could not read the store or the database.
        """
        report, log = self.folder / "fsck.json", self.folder / "fsck.log"
        command = [arena.AFTERSLIP, "fsck", str(self.store)]
        command += ["--database", self.database, "--json", str(report)]
        status = arena.start(log, *command, **self.environment).wait(300)
        assert report.is_file(), log.read_text()
        found = json.loads(report.read_text())
        assert (status == 0) == found["sound"], log.read_text()
        assert found["groups"], "it has looked at nothing"
        return found["findings"]

    def sweep(self, seconds=60):
        """Let a dispatcher whose clock is 20 minutes ahead remove what was lost.

        Nobody works any more; what lost attempts wrote stays for 10 minutes.
        """
        for role in [name for name in self.processes if name != "scheduler"]:
            self.end(role)
        self.clock.write_text("1200")
        ahead = {
            **self.environment,
            "PYTHONPATH": os.pathsep.join(
                [str(deployed.QUICK), os.environ.get("PYTHONPATH", "")]
            ),
            "AFTERSLIP_FAULTS_CLOCK": str(self.clock),
        }
        command = self.commands()["dispatcher-1"]
        log = self.folder / "sweep.log"
        process = arena.start(log, *command, **ahead)
        try:
            with contextlib.suppress(AssertionError):
                arena.until(lambda: not entry.attempt_tokens(self.store), seconds)
        finally:
            arena.end(process.pid)
            process.wait(20)
        return entry.attempt_tokens(self.store)


def _role(process, leader):
    """Tell which part a process of a worker's session plays."""
    with contextlib.suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
        command = process.cmdline()
        if CHILD in command:
            return "child"
        parent = process.ppid()
        if parent == leader and "dask" in command:
            return "nanny"
        if "--multiprocessing-fork" in command:
            return "worker"
    return None
