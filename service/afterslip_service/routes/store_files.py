"""Files of the store as answers, whole or by ranges, wherever the store lies."""

from __future__ import annotations

import base64
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from fastapi import HTTPException, Request
from fastapi.responses import FileResponse, Response, StreamingResponse

from afterslip_service.http.deps import Service
from afterslip_workers import entry

_KEY = re.compile(r"[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*")
_RANGE = re.compile(r"bytes=(\d*)-(\d*)")
_PART = 4 << 20


def respond(
    service: Service,
    request: Request,
    folder: str,
    name: str,
    *,
    digest: Callable[[], str | None],
    media: str,
    headers: Mapping[str, str] | None = None,
    filename: str | None = None,
) -> Response | None:
    """Return a file of a folder of the store; None if there is none.

    Parameters
    ----------
    folder : key of the folder; neither ``..`` nor a symbolic link leads out of it.
    name : below the folder.
    digest : returns the SHA-256 of the file, which is as it was written; None if
        there is none. It is called before the first byte is sent.
    filename : under which a browser shall keep it.

    Raises
    ------
    DamagedError
        As ``digest``; answered with status 503.
    """
    if not _KEY.fullmatch(name) or ".." in name.split("/"):
        return None
    sha256 = digest()
    if sha256 is None:
        return None
    # RFC 9530: of the whole file, also where a range is asked for
    whole = base64.b64encode(bytes.fromhex(sha256)).decode()
    known = {**(headers or {}), "Repr-Digest": f"sha-256=:{whole}:"}
    store = service.settings.store
    if isinstance(store, Path):
        path = inside(store / folder, name)
        if path is None:
            return None
        return FileResponse(path, media_type=media, headers=known, filename=filename)
    backend, key = entry.open_store(store), f"{folder}/{name}"
    size = backend.size(key)
    if size is None:
        return None
    if filename is not None:
        known["Content-Disposition"] = f'attachment; filename="{filename}"'
    known["Accept-Ranges"] = "bytes"
    start, stop = _asked(request.headers.get("range"), size)
    partial = (start, stop) != (0, size)
    if partial:
        known["Content-Range"] = f"bytes {start}-{stop - 1}/{size}"
    known["Content-Length"] = str(stop - start)
    code = 206 if partial else 200
    if request.method == "HEAD":
        return Response(status_code=code, media_type=media, headers=known)

    def parts() -> Iterator[bytes]:
        for first in range(start, stop, _PART):
            yield backend.read_range(key, first, min(first + _PART, stop))

    return StreamingResponse(parts(), code, media_type=media, headers=known)


def _asked(header: str | None, size: int) -> tuple[int, int]:
    """Return first byte and end of what was asked for; the whole if not understood.

    Raises
    ------
    HTTPException
        Status 416: there are no such bytes.
    """
    found = _RANGE.fullmatch(header.strip()) if header else None
    if found is None or not any(found.groups()):
        return 0, size
    first, last = found.groups()
    if first:
        start, stop = int(first), min(int(last) + 1, size) if last else size
    else:
        start, stop = max(size - int(last), 0), size
    if start >= stop:
        raise HTTPException(416, headers={"Content-Range": f"bytes */{size}"})
    return start, stop


def inside(root: Path, key: str) -> Path | None:
    """Return the regular file of that key below ``root``, None if there is none."""
    path = root / key
    try:
        mode = path.lstat().st_mode
        if not stat.S_ISREG(mode) or not path.resolve().is_relative_to(root.resolve()):
            return None
    except OSError:
        return None
    return path
