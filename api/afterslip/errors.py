"""What goes wrong, in the user's words.

AfterslipError
├── SpecError      a spec, a file or a request is wrong; carries every problem found
└── ArchiveError   a store cannot be read or does not hold what was asked for
    └── DamagedError   a stored file is missing, or is not what was written
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from math import isfinite
from typing import Any

SHOWN = 80
# more of a list or mapping than this would not be shown anyway
_ITEMS = 20


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong and how to correct it.

    Attributes
    ----------
    path : where, e.g. ``model.layers[1].vs`` or ``stations.csv line 7``.
    value : what stands there; None where nothing stands there.
    message : what is wrong with it, e.g. "must be below vp/1.155".
    hint : what to write instead; may be empty.
    """

    path: str
    value: Any
    message: str
    hint: str = ""

    def __str__(self) -> str:
        where = self.path or "spec"
        value = "" if self.value is None else f" = {show(self.value)}"
        hint = f" ({self.hint})" if self.hint else ""
        return f"{where}{value}: {self.message}{hint}"

    def under(self, prefix: str) -> Problem:
        """Return the same problem, with its path below ``prefix``."""
        if not prefix:
            return self
        joint = "" if not self.path or self.path.startswith("[") else "."
        path = f"{prefix}{joint}{self.path}"
        return Problem(path, self.value, self.message, self.hint)

    def as_dict(self) -> dict[str, Any]:
        """Return JSON-able fields path, value, message, hint.

        The hint stands a second time under ``mend``, its old key, which is
        deprecated and goes in 0.3.
        """
        value = self.value
        plain = value is None or isinstance(value, bool)
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            # what cannot be shown, e.g. half a surrogate pair, cannot be sent either
            finite = not isinstance(value, float) or isfinite(value)
            plain = finite and show(value) == str(value)
        return {
            "path": self.path,
            "value": value if plain else show(value),
            "message": self.message,
            "hint": self.hint,
            "mend": self.hint,
        }


class AfterslipError(Exception):
    """Root of the errors of this package."""


class SpecError(AfterslipError):
    """A spec, a file that it names, or a request is wrong.

    Parameters
    ----------
    problems : all that was found; at least one.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__(self.problems)

    def __str__(self) -> str:
        if len(self.problems) == 1:
            return str(self.problems[0])
        lines = [f"{len(self.problems)} problems:"]
        return "\n".join(lines + [f"  {problem}" for problem in self.problems])

    def as_dicts(self) -> list[dict[str, Any]]:
        """Return the problems as JSON-able dictionaries."""
        return [problem.as_dict() for problem in self.problems]


class ArchiveError(AfterslipError):
    """A store cannot be read, or does not hold what was asked for."""


class DamagedError(ArchiveError):
    """A stored file is missing, or does not hold what was written.

    Parameters
    ----------
    store : name of the store.
    file : key of the file below it.
    what : what is wrong with it, as the end of a sentence.
    hint : what to do about it.
    group : group of sources that the file belongs to; None: to no group.
    """

    def __init__(
        self,
        store: str,
        file: str,
        what: str,
        hint: str = "",
        *,
        group: int | None = None,
    ) -> None:
        self.store, self.file, self.group = store, file, group
        where = "" if group is None else f" of group {group}"
        text = f"{store} is damaged: {file}{where} {what}"
        super().__init__(f"{text} ({hint})" if hint else text)

    def __reduce__(self) -> tuple[Any, ...]:
        return _damaged, (str(self), self.store, self.file, self.group)


def _damaged(text: str, store: str, file: str, group: int | None) -> DamagedError:
    """Return the error that another process raised."""
    found = DamagedError(store, file, "", group=group)
    found.args = (text,)
    return found


def one_problem(path: str, value: Any, message: str, hint: str = "") -> SpecError:
    """Return an error that carries a single problem."""
    return SpecError([Problem(path, value, message, hint)])


def show(value: Any) -> str:
    """Return a short, one-line text of a value as a user would write it."""
    if value is True or value is False:
        text = str(value).lower()
    elif value is None:
        text = "null"
    elif isinstance(value, dict):
        pairs = islice(value.items(), _ITEMS)
        text = "{" + ", ".join(f"{show(k)}: {show(v)}" for k, v in pairs) + "}"
    elif isinstance(value, list | tuple):
        text = "[" + ", ".join(show(v) for v in value[:_ITEMS]) + "]"
    elif isinstance(value, str):
        text = value[: SHOWN + 1]
    else:
        text = str(value)
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
