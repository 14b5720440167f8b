"""Do as another account of this machine what it might try; started by root.

    python other_account.py connect ADDRESS...      is what answers Dask without TLS?
    python other_account.py read|write PATH...      which of them can be opened?

Prints a JSON list of what succeeded.
"""

import asyncio
import contextlib
import json
import os
import sys
from pathlib import Path

import distributed
from distributed.protocol.pickle import dumps

NOBODY = 65534


def become_nobody():
    """Give up all rights; what is imported by now stays."""
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    os.environ["HOME"] = "/"
    os.chdir("/")


async def run_code(port, security):
    """Ask whatever listens to run a function; return which question was answered."""
    scheme, arguments = "tcp", {}
    if security is not None:
        scheme, arguments = "tls", security.get_connection_args("client")
    # the question for a scheduler, and the one for workers and nannies
    for question in ("run_function", "run"):
        peer = distributed.core.rpc(
            f"{scheme}://127.0.0.1:{port}", connection_args=arguments, timeout=3
        )
        with contextlib.suppress(Exception):
            answer = await asyncio.wait_for(
                getattr(peer, question)(function=dumps(os.getpid), wait=True), 5
            )
            return f"{scheme} {question}: {answer['status']}"
    return None


async def connect_all(addresses):
    """Try each port with and without a certificate of our own, all at once."""
    kinds = (None, distributed.Security.temporary())
    tried = [(address, kind) for address in addresses for kind in kinds]
    found = await asyncio.gather(
        *(run_code(address.rpartition(":")[2], kind) for address, kind in tried)
    )
    return [(item[0], how) for item, how in zip(tried, found, strict=True)]


def can_read(path):
    """Open a file, or list a folder."""
    with contextlib.suppress(OSError):
        if Path(path).is_dir():
            return list(Path(path).iterdir())
        return Path(path).open("rb")
    return None


def can_write(path):
    """Open a file for writing, or make one in a folder."""
    with contextlib.suppress(OSError):
        if Path(path).is_dir():
            return (Path(path) / "planted").open("wb")
        return Path(path).open("r+b")
    return None


if __name__ == "__main__":
    verb, *items = sys.argv[1:]
    become_nobody()
    if verb == "connect":
        found = asyncio.run(connect_all(items))
    else:
        attempt = {"read": can_read, "write": can_write}[verb]
        found = [(item, attempt(item)) for item in items]
    succeeded = [[item, str(how)] for item, how in found if how is not None]
    sys.stdout.write(json.dumps(succeeded))
