"""Keys: where things lie below the root of a store, a folder or a bucket alike.

::

    files/<sha256>                     uploaded inputs
    models/<digest>/                   model cache
    campaigns/<id>/greens.zarr         accepted Green's functions
    campaigns/<id>/model.json          what the campaign was built from
    campaigns/<id>/order.json          of its sources, written once
    campaigns/<id>/manifests/          of the model and the accepted groups
    campaigns/<id>/inversions/<id>/
    attempts/<token>/                  everything one attempt writes
    checkpoints/<digest>/              half-solved groups
"""

from __future__ import annotations

from afterslip_workers.messages import checked

FILES = "files"
MODELS = "models"
CAMPAIGNS = "campaigns"
ATTEMPTS = "attempts"
CHECKPOINTS = "checkpoints"
FOLDERS = (FILES, MODELS, CAMPAIGNS, ATTEMPTS, CHECKPOINTS)

# files of an attempt
PROGRESS = "progress.json"
CANCEL = "cancel"
LOG = "log.txt"
MANIFEST = "manifest.json"
RECEIPT = "receipt.json"


def attempt(token: str) -> str:
    """Folder of one attempt."""
    return f"{ATTEMPTS}/{checked(token)}"


def campaign(identity: str) -> str:
    """Folder of one campaign."""
    return f"{CAMPAIGNS}/{checked(identity)}"


def model_facts(identity: str) -> str:
    """File of what a campaign was built from."""
    return f"{campaign(identity)}/model.json"


def order(identity: str) -> str:
    """File of the order of a campaign's sources, written once."""
    return f"{campaign(identity)}/order.json"


def greens(identity: str) -> str:
    """Zarr store of a campaign's Green's functions."""
    return f"{campaign(identity)}/greens.zarr"


def accepted_manifest(identity: str, name: str) -> str:
    """Manifest of what a campaign has accepted: ``model`` or a group's number."""
    return f"{campaign(identity)}/manifests/{checked(name)}.json"


def inversion(identity: str, name: str) -> str:
    """Folder of one accepted inversion."""
    return f"{campaign(identity)}/inversions/{checked(name)}"


def model(digest: str) -> str:
    """Folder of a cached model; ``digest`` may carry its ``sha256:`` prefix."""
    return f"{MODELS}/{checked(digest.removeprefix('sha256:'))}"


def file(digest: str) -> str:
    """File of an upload; ``digest`` may carry its ``sha256:`` prefix."""
    return f"{FILES}/{checked(digest.removeprefix('sha256:'))}"


def checkpoint(digest: str) -> str:
    """Folder of the checkpoints of one group's numerics."""
    return f"{CHECKPOINTS}/{checked(digest)}"
