"""What travels between the service and its workers, and what stays on disks of it.

::

    Envelope   -> worker   one attempt at one piece of work
    Receipt    <- worker   how it ended
      Manifest             what it stored: of a model, a group or an inversion
    Progress <- worker   how far it is, rewritten while it lives
    ModelFacts           what a campaign was built from, beside its Green's functions

All are written as JSON and carry a version: who reads one of another version says so
with class ``other_release``, and nothing is lost, because the work is done again.
"""

from afterslip_workers.messages.base import READ, VERSION, TaskError, checked
from afterslip_workers.messages.envelope import Envelope, Group, Origin, read_envelope
from afterslip_workers.messages.manifest import (
    Cover,
    GroupManifest,
    InversionManifest,
    Manifest,
    ModelManifest,
    NamedInversion,
    Reuse,
    read_manifest,
)
from afterslip_workers.messages.model_facts import ModelFacts, read_model_facts
from afterslip_workers.messages.progress import Progress, read_progress
from afterslip_workers.messages.receipt import (
    Receipt,
    failed,
    of_manifest,
    read_receipt,
)
from afterslip_workers.messages.stats import Failure, Stats

__all__ = [
    "READ",
    "VERSION",
    "Cover",
    "Envelope",
    "Failure",
    "Group",
    "GroupManifest",
    "InversionManifest",
    "Manifest",
    "ModelFacts",
    "ModelManifest",
    "NamedInversion",
    "Origin",
    "Progress",
    "Receipt",
    "Reuse",
    "Stats",
    "TaskError",
    "checked",
    "failed",
    "of_manifest",
    "read_envelope",
    "read_manifest",
    "read_model_facts",
    "read_progress",
    "read_receipt",
]
