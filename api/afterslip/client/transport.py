"""Requests that survive a flaky line: time-outs, retries, readable errors."""

from __future__ import annotations

import base64
import hashlib
import random
import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from afterslip.client.errors import ApiError, NoServerError
from afterslip.client.wire import BlockingWire, Wire
from afterslip.errors import DamagedError
from afterslip.integrity import DAMAGED, PROBLEM
from afterslip.version import __version__

_DIGEST = re.compile(r"(?:^|,)\s*sha-256=:([A-Za-z0-9+/=]+):")
RETRIED = frozenset({429, 500, 502, 503, 504})
MAX_PAUSE_S = 8.0
MAX_RETRY_AFTER_S = 30.0


class Transport:
    """HTTP with the habits of this client.

    Every request may be repeated without harm: a GET by nature, a POST because it
    carries an ``Idempotency-Key``. So each is retried, with growing pauses, when
    the line breaks or the server says that it cannot now.

    Parameters
    ----------
    url : address of the server.
    token : sent as bearer token.
    timeout : s to wait for an answer.
    tries : how often to try in all.
    transport : instead of the network, for tests.
    wire : what makes the connection, of the options of `httpx.Client`.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        timeout: float = 60.0,
        tries: int = 5,
        transport: httpx.BaseTransport | httpx.AsyncBaseTransport | None = None,
        wire: Callable[..., Wire] = BlockingWire,
    ) -> None:
        self.url = url.rstrip("/")
        if not self.url.startswith(("http://", "https://")):
            raise NoServerError(f"{url}: an address starts with http:// or https://")
        self.headers = {"User-Agent": f"afterslip/{__version__}"}
        if token:
            self.headers["Authorization"] = f"Bearer {token}"
        self._tries = tries
        self.wire = wire(
            base_url=self.url,
            headers=self.headers,
            timeout=httpx.Timeout(timeout, connect=min(timeout, 10.0)),
            transport=transport,
            follow_redirects=True,
        )

    def close(self) -> None:
        """Close all connections."""
        self.wire.close()

    def get(self, path: str, **params: Any) -> Any:
        """Return the JSON at a path; parameters that are None are left out."""
        wanted = {key: value for key, value in params.items() if value is not None}
        return _json(self.request("GET", path, params=wanted))

    def post(self, path: str, body: Any = None, *, key: str | None = None) -> Any:
        """Send JSON and return the answer; repeated tries have one effect.

        Parameters
        ----------
        key : the ``Idempotency-Key``; a fresh one by default.
        """
        headers = {"Idempotency-Key": key or uuid.uuid4().hex}
        return _json(self.request("POST", path, json=body, headers=headers))

    def upload(self, path: str, content: bytes) -> Any:
        """Send bytes and return the JSON answer."""
        headers = {
            "Content-Type": "application/octet-stream",
            "Idempotency-Key": uuid.uuid4().hex,
        }
        return _json(self.request("POST", path, content=content, headers=headers))

    def read(self, path: str, **headers: str) -> bytes:
        """Return the bytes at a path."""
        return self.request("GET", path, headers=headers).content

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Send a request until it is answered, or the tries are used up.

        Raises
        ------
        ApiError
            when the server refuses or fails.
        NoServerError
            when nothing answers.
        DamagedError
            when the answer does not have the checksum that comes with it.
        """
        failure: Exception | None = None
        for number in range(self._tries):
            if number:
                self.wire.sleep(_pause(number, failure))
            try:
                response = self.wire.request(method, path, **options)
            except httpx.TransportError as error:
                failure = error
                continue
            if response.is_success:
                if _arrived(response):
                    return response
                failure = _BrokenError()
                continue
            failure = _Refusal(response)
            # what is damaged stays so until somebody repairs it
            damaged = response.headers.get(PROBLEM) == DAMAGED
            if damaged or response.status_code not in RETRIED:
                break
        if isinstance(failure, _Refusal):
            raise failure.error()
        if isinstance(failure, _BrokenError):
            text = "arrives damaged: its bytes do not have the checksum that is sent"
            raise DamagedError(self.url, path, f"{text} with them", "try again")
        raise _no_server(self.url, failure)

    @contextmanager
    def stream(self, path: str, headers: dict[str, str]) -> Iterator[Iterator[str]]:
        """Open a stream of lines, once; silence of a minute counts as a broken line.

        Raises
        ------
        ApiError, httpx.TransportError
        """
        timeout = httpx.Timeout(60.0, connect=10.0)
        response = self.wire.open(path, headers=headers, timeout=timeout)
        try:
            if not response.is_success:
                self.wire.read(response)
                raise _Refusal(response).error()
            yield self.wire.lines(response)
        finally:
            self.wire.end(response)


class _Refusal(Exception):  # noqa: N818 never leaves this file
    """An answer that is no success."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        super().__init__(response.status_code)

    def error(self) -> ApiError:
        try:
            document = self.response.json()
        except ValueError:
            document = None
        return ApiError.of(self.response.status_code, document)


class _BrokenError(Exception):
    """A body that is not what the server meant to send."""


def _arrived(response: httpx.Response) -> bool:
    """Compare a whole body with its ``Repr-Digest`` (RFC 9530), if it has one."""
    found = _DIGEST.search(response.headers.get("Repr-Digest", ""))
    whole = response.status_code == 200 and response.request.method == "GET"
    # of the coded content, which is not there any more
    coded = response.headers.get("Content-Encoding", "identity") != "identity"
    if found is None or not whole or coded:
        return True
    digest = hashlib.sha256(response.content).digest()
    return base64.b64encode(digest).decode() == found[1]


def _pause(number: int, failure: Exception | None) -> float:
    """Return how long to wait before try ``number``, in s.

    Doubles from a quarter of a second; a random part keeps many clients from
    coming back at the same instant. A server's ``Retry-After`` is respected.
    """
    if isinstance(failure, _Refusal):
        wish = failure.response.headers.get("Retry-After", "")
        if wish.isdigit():
            return min(float(wish), MAX_RETRY_AFTER_S)
    pause = min(0.25 * 2.0 ** (number - 1), MAX_PAUSE_S)
    return pause * random.uniform(0.75, 1.25)  # noqa: S311 no secret


def _no_server(url: str, failure: Exception | None) -> NoServerError:
    if isinstance(failure, httpx.TimeoutException):
        return NoServerError(f"{url} does not answer in time")
    reason = str(failure) or type(failure).__name__
    return NoServerError(
        f"no server answers at {url} ({reason}); start one with `afterslip serve`, "
        "or name another with --server or AFTERSLIP_SERVER"
    )


def _json(response: httpx.Response) -> Any:
    if response.status_code == 204 or not response.content:
        return None
    try:
        return response.json()
    except ValueError:
        raise NoServerError(
            f"{response.url} answers, but not in JSON: is this an afterslip server?"
        ) from None
