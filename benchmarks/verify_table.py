"""The table of docs/verification.md from a record of the suite.

    python benchmarks/verify_table.py --json benchmarks/verify-h200.json \
        --docs docs/verification.md

Replaces what stands between the two markers. Every check of the record belongs to one
row; one that fits none is an error, so that nothing is left out.
"""

import argparse
import json
import re
from pathlib import Path

BEGIN, END = "<!-- levels -->", "<!-- end of levels -->"
LEVELS = ("excellent", "good", "acceptable", "missed", "not run")
# what is measured, compared with, item, pattern of the quantity
ROWS = (
    ("constant strain, rigid motion, free blocks", "exact", "patch", ""),
    ("net force, torque, moment of slip", "exact", "conservation", ""),
    ("manufactured field, elastic, L2", "order, four meshes", "manufactured",
     "in L2, l"),
    ("the same, energy", "order, four meshes", "manufactured", "in energy"),
    ("the same, finest mesh, L2", "the field", "manufactured", "finest"),
    ("manufactured field in space and time", "order in h", "spacetime", "order in L2"),
    ("the same, finest mesh, L2", "the field", "spacetime", "relative error"),
    ("the same, stepping", "order in dt", "spacetime", "order of stepping"),
    ("lasting forces, viscoelastic", "reciprocity", "spacetime", "motion there"),
    ("Maxwell layers, spectral, to 6 relaxation times", "exact exponentials",
     "relaxation", "to 6"),
    ("the same, 0 to 1,000 relaxation times", "exact exponentials", "relaxation",
     "1e3"),
    ("the same, steps of 1/64", "exact exponentials", "relaxation", "steps of"),
    ("the same, stepping", "order in dt", "relaxation", "stepping: order"),
    ("Burgers layers, spectral", "two exponentials", "burgers", "to 6"),
    ("the same, steps of 1/256", "two exponentials", "burgers", "steps of"),
    ("the same, stepping", "order in dt", "burgers", "stepping: order"),
    ("Burgers bodies at a frequency", "elastic solve with mu(p)", "burgers",
     "transform"),
    ("Maxwell bodies at a frequency", "elastic solve with mu(p); reciprocity",
     "correspondence", ""),
    ("two Krylov spaces, one curve", "each other", "integrators", "shift-invert"),
    ("the same in 64 steps; asked for 1e-3", "curve at 1e-9", "integrators",
     "with 64 steps|asked for"),
    ("the same, stepping", "order in dt", "integrators", "order"),
    ("enclosed body, relaxed", "elastic limit, factorised", "integrators", "enclosed"),
    ("restoring force: column, flexure", "springs; thin plate", "restoring",
     "column|subsidence"),
    ("restoring force: bodies at a frequency, relaxed lid", "elastic solves",
     "restoring", "transform|lid on Maxwell"),
    ("reciprocity, elastic; against a factorisation", "each side solved",
     "reciprocity", ""),
    ("planes, tapered slip, L2", "half-space", "halfspace", "tapered slip, L2"),
    ("planes, tapered slip, largest", "half-space", "halfspace", "tapered slip, larg"),
    ("planes, uniform slip, L2", "half-space, Okada (1985)", "halfspace",
     "uniform .*, L2"),
    ("planes, uniform slip, largest beyond 2.5 km", "half-space, Okada (1985)",
     "halfspace", "uniform .*, largest error beyond 2.5"),
    ("planes, uniform slip, largest beyond one element", "half-space, Okada (1985)",
     "halfspace", "uniform .*, largest error beyond one"),
    ("planes, fall of the tapered error", "times, coarsest to finest", "halfspace",
     "fall of"),
    ("box of 600 km, 50 to 150 km from the fault", "half-space", "halfspace", "box of"),
    ("the same error over that of a twice larger box", "times", "halfspace",
     "twice as large"),
    ("curved interfaces, tapered slip, L2", "triangular dislocations", "curved",
     "tapered slip, L2"),
    ("curved interfaces, uniform slip, L2", "triangular dislocations", "curved",
     "uniform slip, L2"),
    ("curved interfaces, tapered slip", "order in h", "curved", "order"),
    ("SCEC strike-slip and reverse-slip, elastic, L2", "half-space", "scec",
     "elastic, L2"),
    ("the same, largest per metre of slip", "half-space", "scec", "largest"),
    ("the same, L2", "order in h", "scec", "elastic, order"),
    ("the same, 1, 5, 10 yr, L2", "Richardson", "scec", "extrapolated"),
    ("layer over a Maxwell half-space, elastic, L2", "propagator in wavenumber",
     "strata", "elastic"),
    ("the same, 1, 3, 10 relaxation times, of the peak", "its inverse transform",
     "strata", "relaxation until"),
    ("long fault in a plate, elastic, of half the slip", "arctangent", "plates",
     "elastic displacement"),
    ("the same, relaxation, of its peak", "Nur & Mavko series", "plates",
     "relaxation to"),
    ("Savage-Prescott cycles, the tenth, of its peak", "series", "plates", "cycle"),
    ("long fault, elastic", "order in h", "plates", "order"),
    ("finite box, error near the fault", "order in its size", "studies", "order"),
    ("box 32 faults wide", "box four times larger", "studies", "faults wide"),
    ("linear solver at 1e-4 to 1e-10, whole curve", "at 1e-12", "studies", "stops at"),
    ("a lane among others", "alone", "studies", "lane"),
    ("GPU", "CPU", "studies", "GPU"),
    ("hard systems, displacement", "Cholesky factorisation", "robustness",
     "displacement"),
    ("hard systems, iterations", "about twice the first measured", "robustness",
     "iterations to"),
    ("iterations, 24 over 6 elements across", "1", "robustness", "last / first"),
    ("waves: S speed, 15 voxels in the wave", "symbol of the scheme", "waves",
     "worst S speed"),
    ("waves: energy in a free box", "invariant of leapfrog", "waves", "energy"),
    ("waves: source and receiver exchanged", "reciprocity", "waves", "exchanged"),
    ("waves: double couple in a whole space", "order in h", "waves", "order"),
    ("the same, L2", "Aki & Richards 4.32", "waves", "finer voxels"),
    ("waves: static offset, largest", "half-space, Okada (1985)", "waves", "offset"),
    ("waves: LOH.1, LOH.3 at (6, 8) km, envelope misfit", "sum over wavenumbers",
     "waves", "envelope"),
    ("the same, phase misfit", "sum over wavenumbers", "waves", "phase"),
)  # fmt: skip


