"""Who may do what: roles that contain each other, and owners."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Role(StrEnum):
    """What a token allows; each role may do all that the ones before it may."""

    VIEWER = "viewer"
    SUBMITTER = "submitter"
    OPERATOR = "operator"
    ADMIN = "admin"

    def covers(self, other: Role) -> bool:
        """Tell whether this role may do what the other may."""
        order = list(Role)
        return order.index(self) >= order.index(other)


@dataclass(frozen=True, slots=True)
class Principal:
    """The sender of a request.

    Attributes
    ----------
    user : name that things belong to; None where the service knows no users.
    token : id of the token behind the request; None where the service knows none.
    session : the request came with the page's cookie instead of the token itself.
    campaign : the only one that may be read; None for all.
    """

    user: str | None
    role: Role
    token: str | None = None
    expires_at: datetime | None = None
    session: bool = False
    campaign: str | None = None

    def may_change(self, owner: str | None) -> bool:
        """Tell whether things of an owner may be changed.

        What belongs to nobody, made while the service knew no users, is the
        operators' business.
        """
        if self.role.covers(Role.OPERATOR):
            return True
        return self.role is Role.SUBMITTER and owner is not None and owner == self.user


# the service trusts everybody on its own machine until authentication is switched on
EVERYBODY = Principal(None, Role.ADMIN)
