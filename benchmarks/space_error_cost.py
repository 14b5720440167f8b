"""What the estimate of the mesh's error costs a group, and what its solutions save.

    python benchmarks/space_error_cost.py --mesh MESH.npz [--json FILE]

The mesh is that of `campaign.py --keep-mesh`. Each group is solved on the coarse mesh,
on the fine one from no guess and from the coarse solutions, and compared, as a worker
does it; the first group compiles and is left out.
"""

import argparse
import time
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from campaign import SPEC, StoredMesh

from afterslip import Campaign
from afterslip.frame import Frame
from afterslip.physics.viscoelastic.spec import ViscoelasticCampaign
from afterslip.physics.viscoelastic.store import error_times
from afterslip.spec import parse_campaign
from afterslip.spec.files import LocalFiles
from afterslip.spec.inputs import resolve
from afterslip_common.record import Record, record, write_records
from afterslip_service.benchmarks.campaign import campaign_spec
from afterslip_solver.greens import Prepared, evaluate_curve, prepare
from afterslip_solver.mesh import builder, placed, placed_slip
from afterslip_solver.mesh.slit_surface import Trace, two_sided
from afterslip_solver.model import Model
from afterslip_workers.engines.viscoelastic.building import build_model
from afterslip_workers.engines.viscoelastic.settings import settings_of
from afterslip_workers.engines.viscoelastic.sources import UnitSources, unit_slip
from afterslip_workers.engines.viscoelastic.space import (
    Coarse,
    coarse_model,
    prepared_coarse,
)

LANES = 4


@dataclass(frozen=True)
class Pair:
    """A campaign's model and the coarse one, ready for groups."""

    spec: ViscoelasticCampaign
    model: Model
    fine: Prepared
    coarse: Coarse
    trace: Trace
    unknowns: int
    set_up_s: float

    @classmethod
    def of(cls, refine: int, sources: tuple[int, int], backend: str) -> "Pair":
        """Build and prepare both."""
        content = Campaign.from_yaml(SPEC).to_dict()
        made = campaign_spec(content, refine, *sources, backend)
        spec, files = parse_campaign(made), LocalFiles(SPEC.parent)
        model, facts = build_model(spec.model, resolve(spec, files), files, print)
        settings = settings_of(spec.times, spec.solver)
        fine = prepare(placed(model), settings, backend)
        like = coarse_model(model, spec.solver)
        second = prepared_coarse(like, settings, spec.solver, backend)
        trace, begin = two_sided(model), time.perf_counter()
        frame = Frame.of(spec.model.frame)
        coarse = Coarse.of(like, second, model, trace, frame).guessing(fine)
        set_up = time.perf_counter() - begin
        return cls(spec, model, fine, coarse, trace, facts["n_unknowns"], set_up)

    def group(self, chosen: list[int]) -> tuple[list[float], float]:
        """Return seconds and iterations of a group, and by how much curves differ."""
        output = np.array([float(t) for t in self.spec.times.output])
        times, units = error_times(output), UnitSources.of(self.spec.grids, self.model)
        slip = placed_slip(self.model, unit_slip(units, chosen))
        marks = [time.perf_counter()]
        there = self.coarse.solve(units, chosen, times, lambda: False)
        marks.append(time.perf_counter())
        found = self.fine.solve(slip, self.trace.nodes, guesses=there.guesses)
        marks.append(time.perf_counter())
        if self.coarse.error(found, there, times) is None:
            raise RuntimeError("the coarse solves did not converge")
        marks.append(time.perf_counter())
        without = self.fine.solve(slip, self.trace.nodes)
        marks.append(time.perf_counter())
        curves = [evaluate_curve(result, output) for result in (found, without)]
        # the elastic part has a tolerance of its own, and may be far larger
        guessed, plain = (curve - curve[:, :1] for curve in curves)
        apart = float(np.abs(guessed - plain).max() / np.abs(plain).max())
        return [*np.diff(marks), found.iterations, without.iterations], apart


def measure(pair: Pair, groups: int) -> list[Record]:
    """Return the medians of some groups."""
    rows, apart = [], 0.0
    for group in range(groups + 1):
        figures, off = pair.group(list(range(LANES * group, LANES * (group + 1))))
        print(np.round(figures, 3).tolist(), off, flush=True)
        rows.append(figures)
        apart = max(apart, off)
    solved, guessed, compared, plain, few, many = np.median(rows[1:], axis=0)
    size = f"{pair.unknowns} unknowns, median of {groups} groups of {LANES}"
    of_fine = f"{size}; baseline: the fine mesh without a guess"
    share, tolerance = (solved + guessed + compared) / plain - 1.0, 1e-6
    differ = "largest difference of changes from both over the largest change; "
    differ += "baseline: tolerance of each"
    return [
        record(
            "space_error_group_cost", share, "1", 0.25, f"{size}; baseline: allowed"
        ),
        record("space_error_coarse_s", solved, "s", plain, of_fine),
        record("space_error_compare_s", compared, "s", plain, of_fine),
        record("nested_guess_group_s", guessed, "s", plain, f"{size}; baseline: none"),
        record("nested_guess_iterations", few, "1", many, f"{size}; baseline: none"),
        record("nested_guess_apart", apart, "1", tolerance, differ),
        record("nested_guess_set_up_s", pair.set_up_s, "s", None, "once for a model"),
    ]


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mesh", type=Path, required=True)
    parser.add_argument("--refine", type=int, default=3)
    parser.add_argument("--sources", type=int, nargs=2, default=(12, 2))
    parser.add_argument("--groups", type=int, default=8)
    parser.add_argument("--backend", default="gpu")
    parser.add_argument("--commit")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    StoredMesh.path = options.mesh
    builder.Mesher, builder.quiet_gmsh = StoredMesh, nullcontext
    sources = tuple(options.sources)
    pair = Pair.of(options.refine, sources, options.backend)
    records = measure(pair, options.groups)
    for item in records:
        print(f"{item['metric']:28} {item['value']:12.4g} {item['unit']}")
    write_records(options.json, records, options.commit)


if __name__ == "__main__":
    main()
