"""The deployment of docker-compose.yml as plain processes on this machine.

    deploy/run-local start FOLDER [--database URL] [--port 8000] [--workers 2]
    deploy/run-local status|stop FOLDER
    deploy/run-local kill FOLDER NAME|child|worker|nanny

Commands, environment, secrets and TLS are those of the containers, with this
machine's addresses and folders in place of theirs; what dies is started again, as
their restart policy does. Without --database a private PostgreSQL is started (as the
process `database`), for which its programs must be here.

`kill` takes a name of `status`, with all that the process started, or one process
alone: a computing process, its Dask worker, or the nanny of that.
"""

import argparse
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path

import psutil
import yaml

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
SERVICES = ("scheduler", "api", "dispatcher", "worker")
READY_S = 90.0
RESTART_S = 2.0
STOP_S = 30.0
UNTRANSLATED = ("TMPDIR", "FORWARDED_ALLOW_IPS")
COMPUTING = "afterslip_workers.child"
# how far above a computing process each of its forebears is
ABOVE = {"child": 0, "worker": 1, "nanny": 2}


class Deployment:
    """Processes in a folder: their secrets, logs, store and process ids."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())

    def path(self, *parts: str) -> Path:
        """Return a path in the folder, its parent made."""
        found = self.folder.joinpath(*parts)
        found.parent.mkdir(parents=True, exist_ok=True)
        return found

    def setting(self, name: str) -> str:
        """Return a setting that `start` recorded."""
        return self.path("settings", name).read_text()

    def start(self, database: str | None, port: int, workers: int) -> None:
        """Make secrets, start everything and wait until it is ready."""
        script = ROOT / "deploy/make-secrets.sh"
        subprocess.run([script, self.path("secrets")], check=True)
        self.path("settings", "port").write_text(str(port))
        self.path("settings", "scheduler").write_text(str(_free_port()))
        url = database or self._private_database()
        self.path("secrets", "database_url").write_text(url)
        for name in self.names(workers):
            self.launch(name)
        self._make_token()
        self._await(f"http://127.0.0.1:{port}/readyz")
        print(f"ready at http://127.0.0.1:{port}")
        print(f"token of the administrator: {self.path('secrets', 'admin_token')}")

    def names(self, workers: int | None = None) -> list[str]:
        """Return the names of our processes; replicas are numbered."""
        if workers is None:
            return sorted(p.name for p in self.path("pids", "x").parent.iterdir())
        counts = {"dispatcher": 2, "worker": workers}
        return [
            name if name not in counts else f"{name}-{number}"
            for name in SERVICES
            for number in range(1, counts.get(name, 1) + 1)
        ]

    def launch(self, name: str) -> None:
        """Start one process under a keeper."""
        with self.path("logs", f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, __file__, "keep", self.folder, name],
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        self.path("pids", name).write_text(str(process.pid))

    def keep(self, name: str) -> None:
        """Run one process as its container would, and again whenever it ends."""
        ended = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: ended.set())
        command, environment = self._command(name)
        while not ended.is_set():
            process = subprocess.Popen(command, env=environment)
            while process.poll() is None and not ended.wait(0.2):
                pass
            if process.poll() is None:
                process.terminate()
                process.wait()
            ended.wait(RESTART_S)

    def _command(self, name: str) -> tuple[list[str], dict[str, str]]:
        if name == "database":
            return self._database_command(), dict(os.environ)
        service = self.compose["services"][name.partition("-")[0]]
        words = [self._here(name, word) for word in service["command"]]
        # kernels are compiled for this machine already, and its /tmp is a disk
        ours = {
            key: value
            for key, value in service["environment"].items()
            if not key.endswith("_CACHE_DIR") and key not in UNTRANSLATED
        }
        return [str(ROOT / "deploy/docker/entrypoint.sh"), *words], {
            **{k: v for k, v in os.environ.items() if not k.startswith("AFTERSLIP_")},
            "PATH": f"{BIN}:{os.environ['PATH']}",
            **{key: self._here(name, str(value)) for key, value in ours.items()},
        }

    def _here(self, name: str, text: str) -> str:
        """Return a word of the compose file with addresses and folders of ours."""
        files = self.compose["secrets"]
        if text.startswith("/run/secrets/"):
            made = Path(files[Path(text).name]["file"]).name
            return str(self.path("secrets", made))
        if text.startswith("${AFTERSLIP_STORE"):
            return str(self.path("store"))
        for old, new in (
            ("scheduler:8786", f"127.0.0.1:{self.setting('scheduler')}"),
            ("0.0.0.0", "127.0.0.1"),  # noqa: S104 - loopback instead
            ("/spool", str(self.path("spool", name))),
            ("/setup", str(self.path("setup"))),
        ):
            text = text.replace(old, new)
        ports = {"8000": self.setting("port"), "8786": self.setting("scheduler")}
        return ports.get(text, text)

    def stop(self) -> None:
        """End everything, workers first and the database last."""
        order = ["worker", "dispatcher", "api", "scheduler", "database"]
        names = sorted(self.names(), key=lambda n: order.index(n.partition("-")[0]))
        for name in names:
            family = self._family(name)
            for process in family[:1]:
                process.terminate()
            _, left = psutil.wait_procs(family, STOP_S)
            for process in left:
                process.kill()
            print(f"{name}: stopped{', killed' if left else ''}")
            self.path("pids", name).unlink(missing_ok=True)

    def kill(self, name: str) -> None:
        """Kill one process with all that it started, as a power cut would, or alone."""
        family = [self._alone(name)] if name in ABOVE else self._family(name)[1:]
        for process in family:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        gone, _ = psutil.wait_procs(family, STOP_S)
        print(f"{name}: {len(gone)} processes killed")

    def _alone(self, name: str) -> psutil.Process:
        """Return one process of a worker that has a computing process."""
        for worker in self.names():
            for process in self._family(worker) if worker.startswith("worker") else []:
                if COMPUTING in process.cmdline():
                    return [process, *process.parents()][ABOVE[name]]
        raise SystemExit("no worker has a computing process now")

    def _family(self, name: str) -> list[psutil.Process]:
        file = self.path("pids", name)
        if not file.is_file():
            raise SystemExit(f"{name} is none of {', '.join(self.names())}")
        try:
            first = psutil.Process(int(file.read_text()))
            return [first, *first.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def status(self) -> None:
        """Print what runs, and what the service says of itself."""
        for name in self.names():
            family = self._family(name)
            # the first is the keeper
            count = len(family[1:])
            print(f"{name:14} {f'runs, {count} processes' if count else 'is dead'}")
        try:
            print(_get(f"http://127.0.0.1:{self.setting('port')}/readyz"))
        except (OSError, urllib.error.URLError) as error:
            print(f"the API does not answer: {error}")

    def _make_token(self) -> None:
        out = self.path("secrets", "admin_token")
        if out.is_file():
            return
        command = [BIN / "afterslip", "token", "create", "run-local", "--user", "admin"]
        command += ["--role", "admin", "--out", out]
        url = self.path("secrets", "database_url").read_text()
        for _ in range(60):
            done = subprocess.run(
                [*command, "--database", url],
                check=False,
                capture_output=True,
                text=True,
            )
            if done.returncode == 0:
                return
            time.sleep(1.0)
        raise SystemExit(f"no token could be made: {done.stderr}")

    def _await(self, url: str) -> None:
        deadline = time.monotonic() + READY_S
        while True:
            try:
                _get(url)
            except (OSError, urllib.error.URLError) as error:
                if time.monotonic() > deadline:
                    self.status()
                    raise SystemExit(
                        f"not ready after {READY_S:.0f} s: {error}"
                    ) from error
                time.sleep(0.5)
            else:
                return

    def _private_database(self) -> str:
        port = _free_port()
        self.path("settings", "database").write_text(str(port))
        data = self.path("database")
        if not (data / "PG_VERSION").is_file():
            password = self.path("secrets", "database_password")
            data.mkdir(exist_ok=True)
            _give_away(data)
            _run(["initdb", "-D", data, "-U", "afterslip", "-A", "scram-sha-256",
                  f"--pwfile={_readable(password)}"])  # fmt: skip
        self.launch("database")
        secret = self.path("secrets", "database_password").read_text().strip()
        base = f"postgresql+psycopg://afterslip:{secret}@127.0.0.1:{port}"
        _await_port(port)
        _run(["createdb", "-h", "127.0.0.1", "-p", str(port), "-U", "afterslip",
              "afterslip"], secret, again=True)  # fmt: skip
        return f"{base}/afterslip"

    def _database_command(self) -> list[str]:
        data, port = self.path("database"), self.setting("database")
        options = ["-p", port, "-c", "listen_addresses=127.0.0.1"]
        options += ["-c", "unix_socket_directories="]
        return _as_postgres([_postgres("postgres"), "-D", data, *options])


def _postgres(program: str) -> Path:
    found = shutil.which(program)
    places = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{program}"))
    if not found and not places:
        raise SystemExit(f"{program} of PostgreSQL is not here: name a --database")
    return Path(found) if found else places[-1]


def _run(command: list[object], password: str = "", *, again: bool = False) -> None:
    program, *rest = command
    done = subprocess.run(
        _as_postgres([_postgres(str(program)), *rest]),
        check=False,
        env={**os.environ, "PGPASSWORD": password},
        cwd="/",
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    if done.returncode and not (again and "already exists" in done.stderr):
        raise SystemExit(f"{program}: {done.stderr.strip()}")


def _as_postgres(command: list[object]) -> list[str]:
    words = [str(word) for word in command]
    if os.geteuid() != 0:
        return words
    # the server refuses to run as root
    user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
    return [*user, *words]


def _await_port(port: int) -> None:
    deadline = time.monotonic() + STOP_S
    while time.monotonic() < deadline:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1.0):
            return
        time.sleep(0.2)
    raise SystemExit(
        f"PostgreSQL does not answer on port {port}: see logs/database.log"
    )


def _give_away(folder: Path) -> None:
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres", "postgres")


def _readable(secret: Path) -> Path:
    """Copy a secret to where the database's own user reads it once."""
    copy = Path("/tmp") / f"afterslip-{secrets.token_hex(8)}"  # noqa: S108
    copy.write_text(secret.read_text())
    copy.chmod(0o600)
    _give_away(copy)
    return copy


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310 - our own
        return str(answer.read().decode())


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = ("start", "stop", "status", "kill", "keep")
    parser.add_argument("verb", choices=verbs)
    parser.add_argument("folder", type=Path)
    parser.add_argument("name", nargs="?")
    parser.add_argument("--database")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    here = Deployment(options.folder)
    if options.verb == "start":
        here.start(options.database, options.port, options.workers)
    elif options.verb == "stop":
        here.stop()
    elif options.verb == "status":
        here.status()
    elif options.name is None:
        parser.error(f"{options.verb} needs the name of a process")
    elif options.verb == "kill":
        here.kill(options.name)
    else:
        here.keep(options.name)


if __name__ == "__main__":
    main()
