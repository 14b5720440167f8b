"""What a body thinner than the elements costs, by what the mesh does with its bottom.

    python benchmarks/thin_body.py [--json FILE]

The example of the Tohoku earthquake, whose plate has a crust of 7 km. Elastic
displacement of four neighbouring unit sources, and what ten years add, at 1,369 points
of the ground within 450 km, beside a mesh with edges of 9 km on the fault.
"""

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from cut_meshes import TOHOKU, middle_slip

from afterslip import Campaign
from afterslip.spec import parse_campaign
from afterslip.spec.files import LocalFiles
from afterslip.spec.inputs import resolve
from afterslip_common.record import Record, record, write_records
from afterslip_common.terms import KM, YEAR
from afterslip_solver.greens import prepare
from afterslip_solver.greens.space_error import elastic_and_change
from afterslip_solver.mesh.locate import Locator
from afterslip_solver.mesh.thin import ThinPlates
from afterslip_solver.model import Float, SolverSettings
from afterslip_workers.engines.viscoelastic.building import build_model

SETTINGS = SolverSettings((0.0, 10 * YEAR), 10 * YEAR, 1e-5, 1e-3)
CRUST = "plate-crust"
# m, of the body that is not thin
PLATE = 80 * KM
PLACES = np.arange(-450, 451, 25.0) * KM
EXACT = "near the fault", 9.0, 0.6
CASES = (
    EXACT,
    ("left out", 24.0, 0.6),
    ("steps", 24.0, 0.6),
    ("near the fault", 24.0, 0.6),
    ("everywhere", 24.0, 0.6),
    ("steps", 22.0, 0.5),
)


@contextmanager
def reach(way: str) -> Iterator[None]:
    """Follow the bottom of a thin body as far from the faults as a way says."""
    before = ThinPlates.reach
    found = {"steps": 0.0, "everywhere": np.inf}.get(way)
    if found is not None:
        ThinPlates.reach = lambda _, thickness: found if thickness < PLATE else np.inf
    try:
        yield
    finally:
        ThinPlates.reach = before


def solved(way: str, edge: float, growth: float) -> tuple[Float, str]:
    """Return both (4, 2, n_point, 3), m, at the points, and figures of the mesh."""
    content = Campaign.from_yaml(TOHOKU / "campaign.yaml").to_dict()
    content["model"]["mesh"]["size"] |= {"fault": edge, "growth": growth}
    if way == "left out":
        bodies = content["model"]["bodies"]
        content["model"]["bodies"] = [b for b in bodies if b["name"] != CRUST]
    spec, files = parse_campaign(content), LocalFiles(TOHOKU)
    with reach(way):
        model, facts = build_model(spec.model, resolve(spec, files), files, str)
    slip = middle_slip(model)
    prepared = prepare(model, SETTINGS, "cpu")
    begin = time.perf_counter()
    found = prepared.solve(slip, model.surface.nodes)
    seconds = time.perf_counter() - begin
    places = np.stack(np.meshgrid(PLACES, PLACES, [0.0]), axis=-1).reshape(-1, 3)
    _, nodes, weights = Locator(model.mesh).find(places)
    row = np.zeros(len(model.mesh.nodes), dtype=np.int64)
    row[model.surface.nodes] = np.arange(len(model.surface.nodes))
    curve = elastic_and_change(found, np.array([10 * YEAR]))[:, :, row[nodes]]
    note = (
        f"{edge:g} km, growth {growth:g}; {facts['n_unknowns']:,} unknowns, "
        f"{found.iterations} iterations, {seconds:.1f} s"
    )
    return np.einsum("pk,ntpkd->ntpd", weights, curve), note


def main() -> None:
    """Compare, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    records: list[Record] = []
    exact, _ = solved(*EXACT)
    for case in CASES[1:]:
        found, note = solved(*case)
        off = np.sqrt(((found - exact) ** 2).sum(axis=(2, 3)))
        percent = 100.0 * off / np.sqrt((exact**2).sum(axis=(2, 3)))
        for part, values in zip(("elastic", "change"), percent.T, strict=True):
            each = ", ".join(f"{value:.2g}" for value in values)
            name = f"thin_body_{case[0].replace(' ', '_')}_{case[1]:g}_km_{part}"
            value = float(np.sqrt((values**2).mean()))
            said = f"root mean square; {note}; each source {each} %"
            records.append(record(name, value, "%", note=said))
            print(f"{case[0]}, {part}: {value:.2f} %; {said}")
    write_records(options.json, records)


if __name__ == "__main__":
    main()
