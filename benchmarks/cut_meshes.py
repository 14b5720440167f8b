"""Iterations on meshes that follow sides of bodies, and on those that do not.

    python benchmarks/cut_meshes.py [--json FILE]

The example of the Tohoku earthquake and the problem `subduction` of `space_error.py`,
refined once: not cut, cut, and cut with vertices of flat elements moved (`smoothing`).
"""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from interfaces import write_files
from space_error import PROBLEMS, spec

from afterslip import Campaign
from afterslip.spec import parse_campaign, parse_forward
from afterslip.spec.files import LocalFiles
from afterslip.spec.inputs import resolve
from afterslip_common.record import Record, record, write_records
from afterslip_common.terms import YEAR
from afterslip_solver.greens import prepare
from afterslip_solver.mesh import builder, conform
from afterslip_solver.mesh.quality import element_shapes
from afterslip_solver.model import Float, Model, SolverSettings
from afterslip_solver.sources import CLAMPED, slips_of, unit_sources
from afterslip_workers.engines.viscoelastic.building import build_model

TOHOKU = Path(__file__).parents[1] / "examples/tohoku2011"
TIMES = tuple(YEAR * np.array([0.0, 0.1, 1.0, 3.0, 10.0]))
SETTINGS = SolverSettings(TIMES, TIMES[-1], tolerance=1e-5, time_tolerance=1e-3)
WAYS = ("not cut", "cut", "cut and moved")


@contextmanager
def way(name: str) -> Iterator[None]:
    """Leave out what a way does not do."""
    sides, moving = builder.boundaries_of, conform.smoothed
    if name == "not cut":
        builder.boundaries_of = lambda *_: []
    if name == "cut":
        conform.smoothed = lambda vertices, *_: vertices
    try:
        yield
    finally:
        builder.boundaries_of, conform.smoothed = sides, moving


def middle_slip(model: Model) -> dict[str, Float]:
    """Return four neighbouring unit sources in the middle of the fault."""
    ((name, fault),) = model.faults.items()
    sources = unit_sources(fault, 12, 5, edges=CLAMPED)
    return {name: slips_of(sources[len(sources) // 2 :][:4], fault)}


def solved(problem: str, name: str, model: Model) -> list[Record]:
    """Count iterations of a curve of four neighbouring unit sources."""
    slip = middle_slip(model)
    found = prepare(model, SETTINGS, "cpu").solve(slip, model.surface.nodes)
    gamma = element_shapes(model.mesh.nodes, model.mesh.cells)[1]
    low, tenth = np.quantile(gamma, (0.01, 0.1))
    note = (
        f"{name}; {len(gamma) // 8} elements, refined once; gamma {gamma.min():.3f} "
        f"least, {low:.2f} 1 %, {tenth:.2f} 10 %; {found.solves} solves"
    )
    metric = f"iterations_{problem}_{name.replace(' ', '_')}"
    return [record(metric, found.iterations, "1", note=note)]


def main() -> None:
    """Count, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    records: list[Record] = []
    with TemporaryDirectory() as folder:
        write_files(Path(folder))
        campaign = Campaign.from_yaml(TOHOKU / "campaign.yaml").to_dict()
        campaign["model"]["mesh"]["refine"] = 1
        specs = {
            "tohoku": (parse_campaign(campaign), LocalFiles(TOHOKU)),
            "subduction": (
                parse_forward(spec(PROBLEMS["subduction"], 1)),
                LocalFiles(Path(folder)),
            ),
        }
        for problem, (parsed, files) in specs.items():
            inputs = resolve(parsed, files)
            for name in WAYS:
                with way(name):
                    model, _ = build_model(parsed.model, inputs, files, lambda _: None)
                records += solved(problem, name, model)
                last = records[-1]
                print(f"{problem}: {last['value']:.0f} iterations; {last['note']}")
    write_records(options.json, records)


if __name__ == "__main__":
    main()
