"""Files that specs name: beside the spec, or in a store by their content."""

from __future__ import annotations

import hashlib
import os
import stat
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Protocol

from afterslip.errors import SpecError, one_problem
from afterslip.schemas.values import SHA256, path_problem


class Files(Protocol):
    """Where the bytes of a reference come from."""

    def read(self, ref: str) -> bytes:
        """Return the content; SpecError where there is none or it is not allowed."""
        ...

    def exists(self, ref: str) -> bool:
        """Say whether `read` would find it."""
        ...


def content_ref(content: bytes) -> str:
    """Return the reference ``sha256:…`` of a content."""
    return "sha256:" + hashlib.sha256(content).hexdigest()


def checked_upload(ref: str, content: bytes) -> bytes:
    """Return the content of an upload; SpecError where it is not what was uploaded."""
    if content_ref(content) != ref:
        raise one_problem(
            ref, None, "is damaged in the store: has another content", "upload it again"
        )
    return content


class LocalFiles:
    """Files under a folder.

    Parameters
    ----------
    base : folder; nothing outside it is read, also not through symbolic links.
    """

    def __init__(self, base: str | Path) -> None:
        self.base = Path(base).resolve()

    def path(self, ref: str) -> Path:
        """Return the path of a reference; SpecError where it leads out."""
        if ref.startswith("sha256:"):
            raise one_problem(ref, None, "names an uploaded file, and there are none")
        problem = path_problem(ref)
        if problem:
            raise one_problem(ref, None, problem, "name a file in the spec's folder")
        try:
            path = (self.base / ref).resolve()
        except (OSError, RuntimeError):  # links that go round
            raise one_problem(ref, None, "cannot be read") from None
        if not path.is_relative_to(self.base):
            raise one_problem(ref, None, "is a link that leads out of its folder")
        return path

    def read(self, ref: str) -> bytes:
        """Return the content of a file."""
        path = self.path(ref)
        try:
            content = _read_regular(path)
        except FileNotFoundError:
            raise one_problem(ref, None, "file not found", _near(path)) from None
        except IsADirectoryError:
            raise one_problem(ref, None, "is a folder, not a file") from None
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise one_problem(ref, None, f"cannot be read: {reason}") from None
        if content is None:
            raise one_problem(ref, None, "is a device or a pipe, not a file")
        return content

    def exists(self, ref: str) -> bool:
        """Say whether there is such a file."""
        try:
            return self.path(ref).is_file()
        except (SpecError, OSError):
            return False


class StoredFiles:
    """Uploaded files of a store, and files under a folder of the server.

    What is read of an upload is compared with its reference.

    Parameters
    ----------
    root : the store; uploads are ``files/<sha256 hex>``.
    base : folder for relative paths; None: relative paths are refused.
    """

    def __init__(self, root: str | Path, base: str | Path | None = None) -> None:
        self.folder = Path(root) / "files"
        self.local = LocalFiles(base) if base is not None else None

    def path(self, ref: str) -> Path:
        """Return the path of a reference; SpecError where it is not allowed."""
        if SHA256.match(ref):
            return self.folder / ref.removeprefix("sha256:")
        if self.local is None:
            raise one_problem(
                ref,
                None,
                "is a path, and this server reads uploads only",
                "upload the file and name it sha256:…",
            )
        return self.local.path(ref)

    def read(self, ref: str) -> bytes:
        """Return the content of an upload or a file."""
        path = self.path(ref)
        if not SHA256.match(ref) and self.local is not None:
            return self.local.read(ref)
        try:
            content = path.read_bytes()
        except OSError:
            raise one_problem(
                ref, None, "was not uploaded", "upload the file first"
            ) from None
        return checked_upload(ref, content)

    def exists(self, ref: str) -> bool:
        """Say whether there is such an upload or file."""
        try:
            return self.path(ref).is_file()
        except (SpecError, OSError):
            return False


def _read_regular(path: Path) -> bytes | None:
    """Return the content of a regular file, None for anything else.

    Opening a pipe waits for somebody who writes, unless it is asked not to.
    """
    flags = (getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOCTTY", "O_BINARY"))
    descriptor = os.open(path, reduce(or_, flags, os.O_RDONLY))
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(path)
        if not stat.S_ISREG(mode):
            return None
        with os.fdopen(descriptor, "rb", closefd=False) as stream:
            return stream.read()
    finally:
        os.close(descriptor)


def _near(path: Path) -> str:
    from afterslip.schemas.validation import nearest

    try:
        names = [item.name for item in path.parent.iterdir() if item.is_file()]
    except OSError:
        return f"there is no folder {path.parent.name}"
    found = nearest(path.name, names)
    return f"did you mean {found}?" if found else ""
