"""The deployment, every role a process of its own, under keepers; made to be hurt."""

from __future__ import annotations

import contextlib
import secrets
import shutil
import sys
import threading
import time
from pathlib import Path

import arena
import numpy as np
import psutil
import psycopg
import tiny_store
import tiny_worker

QUICK = Path(__file__).parent / "quick"
GROUPS, LANES = 4, 4
SOLVES = 3
WORKERS = 2
# a dispatcher that writes one of these waits for a lock that the test holds
LOCKS = {"accepting": 0x5AFE01, "closing": 0x5AFE02}
TRIGGERS = f"""
CREATE FUNCTION wait_accepting() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN PERFORM pg_advisory_xact_lock({LOCKS["accepting"]}); RETURN NEW; END $$;
CREATE TRIGGER wait_accepting BEFORE UPDATE ON jobs FOR EACH ROW
WHEN (NEW.state = 'accepted' AND NEW.kind = 'group' AND NEW.ordinal >= 2)
EXECUTE FUNCTION wait_accepting();
CREATE FUNCTION wait_closing() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN PERFORM pg_advisory_xact_lock({LOCKS["closing"]}); RETURN NEW; END $$;
CREATE TRIGGER wait_closing BEFORE UPDATE ON campaigns FOR EACH ROW
WHEN (NEW.finished_at IS NOT NULL AND OLD.finished_at IS NULL)
EXECUTE FUNCTION wait_closing();
"""
NO_TRIGGERS = """
DROP TRIGGER wait_accepting ON jobs; DROP FUNCTION wait_accepting;
DROP TRIGGER wait_closing ON campaigns; DROP FUNCTION wait_closing;
"""
WAITS = (
    "SELECT 1 FROM pg_locks WHERE NOT granted AND locktype = 'advisory' AND objid = %s"
)
LIVE = "SELECT count(*) FROM jobs WHERE state IN ('queued', 'running', 'stored')"
OPEN = "SELECT id FROM campaigns WHERE state NOT IN ('complete', 'failed', 'cancelled')"
LEADER = "SELECT holder FROM leases WHERE name = 'dispatcher' AND expires_at > now()"
FACTS = "SELECT facts FROM leases WHERE name = 'dispatcher'"
CSV = "station,x_km,y_km,east,north,up\nA,0,0,1.0,0.2,0.1\nB,9,3,0.5,0.1,0.0\n"
SIGMA = {"horizontal": 0.01, "vertical": 0.03}
FINAL = {"complete", "failed", "cancelled"}


