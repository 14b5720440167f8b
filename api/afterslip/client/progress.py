"""Live bars of a campaign on a terminal, and lines anywhere else."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

SHOWN_GROUPS = 8
# of a whole screen, the lines that are not running groups
OTHER_LINES = 8
SHOWN_LINES = 5
# s between lines that say nothing but how far it is
LINE_EVERY_S = 10.0


class Display:
    """Bars: the groups that are done, and how far each running one is.

    Where nobody looks (a file, a pipe) there is a line for each change of state, and
    one now and then for what is done.

    Parameters
    ----------
    console : where to; the terminal's standard error by default, so that a
        command's output can be piped.
    whole_screen : take the whole terminal, and give it back in the end with the lines
        that were said.
    """

    def __init__(
        self, console: Console | None = None, *, whole_screen: bool = False
    ) -> None:
        self._progress = Progress(
            TextColumn("{task.description}", style="bold"),
            BarColumn(bar_width=28),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}", style="dim"),
            console=console or Console(stderr=True),
        )
        self._live = self._progress.console.is_terminal
        self._screen: Live | None = None
        self._lines: list[str] = []
        if whole_screen and self._live:
            self._screen = Live(
                console=self._progress.console, screen=True,
                get_renderable=self._whole_screen, refresh_per_second=4,
            )  # fmt: skip
        self._whole: TaskID | None = None
        self._groups: dict[int, TaskID] = {}
        self._said, self._said_at = ("", ""), float("-inf")

    def __enter__(self) -> Self:
        if self._screen is not None:
            self._screen.start()
        elif self._live:
            self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._screen is not None:
            self._screen.stop()
            self._screen = None
            for line in self._lines:
                self.say(line)
        elif self._live:
            self._progress.stop()

    def _whole_screen(self) -> RenderableType:
        said = [Text(line, style="dim") for line in self._lines[-SHOWN_LINES:]]
        leave = Text("Ctrl-C stops watching, not the campaign.", style="dim")
        return Group(self._progress, Text(""), *said, leave)

    def update(
        self, campaign: Mapping[str, Any], groups: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        """Show a campaign and its groups as the API gives them."""
        counts = campaign.get("progress") or {}
        total = int(counts.get("total") or 0) or None
        if not self._live:
            self._line(counts, campaign)
            return
        if self._whole is None:
            self._whole = self._progress.add_task("", total=total, note="")
        state = str(campaign.get("state", ""))
        self._progress.update(
            self._whole,
            description=f"{campaign.get('name', '')}: {state}",
            total=total,
            completed=int(counts.get("accepted") or 0),
            note=_note(counts, campaign),
        )
        self._running([g for g in groups if g.get("state") == "running"])

    def _line(self, counts: Mapping[str, Any], campaign: Mapping[str, Any]) -> None:
        state = str(campaign.get("state", ""))
        text = _note(counts, campaign)
        if counts.get("total"):
            done = f"{counts.get('accepted') or 0} of {counts['total']} groups"
            text = f"{done}, {text}" if text else done
        old = self._said
        soon = time.monotonic() - self._said_at < LINE_EVERY_S
        if old == (state, text) or (old[0] == state and soon):
            return
        self._said, self._said_at = (state, text), time.monotonic()
        what = f"{campaign.get('name', '')}: {state}"
        self.say(f"{time.strftime('%H:%M:%S')} {what}{', ' if text else ''}{text}")

    def _running(self, groups: Sequence[Mapping[str, Any]]) -> None:
        room = SHOWN_GROUPS
        if self._screen is not None:
            room = max(1, self._progress.console.height - OTHER_LINES)
        shown = {int(g["index"]): g for g in groups[:room]}
        for index in set(self._groups) - set(shown):
            self._progress.remove_task(self._groups.pop(index))
        for index, group in shown.items():
            if index not in self._groups:
                self._groups[index] = self._progress.add_task(
                    f"  group {index}", total=None, note=""
                )
            live = group.get("progress") or {}
            expected = live.get("solves_expected")
            self._progress.update(
                self._groups[index],
                total=expected or None,
                completed=int(live.get("solves_done") or 0),
                note=_group_note(live, group),
            )

    def say(self, text: str) -> None:
        """Write a line above the bars; below them where they have the whole screen."""
        if self._screen is not None:
            self._lines.append(text)
            return
        self._progress.console.print(
            text, highlight=False, markup=False, soft_wrap=True
        )


def _note(counts: Mapping[str, Any], campaign: Mapping[str, Any]) -> str:
    parts = [
        f"{counts[state]} {state}"
        for state in ("running", "queued", "failed", "cancelled")
        if counts.get(state)
    ]
    if not counts.get("total") and campaign.get("state") == "building":
        parts.append("mesh and materials")
    return ", ".join(parts)


def _group_note(live: Mapping[str, Any], group: Mapping[str, Any]) -> str:
    parts = [str(live.get("phase") or "")]
    residual = live.get("residual")
    if isinstance(residual, int | float):
        parts.append(f"residual {residual:.1e}")
    parts.append(str(group.get("worker") or ""))
    return " · ".join(part for part in parts if part)
