"""A campaign on a server."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from afterslip.client.errors import CampaignError
from afterslip.client.events import Event, follow
from afterslip.client.handle import Handle
from afterslip.client.inversion import Inversion
from afterslip.client.transport import Transport

if TYPE_CHECKING:
    import xarray as xr

ENDED = frozenset({"complete", "failed", "cancelled"})

Strength = float | Literal["auto"]
Choice = Literal["evidence", "cross_validation", "one_standard_error"]


class CampaignHandle(Handle):
    """A campaign on a server: what it does, and what it has found.

    Attributes
    ----------
    data : the campaign as the server last described it.
    state : waiting, building, running, complete, failed, cancelled or paused.
    """

    _KIND = "Campaign"
    _FOLDER = "/v1/campaigns"

    def _facts(self) -> list[tuple[str, str]]:
        done, total = self.progress.get("accepted", 0), self.progress.get("total", 0)
        facts = [*super()._facts(), ("groups", f"{done} of {total} accepted")]
        facts += [
            (f"groups {state}", str(self.progress[state]))
            for state in ("running", "failed", "cancelled")
            if self.progress.get(state)
        ]
        return [*facts, ("inversions", str(len(self.data.get("inversions") or ())))]

    @property
    def progress(self) -> dict[str, int]:
        """Number of groups by state, and ``total``."""
        return dict(self.data.get("progress") or {})

    @property
    def spec(self) -> dict[str, Any]:
        """The spec in its canonical form, files by their content."""
        if "spec" not in self.data:
            self.refresh()
        return dict(self.data["spec"])

    def cancel(self) -> CampaignHandle:
        """Stop it; what is accepted stays."""
        return self._act("cancel")

    def retry(self) -> CampaignHandle:
        """Put what failed back in the queue."""
        return self._act("retry")

    def pause(self) -> CampaignHandle:
        """Start nothing further; what runs goes on."""
        return self._act("pause")

    def resume(self) -> CampaignHandle:
        """Go on after a pause."""
        return self._act("resume")

    def change(
        self,
        *,
        name: str | None = None,
        priority: int | None = None,
        paused: bool | None = None,
        tags: Sequence[str] | None = None,
    ) -> CampaignHandle:
        """Change what it is called, its tags, how soon it is served, or whether it is.

        Parameters
        ----------
        priority : -1000 to 1000; campaigns with a higher one are served first.
        tags : all that it has then; lower-case letters, digits and ``. _ : -``.

        Raises
        ------
        ApiError
            412 when somebody else changed it at the same moment.
        """
        given: dict[str, Any] = {"name": name, "priority": priority, "paused": paused}
        if tags is not None:
            given["tags"] = list(tags)
        current = self._transport.request("GET", self._path)
        self.data = self._transport.request(
            "PATCH",
            self._path,
            json={key: value for key, value in given.items() if value is not None},
            headers={"If-Match": current.headers["ETag"]},
        ).json()
        return self

    def delete(self) -> None:
        """Cancel it and remove it from the lists; its files stay in the store."""
        self._transport.request("DELETE", self._path)

    def _act(self, verb: str) -> CampaignHandle:
        self.data = self._transport.post(f"{self._path}/{verb}")
        return self

    def uncancel(self) -> dict[str, Any]:
        """Take it up again after a cancel; returns how many jobs were moved."""
        return self._bulk(f"{self._path}/uncancel", None)

    def act_on_groups(
        self,
        action: Literal["cancel", "uncancel", "retry", "invalidate"],
        groups: Sequence[int] | None = None,
        *,
        error_class: str | None = None,
    ) -> dict[str, Any]:
        """Cancel, take up, retry or solve again many groups at once.

        Parameters
        ----------
        groups : their numbers; None: all that the action applies to.
        error_class : of a retry, only what failed in this way.

        Returns
        -------
        {"changed", "state", ...}; the same again changes nothing.
        """
        choice = {"groups": groups and list(groups), "error_class": error_class}
        body = {name: value for name, value in choice.items() if value is not None}
        return self._bulk(f"{self._path}/groups/{action}", body)

    def _bulk(self, path: str, body: Any) -> dict[str, Any]:
        done = dict(self._transport.post(path, body))
        self.refresh()
        return done

    def explain(self, group: int | None = None) -> dict[str, Any]:
        """Say why it, or one of its groups, waits, has failed, or reused nothing."""
        return dict(self._transport.get(f"{self._path}/explain", group=group))

    def groups(self) -> list[dict[str, Any]]:
        """Return the groups of four unit sources: state, attempts, residual, error."""
        return list(pages(self._transport, f"{self._path}/groups"))

    def group(self, index: int) -> dict[str, Any]:
        """Return a group with all its attempts and their convergence."""
        return dict(self._transport.get(f"{self._path}/groups/{index}"))

    def events(
        self, after: int | None = 0, *, forever: bool = False
    ) -> Iterator[Event]:
        """Follow what happens; goes on by itself when the line breaks.

        Parameters
        ----------
        after : number of the last event received; 0: from the beginning;
            None: only what is new.
        forever : go on after the campaign has ended.
        """
        for event in follow(self._transport, f"{self._path}/events", after):
            yield event
            state = event.data.get("state") if event.kind == "campaign.state" else None
            if state in ENDED and not forever and self.refresh().state == state:
                return

    def wait(
        self,
        *,
        progress: bool = False,
        timeout: float | None = None,
        inversions: bool = True,
    ) -> CampaignHandle:
        """Wait for the Green's functions, and for the inversions of the spec.

        Parameters
        ----------
        progress : show bars on the terminal.
        timeout : s.
        inversions : also wait for those that the spec asks for.

        Returns
        -------
        Itself.

        Raises
        ------
        CampaignError
            when it fails or is cancelled.
        TimeoutError
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        if progress:
            self._wait_with_bars(deadline)
        else:
            self._poll(self._ended, deadline)
        if self.state != "complete":
            raise CampaignError(
                f"campaign {self.name}", self.state, self.data.get("error")
            )
        if inversions:
            for inversion in self.inversions():
                left = None if deadline is None else deadline - time.monotonic()
                inversion.wait(timeout=left)
        return self

    def _ended(self) -> bool:
        return self.refresh().state in ENDED

    def _wait_with_bars(self, deadline: float | None) -> None:
        from afterslip.client.progress import Display

        with Display() as display:

            def look() -> bool:
                ended = self._ended()
                running = self.state == "running"
                display.update(self.data, self.groups() if running else ())
                return ended

            self._poll(look, deadline)

    def greens(self) -> xr.Dataset:
        """Open the Green's functions; values are fetched when they are used."""
        from afterslip.archive import open_greens

        url = f"{self._transport.url}{self._path}/greens.zarr"
        return open_greens(url, self._transport.headers)

    def sample(
        self, stations: Any, times: Sequence[str] | str, *, most: int = 1_000_000
    ) -> xr.DataArray:
        """Evaluate the Green's functions at any place and time; nothing is solved.

        Parameters
        ----------
        stations : a CSV file with ``station,lon,lat`` or ``station,x_km,y_km``; or
            a list of such mappings (with ``name``); or ``{name: (lon, lat)}``, in
            km for a local frame.
        times : such as ``["30 d", "1 yr"]``, or one, ``"30 d"``.
        most : values asked for at once; more are fetched in parts.

        Returns
        -------
        xr.DataArray (source, time, station, component) float64, m per m of slip;
        ``time`` in yr; components east, north, up. Where the error of the mesh was
        estimated, the coordinate ``space_error`` (source, time, station) bounds it.
        """
        from afterslip.client.sampling import sample

        # a text is a sequence, too: of its letters
        wanted = [times] if isinstance(times, str) else list(times)
        return sample(self, self._transport, stations, wanted, most)

    def invert(
        self,
        datasets: Sequence[str],
        *,
        name: str = "inversion",
        smoothness: Strength = "auto",
        sparsity: Strength = 0.0,
        choice: Choice = "evidence",
        folds: int = 5,
        sign: Mapping[str, str] | None = None,
        constraints: Sequence[Mapping[str, Any]] = (),
        moment: Mapping[str, float] | None = None,
        earths: Sequence[Sequence[str]] = (),
        windows: Mapping[str, Any] | None = None,
        wait: bool = True,
        timeout: float | None = None,
    ) -> Inversion:
        """Estimate slip from data.

        Parameters
        ----------
        datasets : names of data sets, of the campaign or added to the server.
        name : what to call it.
        smoothness, sparsity : weights λ and μ; ``auto``: chosen from the data.
        choice : ``evidence``, ``cross_validation`` or ``one_standard_error``.
        folds : parts into which the stations are split.
        sign : such as ``{"dip": "positive"}``.
        constraints : such as ``[{"fault": "slab", "rake": [60, 120]}]``.
        moment : such as ``{"magnitude": 8.1, "error": 0.05, "rake": 90}``.
        earths : ids of campaigns in other earths, a list for each change with its
            alternatives; their differences are errors of the Green's functions.
        windows : of a rupture: ``{"count": 4, "spacing": "2 s", "rupture_speed": km/s,
            "hypocentre": {"x": km, "y": km, "depth": km}}``.
        wait : for the result; else it may not be there yet.
        timeout : s to wait at most.

        Raises
        ------
        ApiError
            when the request is wrong.
        CampaignError
            when the inversion fails.
        """
        names = [datasets] if isinstance(datasets, str) else list(datasets)
        body: dict[str, Any] = {
            "name": name,
            "datasets": names,
            "smoothness": smoothness,
            "sparsity": sparsity,
            "choice": choice,
            "folds": folds,
            "sign": dict(sign or {}),
            "constraints": [dict(item) for item in constraints],
        }
        if moment is not None:
            body["moment"] = dict(moment)
        if windows is not None:
            body["windows"] = dict(windows)
        if earths:
            body["model_error"] = {"campaigns": [list(group) for group in earths]}
        inversion = self.ask(body)
        return inversion.wait(timeout=timeout) if wait else inversion

    def ask(self, request: Mapping[str, Any]) -> Inversion:
        """Ask for an inversion as a spec writes it; its result may not be there yet.

        Parameters
        ----------
        request : an item of a spec's ``inversions``, or what a result holds of it.

        Raises
        ------
        ApiError
            when the request is wrong.
        """
        data = self._transport.post("/v1/inversions", {**request, "campaign": self.id})
        return Inversion(self._transport, data)

    def inversions(self) -> list[Inversion]:
        """Return the inversions of this campaign, oldest first."""
        found = pages(self._transport, "/v1/inversions", campaign=self.id)
        return [Inversion(self._transport, data) for data in found][::-1]

    def fetch(self, directory: str | Path, *, greens: bool = True) -> Path:
        """Copy everything found to a folder.

        It holds ``campaign.json``, ``greens.zarr`` and for each inversion a folder
        with result, report and figures. Files that are there already are not
        fetched again.

        Parameters
        ----------
        greens : False leaves out the Green's functions, the largest part.
        """
        from afterslip.client.download import fetch

        return fetch(self, self._transport, Path(directory), greens=greens)


def pages(transport: Transport, path: str, **params: Any) -> Iterator[dict[str, Any]]:
    """Yield the items of a list, page after page."""
    cursor = None
    while True:
        page = transport.get(path, cursor=cursor, **params)
        yield from page["items"]
        cursor = page.get("next")
        if not cursor:
            return
