"""A store in a bucket that speaks S3.

Address and keys come from the environment, as for every other program
(``AWS_ENDPOINT_URL``, ``AWS_REGION``, ``AWS_ACCESS_KEY_ID``,
``AWS_SECRET_ACCESS_KEY``, ``AWS_SESSION_TOKEN``, ``AWS_ALLOW_HTTP``, or what the
machine's role gives); no spec, envelope or log holds them.

An object appears whole with its last part. Objects have no rename: what an attempt
wrote is copied on the server when it is accepted, and swept with the attempt.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PermissionDeniedError
from obstore.store import S3Store

from afterslip_workers.store.errors import StoreLostError

# the most that a server copies in one request; more passes through this machine
COPY_LIMIT = 5 << 30
_PART = 16 << 20
_MOST_DIGESTS = 100_000
_PROBE = ".probe"
_ONCE = ".once"
# a watch over many attempts must not hang on one request for minutes
_RETRY = {"max_retries": 3, "retry_timeout": timedelta(seconds=30)}
_PATIENCE = {"connect_timeout": timedelta(seconds=5), "timeout": timedelta(minutes=5)}


class BucketBackend:
    """A bucket, or a part of one below a prefix.

    Parameters
    ----------
    address : ``s3://bucket/prefix``.

    Raises
    ------
    ValueError
        If the address names no bucket, or holds a user or a query.
    """

    remote = True

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        plain = parts.scheme == "s3" and not (parts.query or parts.fragment)
        if not plain or not parts.hostname or "@" in parts.netloc:
            raise ValueError(
                f"{address.rsplit('@', 1)[-1]!r} is no bucket: write s3://bucket/prefix"
                " and give keys by AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
            )
        self.name = address.rstrip("/")
        self._digests: dict[str, tuple[str, str]] = {}
        insecure = os.environ.get("AWS_ALLOW_HTTP", "").lower() in {"1", "true", "yes"}
        options: Any = {**_PATIENCE, "allow_http": insecure}
        retry: Any = _RETRY
        self._store = S3Store(
            parts.netloc,
            prefix=parts.path.strip("/") or None,
            client_options=options,
            retry_config=retry,
        )

    @contextmanager
    def _asking(self, what: str) -> Iterator[None]:
        """Say in one line what the server, or the way to it, refused."""
        try:
            yield
        except PermissionDeniedError as error:
            text = f"{self.name} refuses {what}: {_line(error)}"
            raise PermissionError(text) from None
        except BaseError as error:
            raise StoreLostError(f"{self.name}, {what}: {_line(error)}") from None

    def prepare(self) -> None:
        """See that the bucket answers and lets the first of two writers win."""
        self._list()
        for _ in range(2):
            created = self.create(_ONCE, b"x")
        if created:
            raise OSError(
                f"{self.name} overwrites what is there in spite of `If-None-Match: *`: "
                "use a server of buckets that knows conditional writes"
            )

    def _list(self) -> None:
        with self._asking("listing"):
            obstore.list_with_delimiter(self._store, "attempts")

    def reachable(self) -> bool:
        """Tell whether the bucket answers."""
        try:
            self._list()
        except OSError:
            return False
        return True

    def probe(self) -> None:
        """Write an object of one byte, always the same."""
        self.write(_PROBE, b"x")

    def full(self) -> bool:
        """Tell that a bucket has no end."""
        return False

    def read(self, key: str) -> bytes | None:
        """Return the content of an object."""
        with self._asking(f"reading {key}"):
            try:
                return bytes(obstore.get(self._store, key).bytes())
            except FileNotFoundError:
                return None

    def read_range(self, key: str, start: int, stop: int) -> bytes:
        """Return a part of an object."""
        with self._asking(f"reading {key}"):
            return bytes(obstore.get_range(self._store, key, start=start, end=stop))

    def drop_cached(self, key: str) -> None:
        """Do nothing: no object is in this machine's memory."""

    def tail(self, key: str, most: int) -> bytes:
        """Return the last bytes of an object."""
        stop = self.size(key)
        return self.read_range(key, max(stop - most, 0), stop) if stop else b""

    def size(self, key: str) -> int | None:
        """Return the bytes of an object."""
        with self._asking(f"asking for {key}"):
            try:
                return int(obstore.head(self._store, key)["size"])
            except FileNotFoundError:
                return None

    def sha256(self, key: str) -> str:
        """Return the checksum of what the server gives back."""
        total = hashlib.sha256()
        with self._asking(f"reading {key}"):
            for part in obstore.get(self._store, key).stream(_PART):
                total.update(part)
        return total.hexdigest()

    def digest(self, key: str) -> str | None:
        """Return the checksum of an object, taken again when its ETag changes."""
        with self._asking(f"asking for {key}"):
            try:
                tag = obstore.head(self._store, key)["e_tag"]
                known = self._digests.get(key)
                if known is not None and tag is not None and known[0] == tag:
                    return known[1]
                found = obstore.get(self._store, key)
            except FileNotFoundError:
                return None
            total = hashlib.sha256()
            for part in found.stream(_PART):
                total.update(part)
            tag = found.meta["e_tag"]
        if tag is not None:
            if len(self._digests) >= _MOST_DIGESTS:
                self._digests.clear()
            self._digests[key] = (tag, total.hexdigest())
        return total.hexdigest()

    def write(self, key: str, content: bytes) -> None:
        """Replace an object."""
        with self._asking(f"writing {key}"):
            obstore.put(self._store, key, content)

    def write_by_way_of(self, folder: str, key: str, content: bytes) -> None:
        """Replace an object while there is something in another folder."""
        if not self.keys(folder):
            raise FileNotFoundError(folder)
        self.write(key, content)

    def create(self, key: str, content: bytes) -> bool:
        """Write an object unless there is one (``If-None-Match: *``)."""
        with self._asking(f"writing {key}"):
            try:
                obstore.put(self._store, key, content, mode="create")
            except AlreadyExistsError:
                return False
        return True

    def upload(self, path: Path, key: str) -> None:
        """Send a file, a large one in parts."""
        with self._asking(f"writing {key}"):
            obstore.put(self._store, key, path, chunk_size=_PART)

    def add(
        self, folder: str, write: Callable[[Path], Any], name: Callable[[Path], str]
    ) -> None:
        """Make a file, name it and send it."""
        with tempfile.TemporaryDirectory(prefix="afterslip-") as scratch:
            path = Path(scratch) / "new"
            write(path)
            self.upload(path, f"{folder}/{name(path)}")

    def move(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Copy objects on the server; the old ones go with their attempt."""
        for old, new in pairs:
            size = self.size(old) or 0
            if size > COPY_LIMIT:
                with self.local(old) as path:
                    self.upload(path, new)
            else:
                with self._asking(f"copying {old}"):
                    obstore.copy(self._store, old, new)
            if self.size(new) != size:
                raise StoreLostError(f"{self.name} copied only a part of {old}")

    def remove(self, key: str) -> None:
        """Remove an object, and all below that key."""
        with self._asking(f"removing {key}"):
            obstore.delete(self._store, [key, *self.keys(key)])

    def keys(self, folder: str) -> list[str]:
        """Return the keys of all objects below a folder."""
        with self._asking(f"listing {folder}"):
            listed = obstore.list(self._store, folder)
            return sorted(str(item["path"]) for page in listed for item in page)

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder."""
        with self._asking(f"listing {folder}"):
            found = obstore.list_with_delimiter(self._store, folder)
        listed = [*found["common_prefixes"], *(o["path"] for o in found["objects"])]
        return sorted(str(path).rstrip("/").rpartition("/")[2] for path in listed)

    @contextmanager
    def local(self, key: str) -> Iterator[Path]:
        """Fetch an object for as long as it is looked at."""
        with tempfile.TemporaryDirectory(prefix="afterslip-") as folder:
            path = Path(folder) / key.rpartition("/")[2]
            with self._asking(f"reading {key}"), path.open("wb") as stream:
                for part in obstore.get(self._store, key).stream(_PART):
                    stream.write(part)
            yield path

    def zarr(self, key: str) -> Any:
        """Return a store, of which zarr reads parts of files."""
        from zarr.storage import ObjectStore

        parts = urlsplit(f"{self.name}/{key}")
        inner = S3Store(
            parts.netloc,
            prefix=parts.path.strip("/"),
            client_options=self._store.client_options,
            retry_config=self._store.retry_config,
        )
        return ObjectStore(inner)


def _line(error: BaseException) -> str:
    """Return the first line of an error; the rest describes requests in full."""
    return (str(error).splitlines() or [type(error).__name__])[0][:300]
