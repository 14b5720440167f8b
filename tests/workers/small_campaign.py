"""A campaign that solves in a second, and the envelopes of its work."""

import hashlib
from pathlib import Path

import numpy as np

from afterslip.identity import canonical_spec
from afterslip.physics.registry import DEFAULT
from afterslip.spec import parse_campaign
from afterslip.spec.files import LocalFiles
from afterslip_workers import entry
from afterslip_workers.messages import VERSION

RNG = np.random.default_rng(5)
NAMES = [f"S{number:02d}" for number in range(16)]
X_KM = np.round(RNG.uniform(-90, 110, len(NAMES)), 3)
Y_KM = np.round(RNG.uniform(-70, 70, len(NAMES)), 3)

SPEC = {
    "name": "small thrust",
    "model": {
        "frame": {"kind": "local"},
        "domain": {"x": [-200, 200], "y": [-200, 200], "depth": 150},
        "layers": [
            {"name": "crust", "bottom": 30, "vp": 6.4, "vs": 3.7, "rho": 2800},
            {
                "name": "mantle",
                "bottom": 150,
                "vp": 8.0,
                "vs": 4.6,
                "rho": 3300,
                "rheology": {"maxwell": {"viscosity": 1.0e19}},
            },
        ],
        "faults": [
            {
                "name": "main",
                "plane": {
                    "x": 0,
                    "y": 0,
                    "top": 0,
                    "strike": 0,
                    "dip": 30,
                    "length": 80,
                    "width": 50,
                },
            }
        ],
        "mesh": {"size": {"fault": 20, "far": 100}},
    },
    "sources": {"fault": "main", "along_strike": 3, "down_dip": 1},
    "times": {"until": "10 yr", "output": ["0 d", "30 d", "10 yr"]},
    "stations": {"file": "stations.csv"},
}


class SmallCampaign:
    """A store with uploaded files, and envelopes for it."""

    def __init__(self, root: Path, spec=SPEC, identity="c1", files=None):
        self.root, self.identity = root, identity
        source = root / f"{identity}-input"
        source.mkdir(parents=True, exist_ok=True)
        entry.prepare(root)
        lines = [
            f"{name},{x},{y}\n" for name, x, y in zip(NAMES, X_KM, Y_KM, strict=True)
        ]
        content = {"stations.csv": "station,x_km,y_km\n" + "".join(lines)}
        for name, text in {**content, **(files or {})}.items():
            (source / name).write_text(text)
            digest = hashlib.sha256(text.encode()).hexdigest()
            (root / "files" / digest).write_text(text)
        self.spec = canonical_spec(parse_campaign(spec, source), LocalFiles(source))

    def envelope(self, kind, token, **more):
        return {
            "version": VERSION,
            "token": token,
            "kind": kind,
            "campaign": self.identity,
            "physics": self.spec.get("physics", DEFAULT),
            "spec": self.spec,
            "store": str(self.root),
            "backend": "cpu",
            **more,
        }

    def group(self, token, index, sources, **more):
        group = {"index": index, "sources": sources}
        return self.envelope("group", token, group=group, **more)

    @property
    def greens(self) -> Path:
        return self.root / "campaigns" / self.identity / "greens.zarr"


def observations(displacement, sigma=0.001):
    """CSV of (n_station, 3) m."""
    head = "station,x_km,y_km,east,north,up,sigma_e,sigma_n,sigma_u,type\n"
    lines = [
        f"{name},{x},{y},{e:.6f},{n:.6f},{u:.6f},{sigma},{sigma},{sigma},gnss\n"
        for name, x, y, (e, n, u) in zip(NAMES, X_KM, Y_KM, displacement, strict=True)
    ]
    return head + "".join(lines)


def stored(receipt):
    assert receipt["outcome"] == "stored", receipt["error"]
    return receipt["manifest"]