class Deployment:
    """API, two dispatchers, a scheduler and two workers around PostgreSQL.

    Parameters
    ----------
    database_via : URL of the database that API and dispatchers are given, where a
        test stands between them.

    Attributes
    ----------
    via, workers_via : port of the scheduler that API and dispatchers, and that
        workers are given.
    """

    def __init__(self, folder, database, database_via=None, **environment):
        self.folder, self.database = folder, database
        self.given_database = database_via or database
        self.store = folder / "store"
        self.holds = folder / "holds"
        self.holds.mkdir(parents=True)
        self.clock = folder / "clock"
        self.clock.write_text("0")
        self.port, self.scheduler = arena.free_port(), arena.free_port()
        self.via = self.workers_via = self.scheduler
        self.mark = "AFTERSLIP_FAULTS_RUN", secrets.token_hex(8)
        self.environment = {
            self.mark[0]: self.mark[1],
            "PYTHONPATH": str(QUICK),
            "AFTERSLIP_FAULTS_HOLDS": str(self.holds),
            "AFTERSLIP_FAULTS_CLOCK": str(self.clock),
            "AFTERSLIP_LOST_AFTER": "10",
            "AFTERSLIP_SPOOL": str(folder / "spool"),
            "AFTERSLIP_STORE": str(self.store),
            **environment,
        }
        self.url = f"http://127.0.0.1:{self.port}"
        self.processes, self._sessions = {}, []
        self._stopped = threading.Event()
        self._keeper = threading.Thread(target=self._keep, daemon=True)

    def commands(self):
        """Return the command of every role."""
        scheduler = f"tcp://127.0.0.1:{self.via}"
        known = ["--database", self.given_database, "--scheduler", scheduler]
        found = {
            "scheduler": [
                sys.executable, "-m", "dask", "scheduler", "--host", "127.0.0.1",
                "--port", str(self.scheduler), "--no-dashboard",
                "--dashboard-address", "127.0.0.1:0",
            ],
            "api": [arena.AFTERSLIP, "serve", "--dispatcher", "off", *known,
                    "--port", str(self.port)],
        }  # fmt: skip
        for number in (1, 2):
            found[f"dispatcher-{number}"] = [arena.AFTERSLIP, "dispatch", *known]
        for number in range(1, WORKERS + 1):
            name = f"worker-{number}"
            found[name] = [
                arena.AFTERSLIP,
                "worker",
                f"tcp://127.0.0.1:{self.workers_via}",
                "--cpu",
                "--name",
                name,
            ]
        return found

    def start(self):
        """Start everything and wait until it is ready."""
        for role in self.commands():
            self.launch(role)
        self._keeper.start()
        self.await_ready(120)
        self.sql(TRIGGERS)
        return self

    def sql(self, statement):
        """Run a statement in the database; return its first row, if it has any."""
        with psycopg.connect(self.database, autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchone() if cursor.description else None

    def launch(self, role):
        """Start one role, or start it again."""
        log = self.folder / f"{role}.log"
        made = arena.start(log, *self.commands()[role], **self.environment)
        self.processes[role] = made
        self._sessions.append(made.pid)

    def _keep(self):
        """Start again what has died, as every deployment does."""
        while not self._stopped.wait(0.3):
            for role, process in list(self.processes.items()):
                if process.poll() is not None and not self._stopped.is_set():
                    self.launch(role)

    def end(self, role):
        """Stop one role in good order, and keep it stopped."""
        process = self.processes.pop(role)
        process.terminate()
        process.wait(60)

    def stop(self):
        """End everything."""
        self._stopped.set()
        if self._keeper.is_alive():
            self._keeper.join()
        for leader in self._sessions:
            arena.end(leader, self.mark)
        for process in self.processes.values():
            process.wait(20)

    def log(self):
        """Return the end of every log."""
        parts = [
            f"{p.name}\n{p.read_text()[-1500:]}" for p in self.folder.glob("*.log")
        ]
        return "\n----\n".join(parts)

    def await_ready(self, seconds=90):
        """Wait until every role works."""

        def ready():
            if arena.http.get(self.url + "/healthz", timeout=10).status_code != 200:
                return False
            answer = arena.http.get(self.url + "/v1/workers", timeout=10)
            return self._leader() and self._workers() == WORKERS and answer

        arena.until(ready, seconds, self.log, 0.1)

    def clear(self):
        """Make ready for a test, whatever a failed one before it has left."""
        self.release()
        self.await_ready(120)
        while left := self.sql(OPEN):
            self.post(f"/campaigns/{left[0]}/cancel")
            campaign = f"/campaigns/{left[0]}"
            arena.until(
                lambda shown=campaign: self.get(shown)["state"] in FINAL, 60, self.log
            )
        arena.until(lambda: self.sql(LIVE) == (0,), 60, self.log)

    def _leader(self):
        with contextlib.suppress(psycopg.Error), psycopg.connect(self.database) as c:
            row = c.execute(LEADER).fetchone()
            pid = int(row[0].split(":")[1]) if row else None
            return pid if pid and psutil.pid_exists(pid) else None
        return None

    def _workers(self):
        with psycopg.connect(self.database) as connection:
            row = connection.execute(FACTS).fetchone()
        return row[0]["slots"] if row and row[0] else 0

    def get(self, path):
        """Return what the API says; it may be away for a moment."""

        def ask():
            answer = arena.http.get(f"{self.url}/v1{path}", timeout=30)
            return answer if answer.status_code < 500 else None

        return arena.until(ask, 90, self.log).json()

    def post(self, path, **more):
        """Ask for something; the API may be away for a moment."""

        def ask():
            answer = arena.http.post(f"{self.url}/v1{path}", timeout=30, **more)
            return answer if answer.status_code < 500 else None

        answer = arena.until(ask, 90, self.log)
        assert answer.status_code in {200, 201}, answer.text
        return answer.json()

    def submit(self, name="matrix", inversion=False):
        """Submit a campaign and return its id."""
        more = {}
        if inversion:
            ref = self.post("/files", content=CSV.encode())["ref"]
            data = {"name": "gnss", "file": ref, "sigma": SIGMA}
            run = {"name": "slip", "datasets": ["gnss"]}
            more = {"datasets": [data], "inversions": [run]}
        return self.post("/campaigns", json=tiny_worker.spec(name, **more))["id"]

    def hold(self, point, first=0):
        """Let computing processes stop at a point, from a group on."""
        (self.holds / point).write_text(str(first))

    def release(self):
        """Let all of them go on."""
        shutil.rmtree(self.holds)
        self.holds.mkdir()

    def held(self, point):
        """Return a living process that has stopped at a point."""
        for note in self.holds.glob(f"{point}.*"):
            pid = int(note.suffix[1:])
            if psutil.pid_exists(pid):
                return psutil.Process(pid)
        return None

    def victim(self, role, child=None):
        """Return the process that is to die.

        Parameters
        ----------
        child : computing process whose own worker or nanny is meant.
        """
        if role in {"api", "scheduler"}:
            return psutil.Process(self.processes[role].pid)
        if role in {"leader", "standby"}:
            leads = arena.until(self._leader, 30, self.log)
            both = [self.processes[f"dispatcher-{k}"].pid for k in (1, 2)]
            (other,) = [pid for pid in both if pid != leads]
            return psutil.Process(leads if role == "leader" else other)
        child = child or arena.until(self._child, 30, self.log)
        generations = {"child": 0, "worker": 1, "nanny": 2}[role]
        return arena.ancestor(child, generations)

    def _child(self):
        for role in ("worker-1", "worker-2"):
            for process in arena.session(self.processes[role].pid):
                with contextlib.suppress(psutil.NoSuchProcess):
                    if "afterslip_workers.child" in process.cmdline():
                        return process
        return None

    def groups(self, campaign):
        """Return all groups of a campaign with every attempt at them."""
        base = f"/campaigns/{campaign}/groups"
        listed = self.get(base)["items"]
        return [self.get(f"{base}/{group['index']}") for group in listed]

    def accepted(self, campaign):
        """Return the number of accepted groups."""
        return self.get(f"/campaigns/{campaign}")["progress"]["accepted"]

    def ended(self, campaign):
        """Return a campaign that has ended with all its inversions, else None."""
        shown = self.get(f"/campaigns/{campaign}")
        if shown["state"] not in FINAL:
            return None
        runs = [self.get(f"/inversions/{i}")["state"] for i in shown["inversions"]]
        return shown if all(state == "accepted" for state in runs) else None


class Toll:
    """What a fault cost: made right before it, counted when all is over."""

    def __init__(self, deployment, campaign, fault):
        self.deployment, self.campaign, self.fault = deployment, campaign, fault
        self.before = self._standing()
        self.began = time.monotonic()

    def _standing(self):
        """Return token and files' stamps of the accepted groups, by index."""
        found = {}
        for group in self.deployment.groups(self.campaign):
            tokens = [a["token"] for a in group["attempts"] if a["state"] == "accepted"]
            if tokens:
                found[group["index"]] = (tokens, self._files(group["index"]))
        return found

    def _files(self, index):
        root = self.deployment.store / "campaigns" / self.campaign / "greens.zarr"
        stamps = {}
        for path in sorted(root.glob(f"*/c/{index}/**/*")):
            if path.is_file():
                facts = path.stat()
                stamps[str(path)] = facts.st_ino, facts.st_mtime_ns
        return stamps

    def count(self, record, seconds=150):
        """Wait for the end, check everything and write it down."""
        here, campaign = self.deployment, self.campaign
        shown = arena.until(lambda: here.ended(campaign), seconds, here.log)
        took = time.monotonic() - self.began
        assert shown["state"] == "complete", shown
        after = self._standing()
        groups = here.groups(campaign)
        assert sorted(after) == list(range(GROUPS))
        tries = sum(len(group["attempts"]) for group in groups)
        stored = tiny_worker.stored(here.store, campaign)
        meant = np.stack([tiny_store.response(k) for k in range(GROUPS * LANES)])
        row = {
            "fault": self.fault,
            "seconds": round(took, 1),
            "groups again": tries - GROUPS,
            "solves again": SOLVES * (tries - GROUPS),
            "lost": sum(after[k] != was for k, was in self.before.items()),
            "twice": sum(len(tokens) - 1 for tokens, _ in after.values()),
            "result": "bitwise" if np.array_equal(stored, meant) else "differs",
        }
        record(row)
        assert (row["lost"], row["twice"], row["result"]) == (0, 0, "bitwise"), row
        left = {a["token"] for g in groups for a in g["attempts"]}
        row["sweep"] = len([t for t in left if (here.store / "attempts" / t).exists()])
        return row


@contextlib.contextmanager
def locked(deployment, moment):
    """Hold dispatchers at a moment; yield a function that tells when one is there."""
    key = LOCKS[moment]
    with psycopg.connect(deployment.database, autocommit=True) as connection:
        connection.execute("SELECT pg_advisory_lock(%s)", [key])

        def reached():
            return connection.execute(WAITS, [key]).fetchone()

        yield reached
