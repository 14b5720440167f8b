"""A Dask cluster on this machine that only this process can reach.

Any process that connects to a scheduler, a nanny or a worker of Dask may run code in
it, and a loopback port is open to every account of the machine. So the ports speak
TLS and demand a certificate that exists in the memory of our own processes only. Dask
also puts its scratch folder in front of Python's path, so nobody else may write there.
"""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dask
import distributed
import structlog
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from afterslip_common import graphics
from afterslip_service.placement.spawning import without_main
from afterslip_workers import entry

log = structlog.get_logger()

# its functions carry no types
_dask: Any = distributed

# two groups are solved at a time while the one before is written
GPU_THREADS = 3
SCRATCH = "temporary-directory"
# RFC 5280, 4.1.2.5: a certificate that does not expire
NO_END = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)


class LocalCluster:
    """One worker a core, or a GPU where dask-cuda and a GPU are there.

    Parameters
    ----------
    workers : processes; one a core or GPU if None.
    security : of the connections; a key and a certificate for this process and what
        it starts if None.
    """

    def __init__(self, workers: int | None, security: Any = None) -> None:
        # mkdtemp makes a folder that only this account may enter
        self._scratch = tempfile.TemporaryDirectory(
            prefix="afterslip-",
            dir=dask.config.get(SCRATCH, None),
            # workers that end late remove files of theirs at the same time
            ignore_cleanup_errors=True,
        )
        self._settings = ExitStack()
        self._settings.enter_context(dask.config.set({SCRATCH: self._scratch.name}))
        self._settings.enter_context(without_main())
        try:
            self.dask = _start(
                workers, own_security() if security is None else security
            )
        except BaseException:
            self._restore()
            raise

    @property
    def scratch(self) -> Path:
        """Folder of the files that Dask makes."""
        return Path(self._scratch.name)

    def close(self) -> None:
        """Stop the workers and remove what they left."""
        try:
            self.dask.close(timeout=5)
        except TimeoutError:
            # a busy machine; the workers end with this process, as their parent
            log.warning("workers have not ended within 5 s")
        finally:
            self._restore()

    def _restore(self) -> None:
        self._settings.close()
        # Dask leaves its entries there where others have been put before them, and
        # another account could make the folder again
        sys.path[:] = (p for p in sys.path if not Path(p).is_relative_to(self.scratch))
        self._scratch.cleanup()


def own_security() -> Any:
    """Return a new key and certificate, which exist in memory only.

    ``distributed.Security.temporary`` makes one that ends after a year, when a
    service that still runs could start no worker. This one ends with its process.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "dask-internal")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        # also where the machine's clock is set back later
        .not_valid_before(datetime(2000, 1, 1, tzinfo=UTC))
        .not_valid_after(NO_END)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    public = certificate.public_bytes(pem).decode()
    roles = ("client", "scheduler", "worker")
    return _dask.Security(
        require_encryption=True,
        tls_ca_file=public,
        **{f"tls_{role}_key": private for role in roles},
        **{f"tls_{role}_cert": public for role in roles},
    )


def _start(workers: int | None, security: Any) -> Any:
    options: dict[str, Any] = {
        "threads_per_worker": GPU_THREADS if entry.describe_worker()["gpus"] else 1,
        "host": "127.0.0.1",
        "security": security,
        # pages that know no users; without routes, and on loopback like all the rest
        "dashboard_address": "127.0.0.1:0",
        "scheduler_kwargs": {"dashboard": False},
        "worker_dashboard_address": "127.0.0.1:0",
        "silence_logs": 40,
    }
    if (visible := gpus()[:workers]) and (cuda := _cuda_cluster()) is not None:
        # dask-cuda has its own use for the variables that a nanny is given
        os.environ.setdefault(entry.SHARES_ENV, str(len(visible)))
        return cuda(CUDA_VISIBLE_DEVICES=visible, preload=[entry.PRELOAD], **options)
    count = workers or cores()
    return _dask.LocalCluster(
        n_workers=count,
        env={entry.SHARES_ENV: os.environ.get(entry.SHARES_ENV) or str(count)},
        processes=True,
        memory_limit=0,
        preload=[entry.PRELOAD],
        **options,
    )


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


def gpus() -> list[str]:
    """Return the NVIDIA GPUs that may be used, as CUDA_VISIBLE_DEVICES names them."""
    try:
        import pynvml  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        return []
    try:
        pynvml.nvmlInit()
        count = int(pynvml.nvmlDeviceGetCount())
    except pynvml.NVMLError:
        return []
    everything = [str(index) for index in range(count)]
    chosen = graphics.visible()
    return everything if chosen is None or not count else chosen


def _cuda_cluster() -> Any:
    try:
        from dask_cuda import LocalCUDACluster
    except ImportError:
        return None
    return LocalCUDACluster
