"""Where the time of a campaign's groups goes, from what the service has recorded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np

from afterslip_common.record import Record, record

# shorter phases of the first group are not worth a word
_BRIEF_S = 0.5


def accepted_at(events: Iterable[Any]) -> dict[int, float]:
    """Return when each group was accepted, s since 1970, from a campaign's events."""
    return {
        int(event.data["index"]): datetime.fromisoformat(event.time).timestamp()
        for event in events
        if event.kind == "group.state" and event.data.get("state") == "accepted"
    }


def by_phase(attempts: Sequence[Mapping[str, float]]) -> dict[str, list[float]]:
    """Return how long each attempt took in each phase, s, in the phases' order."""
    names = dict.fromkeys(name for phases in attempts for name in phases)
    return {name: [phases.get(name, 0.0) for phases in attempts] for name in names}


def records(
    groups: Sequence[Mapping[str, Any]], accepted: Mapping[int, float]
) -> list[Record]:
    """Return means and medians over groups that one worker solved on this machine.

    Means are of the groups after the first, which prepares the model; the begins of two
    that are solved at a time are near each other.

    Parameters
    ----------
    groups : {"index", "attempts"}; the last attempt of each was accepted.
    accepted : when, s since 1970, by group.
    """
    tries = {int(group["index"]): group["attempts"][-1] for group in groups}
    # stored groups that were only copied have no process that solved them
    stats = {i: t["stats"] for i, t in tries.items() if t["stats"].get("phases")}
    order = sorted(stats, key=lambda index: float(stats[index]["began"]))
    begins = [float(stats[index]["began"]) for index in order]
    solving = [stats[i].get("solving_s", stats[i]["seconds"]) for i in order]
    taken = [datetime.fromisoformat(tries[i]["finished_at"]).timestamp() for i in order]
    ended = [float(stats[index]["ended"]) for index in order]
    means = [
        ("pace", np.diff(begins), "from one group's begin to the next one's"),
        ("held", solving[:-1], "of that the process that solves has the group"),
        ("idle", np.diff(begins) - solving[:-1], "of that it has none"),
    ]
    figures = [
        ("receipt", np.subtract(taken, ended), "from the attempt's end to its receipt"),
        (
            "acceptance",
            [accepted[index] - taken[k] for k, index in enumerate(order)],
            "from the receipt to the acceptance",
        ),
    ]
    overlapped = sum(later < end for later, end in zip(begins[1:], ended, strict=False))
    note = f"of {len(order)} groups, began before the one before had ended"
    found = [record("campaign_overlapped", float(overlapped), "1", None, note)]
    phases_s = by_phase([stats[i]["phases"] for i in order])
    first = {name: seconds[0] for name, seconds in phases_s.items()}
    note = ", ".join(f"{name} {s:.1f}" for name, s in first.items() if s > _BRIEF_S)
    found.append(record("campaign_first_group_s", sum(first.values()), "s", None, note))
    figures += [
        (f"phase_{name.replace(' ', '_')}", seconds, f"in the phase {name}")
        for name, seconds in phases_s.items()
    ]
    for name, values, text in means:
        mean = float(np.mean(values[1:] if len(values) > 1 else values))
        found.append(record(f"campaign_{name}_s", mean, "s", None, f"mean, {text}"))
    for name, values, text in figures:
        middle = float(np.median(values)) if len(values) else 0.0
        found.append(record(f"campaign_{name}_s", middle, "s", None, f"median, {text}"))
    return found
