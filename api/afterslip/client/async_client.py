"""The client for programs with an event loop: the same methods, to be awaited.

Each method is made of the one of `Client`, `CampaignHandle` or `Inversion`, which
builds its requests and reads their answers; only what carries them differs.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Callable, Coroutine
from types import TracebackType
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    ParamSpec,
    Self,
    TypeVar,
    overload,
)

from afterslip.client.async_wire import AsyncWire
from afterslip.client.campaign import CampaignHandle
from afterslip.client.client import Client
from afterslip.client.handle import Handle
from afterslip.client.inversion import Inversion

if TYPE_CHECKING:
    import httpx
    import xarray as xr

    from afterslip.client.events import Event

P = ParamSpec("P")
R = TypeVar("R")

_ANSWERS = {
    "CampaignHandle": "AsyncCampaign",
    "Inversion": "AsyncInversion",
}


class _Awaited:
    """Something whose methods run those of its blocking counterpart."""

    def __init__(self, blocking: Any, wire: AsyncWire) -> None:
        self._blocking = blocking
        self._wire = wire

    def __repr__(self) -> str:
        return repr(self._blocking).replace("<", "<Async", 1)

    async def _run(self, function: Callable[[], Any]) -> Any:
        return self._wrapped(await self._wire.run(function))

    def _wrapped(self, value: Any) -> Any:
        if value is self._blocking:
            return self
        if isinstance(value, CampaignHandle):
            return AsyncCampaign(value, self._wire)
        if isinstance(value, Inversion):
            return AsyncInversion(value, self._wire)
        if isinstance(value, list):
            return [self._wrapped(item) for item in value]
        return value


@overload
def _awaited(
    method: Callable[Concatenate[Any, P], CampaignHandle],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, AsyncCampaign]]: ...
@overload
def _awaited(
    method: Callable[Concatenate[Any, P], Inversion],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, AsyncInversion]]: ...
@overload
def _awaited(
    method: Callable[Concatenate[Any, P], list[CampaignHandle]],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, list[AsyncCampaign]]]: ...
@overload
def _awaited(
    method: Callable[Concatenate[Any, P], list[Inversion]],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, list[AsyncInversion]]]: ...
@overload
def _awaited(
    method: Callable[Concatenate[Any, P], R],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]: ...
def _awaited(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that runs the blocking one beside the event loop."""

    @functools.wraps(method)
    async def call(self: _Awaited, *args: Any, **options: Any) -> Any:
        return await self._run(lambda: method(self._blocking, *args, **options))

    # what help() and the reference show
    signature = inspect.signature(method)
    answer = str(signature.return_annotation)
    for blocking, own in _ANSWERS.items():
        answer = answer.replace(blocking, own)
    shown = signature.replace(return_annotation=answer)
    call.__signature__ = shown  # type: ignore[attr-defined]
    return call


class _AsyncHandle(_Awaited):
    """Something on a server that has an identifier, a name and a state."""

    _blocking: Handle

    def _repr_html_(self) -> str:
        return self._blocking._repr_html_()

    @property
    def data(self) -> dict[str, Any]:
        """The thing as the server last described it."""
        return self._blocking.data

    @property
    def id(self) -> str:
        """Identifier."""
        return self._blocking.id

    @property
    def name(self) -> str:
        """Name given by the user."""
        return self._blocking.name

    @property
    def state(self) -> str:
        """State in the server's words, when it was last asked."""
        return self._blocking.state

    async def refresh(self) -> Self:
        """Ask the server again; returns itself."""
        await self._run(self._blocking.refresh)
        return self


class AsyncInversion(_AsyncHandle):
    """Slip estimated from data, as `Inversion`; its properties are methods here."""

    _blocking: Inversion

    wait = _awaited(Inversion.wait)
    result_bytes = _awaited(Inversion.result_bytes)
    save = _awaited(Inversion.save)
    plot_slip = _awaited(Inversion.plot_slip)

    @property
    def warnings(self) -> list[str]:
        """What to doubt, as the result says it."""
        return self._blocking.warnings

    @property
    def magnitude_interval(self) -> tuple[float, float] | None:
        """Limits of Mw that hold 95 % of the draws; None where none were made."""
        return self._blocking.magnitude_interval

    @property
    def peak_slip_interval(self) -> tuple[float, float] | None:
        """Limits of 95 % of `peak_slip_average` in the result, m, or None."""
        return self._blocking.peak_slip_interval

    async def result(self) -> xr.Dataset:
        """Return everything, as ``docs/files.md`` lays it out."""
        return await self._wire.run(lambda: self._blocking.result)

    async def slip(self) -> xr.DataArray:
        """Return the coefficients of the unit sources, m, with their places."""
        return await self._wire.run(lambda: self._blocking.slip)

    async def fault_slip(self) -> xr.DataArray:
        """Return slip at the fault's nodes (fault_node, slip_component), m."""
        return await self._wire.run(lambda: self._blocking.fault_slip)

    async def predicted(self) -> xr.DataArray:
        """Return predicted data (obs), m, with stations and observed values."""
        return await self._wire.run(lambda: self._blocking.predicted)

    async def moment(self) -> float:
        """Return scalar moment, N m, summed over the patches."""
        return await self._wire.run(lambda: self._blocking.moment)

    async def magnitude(self) -> float:
        """Return moment magnitude Mw."""
        return await self._wire.run(lambda: self._blocking.magnitude)

    async def peak_slip(self) -> float:
        """Return the largest slip, m."""
        return await self._wire.run(lambda: self._blocking.peak_slip)

    async def variance_reduction(self) -> float:
        """Return 1 - Σ(residual/sigma)² / Σ(observed/sigma)²."""
        return await self._wire.run(lambda: self._blocking.variance_reduction)

    async def score(self) -> float:
        """Return the mean squared held-out residual over sigma, or nan."""
        return await self._wire.run(lambda: self._blocking.score)


