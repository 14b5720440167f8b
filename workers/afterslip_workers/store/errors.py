"""What a store refuses."""

from __future__ import annotations


class StoreLostError(OSError):
    """The store cannot be reached: a mount, a network or a server is away."""


class StoreError(Exception):
    """The store does not hold what it should; nothing was changed."""


class NotDeliveredError(StoreError):
    """The result is on its worker's disk still, and comes when the store is back."""
