"""`solve` and `curve` on the Japan Trench after one set-up, which a GPU waits for.

    python benchmarks/together.py --mesh MESH.npz --refine 3 --out FOLDER

MESH.npz is written by `trench.py`; writes FOLDER/solve.json and FOLDER/curve.json. The
set-up is made, stored on a disk, and taken from there by a second one, which is used.
"""

import argparse
import gc
import logging
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from scaling import release
from trench import load

from afterslip_common.record import record, write_records
from afterslip_solver import backend as backends
from afterslip_solver.benchmarks import curve, solve
from afterslip_solver.benchmarks.timing import wait
from afterslip_solver.compile_ahead import compile_ahead
from afterslip_solver.greens import Prepared, prepare
from afterslip_solver.model import Model, SolverSettings
from afterslip_workers.machine.setup_cache import SetupCache

log = logging.getLogger(__name__)


def set_up(model: Model, name: str, folder: Path) -> tuple[Prepared, float]:
    """Prepare what a solve needs; returns it and the seconds that it took."""
    settings = replace(SolverSettings(), times=(), until=0.0)
    backend = backends.get(name)
    begin = time.perf_counter()
    made = prepare(model, settings, backend, SetupCache(folder))
    wait(backend)
    return made, time.perf_counter() - begin


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
    with tempfile.TemporaryDirectory() as shelf:
        # as a worker does while gmsh works
        compile_ahead(options.backend)
        made, setup = set_up(model, options.backend, Path(shelf))
        log.info("set-up %.1f s", setup)
        del made
        gc.collect()
        made, again = set_up(model, options.backend, Path(shelf))
        log.info("set-up taken from disk %.1f s", again)

    def keep(name: str, found: list) -> None:
        write_records(options.out / name, found, options.commit)

    settings = SolverSettings()
    found = solve.measured(made, slip, settings, setup)
    note = "stored on disk by an earlier one; baseline: making and keeping it"
    found.append(record("group_setup_taken_s", again, "s", setup, note))
    for item in found:
        log.info("%s %.4g %s", item["metric"], item["value"], item["note"])
    keep("solve.json", found)
    # the curve's peak of memory is not that of block Jacobi
    release(options.backend)
    # what the curve prepares of this model is there already
    curve.prepare = lambda its, wanted, backend: (
        made.adapted(wanted) if its is model else prepare(its, wanted, backend)
    )
    predictors = tuple(options.predictors)
    keep("curve.json", curve.records(model, slip, settings, "auto", predictors))


if __name__ == "__main__":
    main()
