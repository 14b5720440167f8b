"""The model that benchmarks share: the curved Japan Trench, refined uniformly.

    python benchmarks/trench.py MESH.npz [--fault KM]

writes the coarse mesh of examples/tohoku2011 with its materials, which needs gmsh;
`load` refines it on any machine.
"""

import argparse
from pathlib import Path

import numpy as np

from afterslip_solver.mesh import boundary_conditions, surface_trace
from afterslip_solver.mesh.imported import imported_geometry
from afterslip_solver.mesh.numbering import second_order
from afterslip_solver.model import Float, Materials, Model
from afterslip_solver.sources import CLAMPED, slip_of, unit_sources

FOLDER = Path(__file__).parents[1] / "examples/tohoku2011"
FAULT = "interface"
FIELDS = ("lam", "mu", "rho", "viscosity")
# of the mesh: its largest elements over those on the fault, and how fast they grow
FAR, GROWTH = 700 / 42, 0.7
# a weak layer under the plates: depths, m, and viscosity, Pa s
WEAK = (80e3, 200e3), 2e18


def save(path: Path, fault: float) -> None:
    """Mesh the demonstration's model.

    Parameters
    ----------
    fault : km, size of the elements on the fault.
    """
    from afterslip import Campaign
    from afterslip.spec import parse_campaign
    from afterslip.spec.files import LocalFiles
    from afterslip.spec.inputs import resolve
    from afterslip_workers.engines.viscoelastic.building import build_model

    spec = Campaign.from_yaml(FOLDER / "campaign.yaml").to_dict()
    size = {"fault": fault, "far": FAR * fault, "growth": GROWTH}
    spec["model"]["mesh"] = {"size": size}
    campaign, files = parse_campaign(spec), LocalFiles(FOLDER)
    inputs = resolve(campaign, files)
    model, _ = build_model(campaign.model, inputs, files, lambda _phase: None)
    mesh, m = model.mesh, model.materials
    depth = -mesh.nodes[mesh.cells].mean(axis=1)[:, 2]
    weak = np.isfinite(m.viscosity) & (depth > WEAK[0][0]) & (depth < WEAK[0][1])
    np.savez_compressed(
        path,
        vertices=mesh.nodes[: mesh.n_vertex],
        cells=mesh.cells,
        triangles=model.faults[FAULT].triangles[:, :3],
        **{name: getattr(m, name) for name in FIELDS if name != "viscosity"},
        viscosity=np.where(weak, WEAK[1], m.viscosity),
    )
    print(f"{len(mesh.elements)} elements, {3 * len(mesh.nodes)} unknowns")


def load(path: Path, refine: int) -> tuple[Model, dict[str, Float]]:
    """Return the refined model and the slip of four neighbouring unit sources.

    Parameters
    ----------
    refine : number of uniform refinements, each making eight elements of one.
    """
    data = np.load(path)
    mesh = second_order(data["vertices"], data["cells"])
    made = imported_geometry(mesh, {FAULT: data["triangles"]}, refine)
    mesh, fault = made.mesh, made.faults[FAULT]
    model = Model(
        mesh=mesh,
        materials=Materials(*(np.repeat(data[name], 8**refine) for name in FIELDS)),
        fixed=boundary_conditions(mesh, "roller", "fixed"),
        surface=surface_trace(mesh),
        faults=made.faults,
        splits=made.splits,
    )
    sources = unit_sources(fault, 12, 5, edges=CLAMPED)
    # in the middle of the fault
    chosen = sources[len(sources) // 2 :][:4]
    return model, {FAULT: np.stack([slip_of(s, fault) for s in chosen], axis=2)}


def main() -> None:
    """Write the coarse mesh."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mesh", type=Path)
    parser.add_argument("--fault", type=float, default=42.0, help="km")
    options = parser.parse_args()
    options.mesh.parent.mkdir(exist_ok=True)
    save(options.mesh, options.fault)


if __name__ == "__main__":
    main()
