"""What came out of a behaviour, and the campaign that is solved again and again."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from gpu import Taker
from stage import Stage, memory, until

from afterslip.client.campaign import CampaignHandle

GB = 1e9
# of memory that is free again: what the driver rounds and other programs do
NEAR = 64 << 20


@dataclass
class Outcome:
    """What came out of one behaviour.

    Attributes
    ----------
    figures : (value, unit) by name. skipped : checks that need a GPU.
    """

    text: str = ""
    figures: dict[str, tuple[float, str]] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)

    def seconds(self, name: str, value: float) -> None:
        """Keep a time, s."""
        self.figures[f"{name}_s"] = value, "s"

    def bytes(self, name: str, value: int) -> None:
        """Keep a size."""
        self.figures[f"{name}_bytes"] = value, "B"

    def number(self, name: str, value: float) -> None:
        """Keep a number without a unit."""
        self.figures[name] = value, "1"

    def summary(self) -> str:
        """Say it in one line."""
        parts = [self.text] if self.text else []
        for name, (value, unit) in self.figures.items():
            if unit == "B":
                parts.append(f"{name.removesuffix('_bytes')} {value / GB:.2f} GB")
            else:
                label = name.removesuffix("_s") if unit == "s" else name
                parts.append(f"{label} {value:.3g}{' s' if unit == 's' else ''}")
        if self.skipped:
            parts.append(f"skipped without a GPU: {', '.join(self.skipped)}")
        return ", ".join(parts)


# rounding of what is stored in FP32, over the largest value
_SAME = 1e-7


class Watched:
    """A campaign that is solved again and again, and how it should come out.

    Attributes
    ----------
    reference : its curves when nothing disturbed it.
    grown : bytes of GPU memory that its group takes at its peak.
    needs : bytes that it was said to need before.
    base : bytes in use on the GPU before a solving process was started.
    """

    def __init__(self, stage: Stage, content: dict[str, Any], base: int) -> None:
        self.stage, self.content = stage, content
        self.campaign: CampaignHandle | None = None
        self.reference: np.ndarray | None = None
        self.base = base
        self.grown = self.needs = 0
        self.taker: Taker | None = None

    @property
    def gpu(self) -> bool:
        """Whether there is one."""
        return self.stage.gpu is not None

    @property
    def handle(self) -> CampaignHandle:
        """The campaign."""
        assert self.campaign is not None, "it was not solved undisturbed"
        return self.campaign

    def take(self, leave: int, first: int | None = None, grown: int = 0) -> Taker:
        """Let another process take the GPU's memory, until `let_go`."""
        self.taker = Taker(leave, first, grown)
        return self.taker

    def let_go(self) -> None:
        """End the process that holds the memory."""
        if self.taker is not None:
            self.taker.close()
            self.taker = None

    def settle(self) -> None:
        """Leave the campaign complete for the next behaviour."""
        self.let_go()
        if self.campaign is None:
            return
        state = self.campaign.refresh().state
        if state == "failed":
            self.campaign.retry()
        elif state != "complete":
            self.campaign.uncancel()
        until(lambda: self.handle.refresh().state == "complete", 30, "it is complete")

    def compare(self, found: np.ndarray, outcome: Outcome) -> None:
        """See that the curves are those of the undisturbed campaign.

        A solve that starts from a guess may differ in the last bits on a GPU, also
        where products add in a fixed order; whether any did is reported.
        """
        assert self.reference is not None, "it was not solved undisturbed"
        largest = float(np.nanmax(np.abs(self.reference)))
        apart = float(np.nanmax(np.abs(found - self.reference))) / largest
        outcome.number("difference", apart)
        same = np.array_equal(found, self.reference, equal_nan=True)
        outcome.number("same_bits", float(same))
        assert apart < _SAME, f"the result differs by {apart:.1e}"

    def worker(self) -> int:
        """Return the process above those that solve and write."""
        (found,) = {process.ppid() for process in self.stage.children()}
        return int(found)

    def end_children(self) -> None:
        """End what idles, and wait until the GPU has its memory back.

        A process that is killed is gone from the list before its memory is free.
        """
        self.stage.end_children()
        self.freed(self.base + NEAR)

    def released(self, outcome: Outcome, during: int, remaining: int = 0) -> float:
        """See that what a group held is free again but for ``remaining``; s it took."""
        took = self.freed(self.base + remaining + NEAR)
        outcome.bytes("before", self.base)
        outcome.bytes("during", during)
        outcome.bytes("after", memory(self.stage.gpu))
        assert during > self.base + self.grown // 4, "nothing was held meanwhile"
        return took

    def freed(self, most: int, seconds: float = 10.0) -> float:
        """Wait until no more is in use on the GPU; returns how long it took, s."""
        began = time.perf_counter()
        until(
            lambda: memory(self.stage.gpu) <= most,
            seconds,
            f"at most {most / GB:.2f} GB in use; there are "
            f"{memory(self.stage.gpu) / GB:.2f}",
        )
        return time.perf_counter() - began
