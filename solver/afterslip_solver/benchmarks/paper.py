"""The published algorithms beside ours, on one model in one run.

Murakami et al. (2023), "M23": Table 2 (kernels), section 5.2 (memory) and section 5.3
with figure 1 (guesses, iterations, time of a step), which were measured on A100 GPUs
with 32.8 million unknowns each. Yamaguchi et al. (2018), "Y18": section 3.2.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from afterslip_common.record import Record
from afterslip_solver.backend import LANES
from afterslip_solver.benchmarks.march import March, Marches
from afterslip_solver.benchmarks.timing import wait
from afterslip_solver.greens.dmd import DynamicModes
from afterslip_solver.krylov import pcg
from afterslip_solver.model import Float, Model, SolverSettings
from afterslip_solver.multigrid import Cycle, MultigridSettings

# in the papers the elastic solution is step 1, so their steps 21 to 30 are these solves
MEASURED = slice(20, 30)
# figure 1 and section 5.3: 170 s of PCGE over 191, and 8.6 times that
STEP = {"dmd": 0.89, "adams_bashforth": 7.65}
INITIAL = {"dmd": 2.46e-5, "adams_bashforth": 2.11e-3}
INNER = {"dmd": 1098, "adams_bashforth": 5237}
# Table 2, "GPU (proposed)", ms per vector
LEVELS = ("p2_fp32", "p1", "aggregates")
KERNELS = {"p2_fp64": 4.63, "p2_fp32": 1.81, "p1": 0.318, "aggregates": 0.137}
GRAM_SCHMIDT, COMPRESSION, MEMORY_GB = 2.3, 5.38, 16.3
# section 3.2: the time, and the iterations of the inner coarse loop
FASTER, FEWER = 2.79, 2.3


def records(
    model: Model,
    slip: dict[str, Float],
    settings: SolverSettings,
    backend: str = "auto",
    report: Callable[[Record], None] | None = None,
) -> list[Record]:
    """Thirty days after the slip of one group, with their algorithms and with ours.

    Parameters
    ----------
    slip : fault name → (n_fault_node, 3, 4) float64, m.
    settings : tolerances; integrator, predictor and times are set here.
    report : called with every record once it is there.
    """
    bench = Marches(model, slip, settings, backend, report)
    _kernels(bench)
    _preconditioners(bench)
    _predictor(bench)
    published = _steps(bench)
    _ours(bench, published)
    _four_steps(bench)
    return bench.records


def _kernels(bench: Marches) -> None:
    """Products with four lanes, ms."""
    backend, operator = bench.backend, bench.operator
    u = backend.xp.ones(operator.shape) * operator.free
    out = backend.xp.empty_like(u)
    found = {"p2_fp64": bench.milliseconds(lambda: operator.apply(u, out))}
    for name, loop in zip(LEVELS, bench.three.loops, strict=True):
        loop.b[...] = 1.0
        found[name] = bench.milliseconds(
            lambda loop=loop: backend.multiply(loop.matrix, loop.b, loop.x)  # type: ignore[misc]
        )
    for name, value in found.items():
        note = f"{bench.size}, a vector of four; baseline: M23 Table 2, A100"
        bench.say(f"paper_{name}_ms", value / LANES, "ms", KERNELS[name], note)
    rows = [loop.matrix.n_rows for loop in bench.three.loops]
    share = bench.three.loops[2].matrix.bytes / bench.three.loops[1].matrix.bytes
    bench.say(
        "paper_coarse_memory_share",
        share,
        "1",
        420 / 1190,
        f"aggregates' matrix over linear elements'; nodes {rows}; baseline: M23 5.2",
    )


def _preconditioners(bench: Marches) -> None:
    """Solve to the tolerance from zero, with their preconditioner and with ours."""
    backend, operator, made = bench.backend, bench.operator, bench.made
    loads = made.elastic.loads
    f = loads.force(operator, loads.offsets(bench.slip))
    tolerance = made.settings.tolerance
    seconds, counts = {}, {}
    for name, m in (("theirs", bench.three), ("ours", bench.cycle)):
        for _ in range(2):
            m.inner_iterations()
            wait(backend)
            begin = time.perf_counter()
            result = pcg(operator, m, f, tolerance=tolerance)
            wait(backend)
            seconds[name] = time.perf_counter() - begin
        counts[name] = result.iterations
        if name == "theirs":
            inner = m.inner_iterations()
    # every inner loop begins with a residual
    passes = np.array(inner) + counts["theirs"]
    weights = np.array([KERNELS[name] for name in LEVELS]) / KERNELS["p2_fp64"]
    theirs = counts["theirs"] + float(passes @ weights)
    ours = counts["ours"] * (1.0 + _cycle_products(bench.cycle))
    note = (
        f"{bench.size}, four lanes, fault load, zero guess, to {tolerance:g}: "
        f"{counts['ours']} iterations of ours, {counts['theirs']} of theirs with "
        f"{inner} inner ones"
    )
    bench.say(
        "preconditioner_cost_vs_paper",
        seconds["ours"] / seconds["theirs"],
        "1",
        1.0,
        f"{note}; wall time {seconds['ours']:.3f} s and {seconds['theirs']:.3f} s",
    )
    bench.say(
        "preconditioner_products_vs_paper",
        ours / theirs,
        "1",
        1.0,
        f"{note}; counted as FP64 products of quadratic elements, others by M23 Table "
        f"2 and by memory: {ours:.1f} and {theirs:.1f}",
    )


def _cycle_products(cycle: Cycle) -> float:
    """Products of one of our cycles, in FP64 products of quadratic elements."""
    settings = MultigridSettings()
    linear = KERNELS["p1"] / KERNELS["p2_fp64"] / cycle.levels[1].matrix.bytes
    # smoothing before, from zero, and after, and the residual between
    total = 2 * settings.degree * KERNELS["p2_fp32"] / KERNELS["p2_fp64"]
    for level in cycle.levels[1:]:
        total += 2 * settings.coarse_degree * linear * level.matrix.bytes
    return total


def _predictor(bench: Marches) -> None:
    """Parts of the data-driven guess, and its memory."""
    xp, operator = bench.backend.xp, bench.operator
    predictor = DynamicModes(operator)
    for k in range(20):
        predictor.learn(xp.cos(xp.full(operator.shape, 0.1 * k * k)) * operator.free)
    x = predictor.guess(None)
    note = f"{bench.size}, a vector of four, FP64"
    compress = bench.milliseconds(lambda: predictor.compressed(x))
    weights = bench.milliseconds(predictor.weights)
    guess = bench.milliseconds(lambda: predictor.guess(None))
    bench.say(
        "paper_random_compression_ms",
        compress / LANES,
        "ms",
        COMPRESSION,
        f"{note}; baseline: M23 Table 2, A100",
    )
    bench.say(
        "paper_gram_schmidt_ms",
        weights / LANES,
        "ms",
        GRAM_SCHMIDT,
        f"{note}; baseline: M23 Table 2, A100",
    )
    bench.say("paper_guess_ms", guess / LANES, "ms", None, f"{note}; with Gram-Schmidt")
    per_unknown = 16.3e9 / 32.8e6
    bench.say(
        "paper_predictor_memory_gb",
        predictor.bytes / 1e9,
        "GB",
        per_unknown * bench.made.n_unknowns / 1e9,
        f"{bench.size}, four lanes; baseline: M23 5.2, {MEMORY_GB} GB for 32.8 million",
    )


def _steps(bench: Marches) -> dict[str, March]:
    """Their solver with both guesses, steps 21 to 30."""
    found = {}
    for name in ("adams_bashforth", "dmd"):
        found[name] = run = bench.march(bench.three, name)
        inner = run.inner()[MEASURED].mean(axis=0)
        outer = run.outer()[MEASURED].mean()
        note = f"{bench.size}, three_level, {name}, mean of steps 21 to 30 of 30 days"
        bench.say(
            f"paper_initial_error_{name}",
            run.initial()[MEASURED].mean(),
            "1",
            INITIAL[name],
            f"{note}; baseline: M23 5.3",
        )
        bench.say(
            f"paper_inner_iterations_{name}",
            inner.sum(),
            "1",
            INNER[name],
            f"{note}; quadratic, linear, aggregates: {inner.tolist()}; outer {outer}; "
            "baseline: M23 5.3, 1.0e9 elements",
        )
        bench.say(
            f"paper_step_per_function_s_{name}",
            run.steps[MEASURED].mean() / LANES,
            "s",
            STEP[name],
            f"{note}; baseline: M23 figure 1, A100, 32.8 million unknowns a GPU",
        )
    return found


def _ours(bench: Marches, published: dict[str, March]) -> None:
    """Our cycle with every guess, and the whole curve at once."""
    theirs = published["dmd"]
    made = bench.made.adapted(replace(bench.made.settings, integrator="spectral"))
    nodes = bench.model.surface.nodes
    made.solve(bench.slip, nodes)
    begin = time.perf_counter()
    result = made.solve(bench.slip, nodes)
    curve = time.perf_counter() - begin
    bench.say(
        "our_curve_30d_s",
        curve,
        "s",
        theirs.result.history[0]["seconds"] + float(theirs.steps.sum()),
        f"{bench.size}, four lanes, spectral ({made.scheme}) with the elastic solve: "
        f"{result.solves} solves; baseline: three_level with dmd, 30 daily steps, same "
        "run",
    )
    for name in ("galerkin", "dmd", "adams_bashforth"):
        run = bench.march(bench.cycle, name)
        note = f"{bench.size}, multigrid, {name}, mean of steps 21 to 30 of 30 days"
        bench.say(
            f"our_initial_error_{name}",
            run.initial()[MEASURED].mean(),
            "1",
            theirs.initial()[MEASURED].mean(),
            f"{note}; baseline: three_level with dmd, same run",
        )
        bench.say(
            f"our_step_per_function_s_{name}",
            run.steps[MEASURED].mean() / LANES,
            "s",
            theirs.steps[MEASURED].mean() / LANES,
            f"{note}; iterations {run.outer()[MEASURED].mean()}; baseline: three_level "
            "with dmd, same run",
        )


def _four_steps(bench: Marches) -> None:
    """One source: four steps at once against one after the other."""
    for m, name in ((bench.cycle, "multigrid"), (bench.three, "three_level")):
        one = bench.march(m, "adams_bashforth", lanes=1)
        four = bench.march(m, "four_steps", lanes=1)
        note = f"{bench.size}, one source, {name}, 30 daily steps; "
        count = one.outer().sum(), four.outer().sum()
        inner = one.inner().sum(axis=0).tolist(), four.inner().sum(axis=0).tolist()
        bench.say(
            f"four_steps_iterations_{name}",
            count[0] / count[1],
            "1",
            FEWER,
            f"{note}{count[0]:.0f} one after the other (Adams-Bashforth), "
            f"{count[1]:.0f} at once; inner {inner[0]} and {inner[1]}; baseline: Y18 "
            "3.2, inner coarse loop, 30-day steps",
        )
        bench.say(
            f"four_steps_gain_{name}",
            one.steps.sum() / four.steps.sum(),
            "1",
            FASTER,
            f"{note}{one.steps.sum():.3f} s and {four.steps.sum():.3f} s; a product "
            "costs the same for one lane and for four; baseline: Y18 3.2, of which a "
            "part is its faster product",
        )
