"""Errors of the service.

ServiceError
├── Missing            nothing has that name
├── Conflict           the thing exists, but its state forbids the action
├── KeyReused          an Idempotency-Key was sent with another request
├── LeaseLost          this dispatcher is no longer the leader
├── BindRefused        listening there would open the service to strangers
└── DirectoryBusy      another service works in the directory
"""

from __future__ import annotations


class ServiceError(Exception):
    """Anything the service refuses, with a sentence that a user understands."""


class Missing(ServiceError):
    """Nothing has that name."""

    def __init__(self, noun: str, name: str) -> None:
        super().__init__(f"there is no {noun} {name!r}")
        self.noun = noun
        self.name = name


class Conflict(ServiceError):
    """The state of the thing forbids the action."""


class KeyReused(ServiceError):
    """An Idempotency-Key was sent before with another request."""


class LeaseLost(ServiceError):
    """Another dispatcher leads."""


class BindRefused(ServiceError):
    """The address is reachable by others and this version knows no users."""


class DirectoryBusy(ServiceError):
    """Another service works in the directory."""
