"""Which kinds of physics are installed here."""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from afterslip.errors import one_problem

if TYPE_CHECKING:
    from afterslip.physics.base import Physics

GROUP = "afterslip.physics"
# of specs and stores that do not say
DEFAULT = "viscoelastic"
_HINT = "install its package again, with what it needs"


def installed() -> list[str]:
    """Return the names of all that are installed, the default one first."""
    names = {point.name for point in entry_points(group=GROUP)}
    return sorted(names, key=lambda name: (name != DEFAULT, name))


@cache
def find(name: str) -> Physics:
    """Return a physics by its name.

    Raises
    ------
    SpecError
        It is not installed here, and the hint names those that are; or its package
        cannot be imported, and the message says why.
    """
    points = list(entry_points(group=GROUP, name=name))
    if not points:
        known = ", ".join(installed())
        raise one_problem("physics", name, "is not installed here", f"known: {known}")
    try:
        found: Physics = points[0].load()
    except Exception as error:
        # whatever somebody else's package raises
        why = f"cannot be imported from {points[0].value} ({described(error)})"
        raise one_problem("physics", name, why, _HINT) from error
    return found


def described(error: Exception) -> str:
    """Return an error of somebody else's package in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def name_of(spec: Any) -> str:
    """Return the physics that plain data of a spec ask for."""
    name = spec.get("physics", DEFAULT) if isinstance(spec, dict) else DEFAULT
    # what is no text is left to the schema, which says so
    return name if isinstance(name, str) and name else DEFAULT
