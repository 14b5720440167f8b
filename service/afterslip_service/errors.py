"""Errors of the service.

ServiceError
├── MissingError         nothing has that name
├── ConflictError        the thing exists, but its state forbids the action
├── KeyReusedError       an Idempotency-Key was sent with another request
├── ForbiddenError       the role does not reach, or another user owns the thing
├── LeaseLostError       this dispatcher is no longer the leader
├── BindRefusedError     listening there would open the service to anybody
├── SchedulerRefusedError  a scheduler without TLS would open the workers to them
├── StoreBusyError       a service with another database works on the store
└── DirectoryBusyError   another service works in the directory
"""

from __future__ import annotations


class ServiceError(Exception):
    """Anything the service refuses, with a sentence that a user understands."""


class MissingError(ServiceError):
    """Nothing has that name."""

    def __init__(self, noun: str, name: str) -> None:
        super().__init__(f"there is no {noun} {name!r}")
        self.noun = noun
        self.name = name


class ConflictError(ServiceError):
    """The state of the thing forbids the action."""


class KeyReusedError(ServiceError):
    """An Idempotency-Key was sent before with another request."""


class ForbiddenError(ServiceError):
    """The sender may not do this."""


class LeaseLostError(ServiceError):
    """Another dispatcher leads."""


class BindRefusedError(ServiceError):
    """The address is reachable by others and authentication is off."""


class SchedulerRefusedError(ServiceError):
    """The scheduler is reachable by others, speaks no TLS, and authentication is on."""


class StoreBusyError(ServiceError):
    """A service with another database works on the store."""


class DirectoryBusyError(ServiceError):
    """Another service works in the directory."""