class AsyncCampaign(_AsyncHandle):
    """A campaign on a server, as `CampaignHandle`."""

    _blocking: CampaignHandle

    wait = _awaited(CampaignHandle.wait)
    cancel = _awaited(CampaignHandle.cancel)
    uncancel = _awaited(CampaignHandle.uncancel)
    retry = _awaited(CampaignHandle.retry)
    pause = _awaited(CampaignHandle.pause)
    resume = _awaited(CampaignHandle.resume)
    change = _awaited(CampaignHandle.change)
    delete = _awaited(CampaignHandle.delete)
    act_on_groups = _awaited(CampaignHandle.act_on_groups)
    explain = _awaited(CampaignHandle.explain)
    groups = _awaited(CampaignHandle.groups)
    group = _awaited(CampaignHandle.group)
    greens = _awaited(CampaignHandle.greens)
    sample = _awaited(CampaignHandle.sample)
    invert = _awaited(CampaignHandle.invert)
    ask = _awaited(CampaignHandle.ask)
    inversions = _awaited(CampaignHandle.inversions)
    fetch = _awaited(CampaignHandle.fetch)

    @property
    def progress(self) -> dict[str, int]:
        """Number of groups by state, and ``total``, when the server was last asked."""
        return self._blocking.progress

    async def spec(self) -> dict[str, Any]:
        """Return the spec in its canonical form, files by their content."""
        return await self._wire.run(lambda: self._blocking.spec)

    async def events(
        self, after: int | None = 0, *, forever: bool = False
    ) -> AsyncIterator[Event]:
        """Follow what happens; goes on by itself when the line breaks.

        Parameters
        ----------
        after, forever : as of `CampaignHandle.events`.
        """
        events = self._blocking.events(after, forever=forever)
        try:
            while (
                event := await self._wire.run(lambda: next(events, None))
            ) is not None:
                yield event
        finally:
            await self._wire.run(events.close)  # type: ignore[attr-defined]


class AsyncClient(_Awaited):
    """A connection to an afterslip server, of one event loop; use it in `async with`.

    Parameters
    ----------
    url, token, timeout, tries : as of `Client`.
    transport : instead of the network (an asynchronous httpx transport), for tests.

    Examples
    --------
    >>> from afterslip import AsyncClient
    >>> async def magnitudes(specs):
    ...     async with AsyncClient("http://127.0.0.1:8000") as client:
    ...         made = [await client.submit(spec) for spec in specs]
    ...         await asyncio.gather(*(campaign.wait() for campaign in made))
    """

    _blocking: Client

    def __init__(
        self,
        url: str = "http://127.0.0.1:8000",
        token: str | None = None,
        *,
        timeout: float = 60.0,
        tries: int = 5,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        wires: list[AsyncWire] = []

        def wire(**options: Any) -> AsyncWire:
            wires.append(AsyncWire(**options))
            return wires[-1]

        blocking = Client(
            url, token, timeout=timeout, tries=tries, transport=transport, wire=wire
        )
        super().__init__(blocking, wires[0])

    @property
    def url(self) -> str:
        """Address of the server."""
        return self._blocking.url

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection."""
        await self._wire.aclose()

    submit = _awaited(Client.submit)
    plan = _awaited(Client.plan)
    upload = _awaited(Client.upload)
    campaigns = _awaited(Client.campaigns)
    campaign = _awaited(Client.campaign)
    datasets = _awaited(Client.datasets)
    add_dataset = _awaited(Client.add_dataset)
    inversion = _awaited(Client.inversion)
    workers = _awaited(Client.workers)
    usage = _awaited(Client.usage)
    webhooks = _awaited(Client.webhooks)
    add_webhook = _awaited(Client.add_webhook)
    delete_webhook = _awaited(Client.delete_webhook)
    test_webhook = _awaited(Client.test_webhook)

    async def deliveries(self, identity: str) -> list[dict[str, Any]]:
        """Return the messages of a webhook, newest first, and how each went."""
        return await self._wire.run(lambda: list(self._blocking.deliveries(identity)))
