"""What goes wrong between a client and a server.

AfterslipError
├── ApiError           the server refused or failed; carries its problem document
├── NoServerError      nothing answers, or what answers is no afterslip server
├── CredentialError    a token cannot be had
└── CampaignError      a campaign or an inversion ended without a result
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from afterslip.errors import AfterslipError, Problem


class ApiError(AfterslipError):
    """The server answered with an error (RFC 9457 problem document).

    Attributes
    ----------
    status : HTTP status.
    title, detail : of the problem document.
    problems : each with path, value, message and hint; may be empty.
    """

    def __init__(
        self, status: int, title: str, detail: str, problems: Iterable[Problem] = ()
    ) -> None:
        self.status, self.title, self.detail = status, title, detail
        self.problems = tuple(problems)
        super().__init__(status, title, detail)

    @property
    def exit_code(self) -> int:
        """Return 2 where the request was at fault, else 1."""
        return 2 if self.status in (400, 401, 403, 404, 413, 422) else 1

    def __str__(self) -> str:
        if len(self.problems) == 1:
            return str(self.problems[0])
        if self.problems:
            lines = [f"{len(self.problems)} problems:"]
            return "\n".join(lines + [f"  {problem}" for problem in self.problems])
        return self.detail or f"{self.title} ({self.status})"

    @classmethod
    def of(cls, status: int, document: Any) -> ApiError:
        """Return the error of a problem document, however little of one it is."""
        if not isinstance(document, dict):
            return cls(status, "error", f"the server answered {status}")
        errors = document.get("errors")
        problems = [
            Problem(
                str(item.get("path") or ""),
                item.get("value"),
                str(item.get("message") or "is not valid"),
                # an older server sends it as mend
                str(item.get("hint") or item.get("mend") or ""),
            )
            for item in (errors if isinstance(errors, list) else [])
            if isinstance(item, dict)
        ]
        title = str(document.get("title") or "error")
        return cls(status, title, str(document.get("detail") or ""), problems)


class NoServerError(AfterslipError):
    """Nothing answers at the address, or what answers speaks another language."""


class CredentialError(AfterslipError):
    """A token cannot be had from where it should be."""

    exit_code = 2


class CampaignError(AfterslipError):
    """A campaign, or an inversion, ended without a result.

    Attributes
    ----------
    state : ``failed`` or ``cancelled``.
    """

    def __init__(self, name: str, state: str, error: dict[str, Any] | None) -> None:
        self.state = state
        reason = ""
        if error:
            reason = f": {error.get('message') or error.get('class')}"
        super().__init__(f"{name} was {state}{reason}" if state == "cancelled"
                         else f"{name} {state}{reason}")  # fmt: skip
