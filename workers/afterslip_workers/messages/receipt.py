"""What a worker answers: how an attempt ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import TypeAdapter, field_validator, model_validator

from afterslip_workers.messages.base import TaskError, Versioned, read
from afterslip_workers.messages.manifest import (
    GroupManifest,
    Manifest,
    read_manifest,
)
from afterslip_workers.messages.stats import Failure, Stats


class Receipt(Versioned):
    """Small answer of an attempt; the numbers stay in the store.

    Attributes
    ----------
    token : of the attempt; empty where not even that could be read.
    outcome : "solved" inside a worker only, where another process has to write.
    manifest : what was stored; None unless stored.
    error : None unless failed.
    """

    token: str
    outcome: Literal["stored", "failed", "cancelled", "solved"]
    manifest: Manifest | None = None
    error: Failure | None = None
    stats: Stats = Stats()

    @field_validator("manifest", mode="before")
    @classmethod
    def _of_any_version(cls, content: Any) -> Any:
        # its version is its own: what a release before stored may be reported now
        return read_manifest(content) if isinstance(content, Mapping) else content

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.outcome == "stored" and self.manifest is None:
            raise ValueError("nothing says what was stored: a manifest is missing")
        if self.outcome == "failed" and self.error is None:
            raise ValueError("nothing says why it failed: error is missing")
        return self

    def but(self, **values: Any) -> Receipt:
        """Return this with some figures replaced."""
        return self.model_copy(update={"stats": self.stats.but(**values)})


_FORM = TypeAdapter(Receipt)


def read_receipt(content: Mapping[str, Any]) -> Receipt:
    """Read a receipt.

    Raises
    ------
    TaskError
        Class ``other_release`` for another version of it or its manifest; class
        ``internal`` for content that is no receipt.
    """
    return read(_FORM, content, "receipt", "release")


def of_manifest(manifest: Manifest) -> Receipt:
    """Return the receipt of an attempt that died after it had stored all."""
    stats = manifest.stats if isinstance(manifest, GroupManifest) else Stats()
    return Receipt(
        token=manifest.token, outcome="stored", manifest=manifest, stats=stats
    )


def failed(token: str, error: TaskError, stats: Stats | None = None) -> Receipt:
    """Return the receipt of an attempt that failed."""
    return Receipt(
        token=token,
        outcome="failed",
        error=Failure.of(error),
        stats=stats or Stats(),
    )