def number(check: dict, key: str) -> str:
    """Orders and counts as they are, large errors in per cent."""
    value = check[key]
    if value is None:
        return "-"
    if check["measure"] == "order" or value >= 1.0:
        return f"{value:.3g}"
    return f"{100 * value:.2g} %" if value >= 1e-4 else f"{value:.0e}"


def span(checks: list[dict], key: str) -> str:
    """Smallest to largest."""
    some = sorted(checks, key=lambda c: (c[key] is None, c[key]))
    ends = [number(some[0], key), number(some[-1], key)]
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def table(checks: list[dict]) -> list[str]:
    """Lines of the table; every check in one row."""
    lines = [
        "| What | Compared with | Error | Limit | Excellent | Level |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    left = list(checks)
    for words, reference, item, pattern in ROWS:
        own = [c for c in left if c["name"] == item]
        some = [c for c in own if re.search(pattern, c["quantity"])]
        if not some:
            continue
        left = [c for c in left if c not in some]
        levels = [level for level in LEVELS if level in {c["level"] for c in some}]
        cells = (span(some, key) for key in ("error", "limit", "excellent"))
        row = (words, reference, *cells, ", ".join(levels))
        lines.append(f"| {' | '.join(row)} |")
    if left:
        unknown = "; ".join(f"{c['name']}: {c['quantity']}" for c in left)
        raise SystemExit(f"no row for {unknown}")
    return lines


def heading(content: dict) -> str:
    """Say what ran where."""
    checks = content["checks"]
    counts = [
        f"{sum(c['level'] == level for c in checks)} {level}"
        for level in LEVELS
        if any(c["level"] == level for c in checks)
    ]
    return (
        f"Full size, curves on {content['device']}, {content['processes']} "
        f"processes on {content['cores']} cores, commit {content['commit']}: "
        f"{len(checks)} checks in {content['seconds']:.0f} s, {', '.join(counts)}."
    )


def seconds(content: dict) -> str:
    """Seconds of each item, the sum of its parts."""
    total: dict[str, float] = {}
    for part in content["parts"]:
        total[part["item"]] = total.get(part["item"], 0.0) + part["seconds"]
    order = sorted(total, key=lambda item: -total[item])
    return "Seconds: " + ", ".join(f"{i} {total[i]:.0f}" for i in order) + "."


def main() -> None:
    """Replace the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--docs", type=Path, required=True)
    options = parser.parse_args()
    content = json.loads(options.json.read_text())
    lines = [heading(content), "", *table(content["checks"]), "", seconds(content)]
    text = options.docs.read_text()
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    body = "\n".join(lines)
    options.docs.write_text(f"{before}{BEGIN}\n{body}\n{END}{after}")


if __name__ == "__main__":
    main()
