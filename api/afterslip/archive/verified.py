"""A Zarr store that gives back what was written, or an error."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from zarr.abc.store import ByteRequest, RangeByteRequest, Store
from zarr.core.buffer import Buffer, BufferPrototype, default_buffer_prototype
from zarr.storage import LocalStore, WrapperStore

from afterslip.errors import AfterslipError, ArchiveError, DamagedError
from afterslip.integrity import (
    DAMAGED,
    FIXED,
    FOLDER,
    PROBLEM,
    ROOT,
    Checksums,
    file_digests,
    is_document,
)

Result = TypeVar("Result")

# Checks wait for files that the loop reads, and the loop reads files in the threads of
# its own executor: in those the checks of many files at once would wait for ever.
_CHECKS = ThreadPoolExecutor(8, "afterslip-checksums")


class VerifiedStore(WrapperStore[Store]):
    """Reads of a store of Green's functions, compared with its checksums.

    In a folder, and where there is ``digest``, a file's SHA-256 is checked before
    any of it is given out. Elsewhere, as over HTTP, it is checked of what is read
    whole; parts of a file end in a checksum of their own, which Zarr checks. What a
    sealed store has no checksum of does not exist. Stores without checksums, of
    release 0.1.0, are read as they are.

    Parameters
    ----------
    store : the files.
    name : for messages.
    store_id : that it must have; None: any.
    folder : where the files are, on this machine.
    digest : returns the SHA-256 of a file, None where there is none.
    """

    def __init__(
        self,
        store: Store,
        name: str = "",
        *,
        store_id: str | None = None,
        folder: Path | None = None,
        digest: Callable[[str], str | None] | None = None,
    ) -> None:
        super().__init__(store)
        self.name = name or str(store)
        self._store_id, self._folder, self._digest = store_id, folder, digest
        self._sums = Checksums(self.name, self._read_now, self._is_there, store_id)
        self._loop: asyncio.AbstractEventLoop | None = None

    @classmethod
    def of_folder(
        cls, path: Path, name: str = "", store_id: str | None = None
    ) -> VerifiedStore:
        """Return the store in a folder.

        Raises
        ------
        ArchiveError
            The folder holds no store.
        """
        if store_id is None and path.is_dir():
            _require_store(path, name or str(path))
        inner = LocalStore(path, read_only=True)
        return cls(inner, name or str(path), store_id=store_id, folder=path)

    def _with_store(self, store: Store) -> VerifiedStore:
        return VerifiedStore(
            store,
            self.name,
            store_id=self._store_id,
            folder=self._folder,
            digest=self._digest,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        settings = self._store, self.name, self._store_id, self._folder, self._digest
        return _again, settings

    async def get(
        self,
        key: str,
        prototype: BufferPrototype,
        byte_range: ByteRequest | None = None,
    ) -> Buffer | None:
        """Return a file or a part of it, None where the store holds none.

        Raises
        ------
        DamagedError
        """
        self._loop = asyncio.get_running_loop()
        if key == ROOT:
            body = await self._fetch(key, prototype)
            if body is None:
                await _aside(self._sums.require_root)
            else:
                await _aside(self._sums.check_root, body.to_bytes())
            return body
        root = self._sums.root_read
        if root is None:
            root = await _aside(self._sums.read_root)
        if not root.sealed:
            return await self._fetch(key, prototype, byte_range)
        if key.startswith(f"{FOLDER}/"):
            body = await self._fetch(key, prototype)
            if is_document(key):
                content = None if body is None else body.to_bytes()
                self._sums.require_document(key, content)
            return body
        if self._sums.ready(key):
            expected = self._sums.expected(key)
        else:
            expected = await _aside(self._sums.expected, key)
        if expected is None:
            return None
        hashed = await self._stored_digest(key, expected)
        body = await self._fetch(key, prototype, byte_range)
        if body is None:
            await _aside(self._sums.require, key, None)
        elif byte_range is None and not hashed:
            found = await asyncio.to_thread(_sha256, body)
            if found != expected:
                await _aside(self._sums.require, key, found)
        return body

    async def get_partial_values(
        self,
        prototype: BufferPrototype,
        key_ranges: Iterable[tuple[str, ByteRequest | None]],
    ) -> list[Buffer | None]:
        """Return parts of files, as `get` does."""
        parts = [self.get(key, prototype, part) for key, part in key_ranges]
        return list(await asyncio.gather(*parts))

    async def _stored_digest(self, key: str, expected: str) -> bool:
        """Check a file as it is stored; False where that cannot be done here."""
        if self._folder is not None:
            path = self._folder / key
            found = file_digests.cached(path)
            if found != expected:
                found = await asyncio.to_thread(file_digests.of_any, path)
        elif self._digest is not None:
            found = await asyncio.to_thread(self._digest, key)
        else:
            return False
        if found != expected:
            await _aside(self._sums.require, key, found)
        return True

    async def _fetch(
        self,
        key: str,
        prototype: BufferPrototype,
        byte_range: ByteRequest | None = None,
    ) -> Buffer | None:
        try:
            return await self._store.get(key, prototype, byte_range)
        except AfterslipError:
            raise
        except Exception as error:
            # what the library of HTTP raises for an answer that is no success
            status = getattr(error, "status", None)
            if not isinstance(status, int):
                raise
            headers = getattr(error, "headers", None) or {}
            if headers.get(PROBLEM) == DAMAGED:
                raise DamagedError(
                    self.name,
                    key,
                    "is damaged on the server, or being accepted now",
                    "there, run `afterslip fsck --repair`",
                ) from None
            text = f"{self.name}: {key} cannot be read, the server answers {status}"
            raise ArchiveError(text) from None

    def _read_now(self, key: str) -> bytes | None:
        """Return a small file; from a thread that is not the loop's."""
        body = self._await(key, None)
        return None if body is None else body.to_bytes()

    def _is_there(self, key: str) -> bool:
        # not exists(): for a server's refusal it answers no
        return self._await(key, RangeByteRequest(0, 1)) is not None

    def _await(self, key: str, part: ByteRequest | None) -> Buffer | None:
        assert self._loop is not None  # noqa: S101 - set before a thread is started
        found = self._fetch(key, default_buffer_prototype(), part)
        return asyncio.run_coroutine_threadsafe(found, self._loop).result()


def _require_store(path: Path, name: str) -> None:
    """Refuse a folder that holds neither a root nor checksums of one.

    Zarr asks for several files at once and takes the first error. The others are
    printed with their traces where the program ends before they are collected.
    """
    if any((path / key).is_file() for key in (ROOT, FIXED)):
        return
    inner = path / "greens.zarr"
    hint = f" (give {inner})" if inner.is_dir() else ""
    raise ArchiveError(f"{name} has no {ROOT}: it is not a store{hint}")


def _again(
    store: Store,
    name: str,
    store_id: str | None,
    folder: Path | None,
    digest: Callable[[str], str | None] | None,
) -> VerifiedStore:
    return VerifiedStore(store, name, store_id=store_id, folder=folder, digest=digest)


def _sha256(body: Buffer) -> str:
    return hashlib.sha256(body.as_numpy_array().data).hexdigest()


async def _aside(check: Callable[..., Result], *arguments: Any) -> Result:
    """Run a check, which may wait for the loop, in threads of its own."""
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_CHECKS, check, *arguments)
