"""A worker whose tasks are quick, but write what real tasks write.

Attempt folders, progress, manifests, checksums and Zarr chunks are real, so that
promotion, closing and reading are tested with the real functions.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from pathlib import Path

import zarr
from tiny_store import N_NODE, write_campaign, write_group

from afterslip_workers.messages import (
    GroupManifest,
    InversionManifest,
    ModelManifest,
    Stats,
    read_envelope,
)
from afterslip_workers.store import durable, manifest, paths, spool
from afterslip_workers.store.open import open_store
from afterslip_workers.store.progress import ProgressFile, cancel_requested

DIGEST = "sha256:" + "ab" * 32


class TinyWorker:
    """Callable like ``entry.execute``.

    Attributes
    ----------
    n_sources : unit sources of every campaign.
    delay_s : how long a group takes.
    fail : (kind, index) -> outcomes of the next attempts: an error class, or a
        callable that is called with the envelope before the work.
    ran : number of attempts begun, by (campaign, kind, index).
    """

    def __init__(self, n_sources=10, delay_s=0.0):
        self.n_sources = n_sources
        self.delay_s = delay_s
        self.fail = {}
        self.ran = Counter()
        self.gate = threading.Event()
        self.gate.set()

    def __call__(self, content):
        envelope = read_envelope(content)
        index = envelope.group.index if envelope.group else 0
        self.ran[envelope.campaign, envelope.kind, index] += 1
        spool.folder_of(envelope).mkdir(parents=True, exist_ok=True)
        progress = ProgressFile(spool.folder_of(envelope), envelope.token)
        progress.beat(force=True)
        planned = self.fail.get((envelope.kind, index), [])
        plan = planned.pop(0) if planned else None
        if callable(plan):
            plan = plan(envelope)
        if plan is not None:
            error = {"class": plan, "message": f"a planned {plan}"}
            return self._receipt(envelope, "failed", error=error)
        if not self._wait(envelope, progress):
            return self._receipt(envelope, "cancelled")
        made = getattr(self, f"_{envelope.kind}")(envelope)
        return self._receipt(envelope, "stored", made)

    def _wait(self, envelope, progress):
        end = time.monotonic() + self.delay_s
        done = 0
        while time.monotonic() < end or not self.gate.is_set():
            if cancel_requested(open_store(envelope.store), envelope.token):
                return False
            done += 1
            # a solve takes about three seconds, so that it is looked at more than once
            solve, step = divmod(done, 150)
            news = {"phase": "solving", "solves_done": solve, "solves_expected": 8}
            progress.update({**news, "iteration": step, "residual": 10 ** (-step / 15)})
            progress.beat(force=True)
            time.sleep(0.02)
        return not cancel_requested(open_store(envelope.store), envelope.token)

    def _receipt(self, envelope, outcome, made=None, error=None):
        stats = {"solves": 3, "iterations": 30, "seconds": 0.1, "residual": 1e-9}
        return {
            "token": envelope.token,
            "outcome": outcome,
            "manifest": made and made.as_json(),
            "error": error,
            "stats": {**stats, "worker": "tiny"},
        }

    def _model(self, envelope):
        sources = list(range(self.n_sources))
        groups = [sources[i : i + 4] for i in range(0, len(sources), 4)]
        folder = Path(envelope.store) / paths.campaign(envelope.campaign)
        root = Path(envelope.store) / paths.greens(envelope.campaign)
        if not (folder / "model.json").exists():
            scratch = durable.scratch_beside(root)
            known = {"spec": json.dumps(envelope.spec), "status": "building"}
            written = write_campaign(
                scratch, envelope.campaign, self.n_sources, **known
            )
            durable.publish_directory(scratch, root)
            facts = {**written, "digest": DIGEST, "groups": groups}
            durable.write_json(folder / "model.json", facts)
        made = ModelManifest(
            token=envelope.token,
            kind="model",
            campaign=envelope.campaign,
            model_digest=DIGEST,
            groups=groups,
            n_sources=self.n_sources,
            n_node=N_NODE,
            n_unknowns=3 * N_NODE,
            n_elements=2,
            quality={"min": 0.5, "mean": 0.8},
            files={},
        )
        manifest.commit(spool.folder_of(envelope), made)
        return made

    def _group(self, envelope):
        part = spool.folder_of(envelope) / "group.zarr"
        write_group(part, self.n_sources, envelope.sources)
        files = manifest.seal(part)
        files = {name: s for name, s in files.items() if "/c/" in name}
        made = GroupManifest(
            token=envelope.token,
            kind="greens",
            campaign=envelope.campaign,
            model_digest=DIGEST,
            group=envelope.group,
            files=files,
            stats=Stats(solves=3),
        )
        manifest.commit(spool.folder_of(envelope), made)
        return made

    def _inversion(self, envelope):
        part = spool.folder_of(envelope) / "result"
        part.mkdir(exist_ok=True)
        (part / "result.nc").write_bytes(b"CDF tiny")
        (part / "slip.csv").write_text("source,slip\n0,1.0\n")
        (part / "report.html").write_text("<!doctype html><title>tiny</title>")
        (part / "slip.png").write_bytes(b"\x89PNG tiny")
        (part / "data_fit.csv").write_bytes(b"station,observed")
        made = InversionManifest(
            token=envelope.token,
            kind="inversion",
            campaign=envelope.campaign,
            model_digest=DIGEST,
            inversion={"id": envelope.inversion["id"]},
            summary={"magnitude": 9.0, "peak_slip": 50.0},
            files=manifest.seal(part),
        )
        manifest.commit(spool.folder_of(envelope), made)
        return made


def group_manifest(token, campaign, index):
    """Return the manifest of a group without files, as JSON."""
    place = {"index": index, "sources": []}
    named = {"token": token, "campaign": campaign, "kind": "greens"}
    return {"version": 2, **named, "group": place, "files": {}}


def stored(store: Path, campaign: str):
    """Return the response array of an accepted campaign."""
    where = Path(store) / paths.greens(campaign)
    array = zarr.open_group(str(where), mode="r")["response"]
    assert isinstance(array, zarr.Array)
    return array[:]


def spec(name="tiny", **changes):
    """Return a small valid campaign spec."""
    whole = {
        "name": name,
        "model": {
            "frame": {"kind": "local"},
            "domain": {"x": [-100, 100], "y": [-100, 100], "depth": 60},
            "layers": [
                {"name": "crust", "bottom": 20, "vp": 6.4, "vs": 3.7, "rho": 2800},
                {
                    "name": "mantle",
                    "bottom": 60,
                    "vp": 8.0,
                    "vs": 4.6,
                    "rho": 3300,
                    "rheology": {"maxwell": {"viscosity": 1e19}},
                },
            ],
            "faults": [
                {
                    "name": "main",
                    "plane": {
                        "x": 0,
                        "y": 0,
                        "top": 2,
                        "strike": 0,
                        "dip": 30,
                        "length": 40,
                        "width": 20,
                    },
                }
            ],
            "mesh": {"size": {"fault": 10, "far": 40}},
        },
        "sources": {"fault": "main", "along_strike": 5, "down_dip": 1},
        "times": {"until": "1 yr", "output": ["0 d", "30 d"]},
    }
    return json.loads(json.dumps({**whole, **changes}))
