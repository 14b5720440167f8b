"""The client: a server, or one that runs inside this program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

from afterslip.client.campaign import CampaignHandle, pages
from afterslip.client.credentials import resolve
from afterslip.client.errors import ApiError, NoServerError
from afterslip.client.inversion import Inversion
from afterslip.client.transport import Transport
from afterslip.client.wire import BlockingWire, Wire
from afterslip.errors import Problem, one_problem
from afterslip.extras import missing

if TYPE_CHECKING:
    import httpx

    from afterslip.schemas.campaign import Campaign

EMBEDDED = "afterslip.embedded"


class Client:
    """A connection to an afterslip server.

    Parameters
    ----------
    url : such as ``http://127.0.0.1:8000``.
    token : where the server asks for one; ``@file`` reads it from a file that only
        you may read. None: from the file that ``AFTERSLIP_TOKEN_FILE`` names.
    timeout : s to wait for an answer.
    tries : how often a request is tried when the line breaks or the server is busy.
    transport : instead of the network (an httpx transport), for tests.
    wire : what makes the connection; blocks by default.

    Examples
    --------
    >>> from afterslip import Campaign, Client
    >>> client = Client("http://127.0.0.1:8000")                # doctest: +SKIP
    >>> c = client.submit(Campaign.from_yaml("tohoku.yaml"))    # doctest: +SKIP
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8000",
        token: str | None = None,
        *,
        timeout: float = 60.0,
        tries: int = 5,
        transport: httpx.BaseTransport | httpx.AsyncBaseTransport | None = None,
        wire: Callable[..., Wire] = BlockingWire,
    ) -> None:
        self._transport = Transport(
            url,
            resolve(token),
            timeout=timeout,
            tries=tries,
            transport=transport,
            wire=wire,
        )
        self._stop: Callable[[], Any] | None = None

    @classmethod
    def embedded(cls, directory: str | Path, **options: Any) -> Self:
        """Start a service in this program, which ends with the client.

        Parameters
        ----------
        directory : holds its database and store; what is there is taken up again.
        options : for the service, such as ``workers=2``.

        Raises
        ------
        NoServerError
            where the service is not installed.
        """
        found = list(entry_points(group=EMBEDDED))
        if not found:
            raise NoServerError(
                "the service is not installed here: install afterslip with it, or "
                "use Client(url)"
            )
        try:
            start = found[0].load()
        except ModuleNotFoundError as error:
            what = "an embedded service"
            raise missing(what, "service", str(error.name)) from error
        handle = start(directory, **options)
        try:
            client = cls(handle.url, token="")  # it asks for none
        except BaseException:
            handle.close()
            raise
        client._stop = handle.close
        return client

    @property
    def url(self) -> str:
        """Address of the server."""
        return self._transport.url

    def __repr__(self) -> str:
        return f"<Client {self.url}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection, and the embedded service if there is one."""
        self._transport.close()
        stop, self._stop = self._stop, None
        if stop is not None:
            stop()

    def submit(
        self,
        campaign: Campaign | Mapping[str, Any] | str | Path,
        files_base: str | Path | None = None,
        *,
        key: str | None = None,
        priority: int | None = None,
    ) -> CampaignHandle:
        """Send a campaign with the files that it names, and set it to work.

        Parameters
        ----------
        campaign : spec, plain data, or the path of a YAML or JSON file.
        files_base : folder of its files; by default that of the spec.
        key : the same key twice submits once; a fresh one by default.
        priority : higher ones are served first; in place of the spec's.

        Raises
        ------
        SpecError
            when the spec or one of its files is wrong.
        ApiError
            when the server refuses it.
        """
        from afterslip.client.uploads import prepare

        spec = prepare(campaign, files_base, self.upload)
        if priority is not None:
            spec = {**spec, "priority": priority}
        return CampaignHandle(
            self._transport, self._transport.post("/v1/campaigns", spec, key=key)
        )

    def plan(
        self,
        campaign: Campaign | Mapping[str, Any] | str | Path,
        files_base: str | Path | None = None,
        *,
        mesh: bool = False,
    ) -> dict[str, Any]:
        """Check a campaign and say what it would need; nothing is recorded of it.

        Parameters
        ----------
        campaign, files_base : as for `submit`; the files are sent.
        mesh : make a coarser mesh, to count elements better; takes seconds.

        Returns
        -------
        {"sources", "groups", "elements", "unknowns", "memory", "time", "reuse",
        "warnings", "geometry", ...}, as the operation ``POST /v1/plan`` says.

        Raises
        ------
        SpecError
            when the spec or one of its files is wrong.
        ApiError
            when the server would refuse it.
        """
        from afterslip.client.uploads import prepare

        spec = prepare(campaign, files_base, self.upload)
        query = "?mesh=true" if mesh else ""
        return dict(self._transport.post(f"/v1/plan{query}", spec))

    def upload(self, content: bytes | str | Path) -> str:
        """Send a file (bytes, or a path); returns its name ``sha256:…``."""
        if not isinstance(content, bytes):
            path = Path(content)
            content = path.read_bytes()
            if not content:
                raise one_problem(str(path), None, "is an empty file")
        return str(self._transport.upload("/v1/files", content)["ref"])

    def campaigns(
        self, state: str | None = None, *, tag: str | None = None
    ) -> list[CampaignHandle]:
        """Return all campaigns, newest first, or those in a state or with a tag."""
        found = pages(self._transport, "/v1/campaigns", state=state, tag=tag)
        return [CampaignHandle(self._transport, data) for data in found]

    def campaign(self, which: str) -> CampaignHandle:
        """Return a campaign by its id, the beginning of it, or its name.

        Raises
        ------
        ApiError
            404 when there is none, 422 when several have that name.
        """
        from urllib.parse import quote

        try:
            path = f"/v1/campaigns/{quote(which, safe='')}"
            return CampaignHandle(self._transport, self._transport.get(path))
        except ApiError as error:
            if error.status not in (404, 422) or not which:
                raise
            every = self.campaigns()
            found = [c for c in every if c.name == which]
            found = found or [c for c in every if c.id.startswith(which)]
            if not found:
                raise
            if len(found) > 1:
                raise _several(which, found) from None
            return found[0].refresh()

    def datasets(self) -> list[dict[str, Any]]:
        """Return the data sets that the server holds."""
        return list(pages(self._transport, "/v1/datasets"))

    def add_dataset(
        self,
        name: str,
        file: str | Path,
        *,
        epoch: str = "0 d",
        sigma: Mapping[str, float] | None = None,
        series: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Add observations, for inversions to come.

        Parameters
        ----------
        name : by which inversions call it.
        file : CSV, as ``docs/files.md`` says.
        epoch : when it was observed, such as ``"0 d"`` or ``"1 yr"``.
        sigma : ``{"horizontal": m, "vertical": m}`` where the file has none.
        series : ``{"quantity": "velocity", "lowpass": Hz}`` of ground motion.
        """
        body: dict[str, Any] = {"name": name, "file": self.upload(Path(file))}
        body |= {"epoch": epoch}
        if sigma is not None:
            body["sigma"] = dict(sigma)
        if series is not None:
            body["series"] = dict(series)
        return dict(self._transport.post("/v1/datasets", body))

    def inversion(self, identity: str) -> Inversion:
        """Return an inversion by its id."""
        from urllib.parse import quote

        path = f"/v1/inversions/{quote(identity, safe='')}"
        return Inversion(self._transport, self._transport.get(path))

    def workers(self) -> list[dict[str, Any]]:
        """Return the workers that the server knows."""
        return list(pages(self._transport, "/v1/workers"))

    def usage(
        self, by: Literal["campaign", "user"] = "campaign", owner: str | None = None
    ) -> list[dict[str, Any]]:
        """Return who has used how much, the newest campaign first.

        Parameters
        ----------
        by : what to sum up.
        owner : only campaigns of this user.

        Returns
        -------
        [{"who", "name", "attempts", "worker_seconds", "lost_seconds", "solves",
        "iterations"}]; seconds are of workers, so GPU-seconds where they have GPUs.
        """
        return list(pages(self._transport, "/v1/usage", by=by, owner=owner))

    def webhooks(self) -> list[dict[str, Any]]:
        """Return your webhooks, newest first; an administrator gets everybody's."""
        return list(pages(self._transport, "/v1/webhooks"))

    def add_webhook(
        self,
        url: str,
        events: Sequence[str] | None = None,
        campaign: str | None = None,
    ) -> dict[str, Any]:
        """Tell an address when your campaigns and inversions have ended.

        Parameters
        ----------
        url : ``https://…``, which gets signed POST requests.
        events : campaign.complete, campaign.failed, inversion.complete,
            inversion.failed; by default all.
        campaign : id of the only one that it reports; by default all of yours.

        Returns
        -------
        {"id", "secret", ...}: the secret signs the messages and is shown this once.
        """
        body: dict[str, Any] = {"url": url}
        if events is not None:
            body["events"] = list(events)
        if campaign is not None:
            body["campaign"] = campaign
        return dict(self._transport.post("/v1/webhooks", body))

    def delete_webhook(self, identity: str) -> None:
        """Remove a webhook; messages that wait are not sent any more."""
        self._transport.request("DELETE", _webhook(identity))

    def test_webhook(self, identity: str) -> dict[str, Any]:
        """Queue a test message and return it."""
        return dict(self._transport.post(f"{_webhook(identity)}/test"))

    def deliveries(self, identity: str) -> Iterator[dict[str, Any]]:
        """Yield the messages of a webhook, newest first, and how each went."""
        return pages(self._transport, f"{_webhook(identity)}/deliveries")


def _webhook(identity: str) -> str:
    from urllib.parse import quote

    return f"/v1/webhooks/{quote(identity, safe='')}"


def _several(which: str, found: list[CampaignHandle]) -> ApiError:
    ids = ", ".join(f"{c.id} ({c.state})" for c in found)
    problem = Problem(
        "campaign", which, f"is the name of several: {ids}", "give the id of one"
    )
    return ApiError(422, "Unprocessable Entity", str(problem), [problem])
