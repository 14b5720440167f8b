"""The verbs of the command, and where each is found; nothing of them is imported."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import entry_points

GROUP = "afterslip.commands"

HERE = "On this machine"
THERE = "On a server"

# name → (module:function, what it does)
CLIENT = {
    "check": (
        "afterslip.cli.check:check",
        "Check a campaign, and say what it will need.",
    ),
    "submit": ("afterslip.cli.submit:submit", "Send a campaign to a server."),
    "perturb": (
        "afterslip.cli.perturb:perturb",
        "Send a campaign in other earths, for its model error.",
    ),
    "list": ("afterslip.cli.queries:list_campaigns", "List the campaigns of a server."),
    "show": (
        "afterslip.cli.queries:show",
        "Show a campaign, its groups and inversions.",
    ),
    "watch": ("afterslip.cli.watch:watch", "Follow a campaign with live bars."),
    "cancel": ("afterslip.cli.actions:cancel", "Stop a campaign; what is done stays."),
    "retry": ("afterslip.cli.actions:retry", "Queue again what has failed."),
    "uncancel": ("afterslip.cli.actions:uncancel", "Take up what was cancelled."),
    "invalidate": (
        "afterslip.cli.actions:invalidate",
        "Solve accepted groups again.",
    ),
    "explain": (
        "afterslip.cli.explain:explain",
        "Say why a campaign waits, failed or reused nothing.",
    ),
    "change": (
        "afterslip.cli.actions:change",
        "Change a campaign's name, priority or tags.",
    ),
    "delete": (
        "afterslip.cli.actions:delete",
        "Cancel a campaign and remove it from the lists.",
    ),
    "pause": ("afterslip.cli.actions:pause", "Start no further work of a campaign."),
    "resume": ("afterslip.cli.actions:resume", "Go on after a pause."),
    "fetch": ("afterslip.cli.fetch:fetch", "Copy a campaign's results to a folder."),
    "invert": ("afterslip.cli.invert:invert", "Estimate slip from data sets."),
    "reproduce": (
        "afterslip.cli.reproduce:reproduce",
        "Invert again from a result's own record, and compare.",
    ),
    "webhook": (
        "afterslip.cli.webhook:app",
        "Tell an address when campaigns and inversions have ended.",
    ),
    "usage": ("afterslip.cli.usage:usage", "Say who has used how much."),
}

LOCAL = {
    "test-resolution": (
        "afterslip.cli.restoration:restoration",
        "Invert slip that is known: checkerboard, spikes, own model.",
    ),
    "motion": (
        "afterslip.cli.motion:motion",
        "Make a table of ground motion from MiniSEED or SAC.",
    ),
    "export": ("afterslip.cli.export:export", "Write a result in other formats."),
    # of another package, of no use without its results: found by name when used
    "compare-rheologies": (
        "afterslip_workers.comparison:compare_rheologies",
        "Compare runs whose earths differ, by evidence and score.",
    ),
}

# packages above the client bring these; listed here so that help imports none of them
SUMMARIES = {
    "run": "Run a whole campaign here, from spec to report.",
    "forward": "Displacement of a given slip, without a service.",
    "serve": "Serve the API, the dispatcher and the dashboard.",
    "dispatch": "Place work on a scheduler, without an API.",
    "token": "Make, list and revoke tokens.",
    "worker": "Join a scheduler as a worker.",
    "verify": "Compare the solver with exact solutions.",
    "bench": "Measure speed beside the machine's bounds.",
    "fsck": "Check a store against its manifests, and repair it.",
    "doctor": "Say what this machine can do, and what is wrong.",
}


@dataclass(frozen=True, slots=True)
class Verb:
    """One verb of the command.

    Attributes
    ----------
    target : ``module:function``, imported only when the verb is used.
    summary : one line for the list of verbs.
    panel : heading in the list.
    """

    name: str
    target: str
    summary: str
    panel: str


def verbs() -> dict[str, Verb]:
    """Return all verbs, those of this machine first."""
    found = {point.name: point for point in entry_points(group=GROUP)}
    names = [name for name in SUMMARIES if name in found]
    names += sorted(set(found) - set(SUMMARIES))
    here = [
        Verb(n, found[n].value, SUMMARIES.get(n, f"From {found[n].module}."), HERE)
        for n in names
    ]
    here += [Verb(n, target, text, HERE) for n, (target, text) in LOCAL.items()]
    there = [Verb(n, target, text, THERE) for n, (target, text) in CLIENT.items()]
    return {verb.name: verb for verb in [*here, *there]}
