"""`solve` and `curve` on the Japan Trench after one set-up, which a GPU waits for.

    python benchmarks/together.py --mesh MESH.npz --refine 3 --out FOLDER

MESH.npz is written by `trench.py`; writes FOLDER/solve.json and FOLDER/curve.json.
"""

import argparse
import json
import logging
import time
from dataclasses import replace
from pathlib import Path

from trench import load

from afterslip_solver.benchmarks import curve, solve
from afterslip_solver.benchmarks.record import device_name, document
from afterslip_solver.greens import prepare
from afterslip_solver.model import SolverSettings

log = logging.getLogger(__name__)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mesh", type=Path, required=True)
    parser.add_argument("--refine", type=int, default=3)
    parser.add_argument("--backend", default="gpu")
    parser.add_argument("--predictors", nargs="*", default=("galerkin",))
    parser.add_argument("--commit")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    form = "[%(relativeCreated)7.0f ms] %(message)s"
    logging.basicConfig(level=logging.INFO, format=form)
    model, slip = load(options.mesh, options.refine)
    log.info("model")
    begin = time.perf_counter()
    settings = SolverSettings()
    made = prepare(model, replace(settings, times=(), until=0.0), options.backend)
    setup = time.perf_counter() - begin
    log.info("set-up %.1f s", setup)

    def keep(name: str, found: list) -> None:
        out = document(found, device_name())
        out["commit"] = options.commit or out.get("commit")
        (options.out / name).write_text(json.dumps(out, indent=1) + "\n")

    found = solve.measured(made, slip, settings, setup)
    for item in found:
        log.info("%s %.4g %s", item["metric"], item["value"], item["note"])
    keep("solve.json", found)
    # what the curve prepares is what there is already
    curve.prepare = lambda _model, wanted, _backend: made.adapted(wanted)
    predictors = tuple(options.predictors)
    keep("curve.json", curve.records(model, slip, settings, "auto", predictors))


if __name__ == "__main__":
    main()
