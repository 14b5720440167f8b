"""The estimated error of the mesh beside the true one, through specs of forward runs.

    python benchmarks/space_error.py --json FILE      # all problems: minutes, 7 GB
    python benchmarks/space_error.py NAME ...         # some of them
    python benchmarks/space_error.py --docs docs/verification.md --json FILE ... # table

Both are root mean squares of the error's length over points of the surface, one element
or more from the fault's trace, relative to the largest displacement, or to the largest
change until that time. Their ratio is the estimate's effectivity.
"""

import argparse
import json
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from interfaces import write_files

from afterslip_common.geometry import PlaneFault
from afterslip_common.record import device_name, document, record
from afterslip_common.terms import YEAR
from afterslip_solver.reference import (
    PointSources,
    Rectangles,
    Stratum,
    interior_displacement,
    layered_displacement,
    surface_displacement,
)
from afterslip_solver.sources.profile import taper_profile
from afterslip_workers.engines.viscoelastic.forward import run_forward

BEGIN, END = "<!-- space error -->", "<!-- end of space error -->"
HALF = 1200.0  # km, half the box's width, and its depth
ROCK = {"name": "rock", "bottom": HALF, "vp": 6.4, "vs": 6.4 / 3**0.5, "rho": 2800}
LID = Stratum(30e3, 35e9, 35e9)
MANTLE = Stratum(float("inf"), 75e9, 65e9, 1e19)
LAW = {"maxwell": {"viscosity": MANTLE.viscosity}}
BURIED = {"top": 10, "dip": 30, "length": 80, "width": 60}
THRUST = {"top": 0, "dip": 20, "length": 80, "width": 60}
STRIKE_SLIP = {"top": 0, "dip": 90, "length": 60, "width": 20}
NORMAL = {"top": 5, "dip": 60, "length": 40, "width": 20}
INSIDE = {"top": 8, "dip": 30, "length": 60, "width": 30}


@dataclass(frozen=True)
class Problem:
    """A forward run and what it is compared with.

    Attributes
    ----------
    words : for the table. size : of the mesh, km and growth. refine : of the mesh.
    plane : top, dip, length, width, km and degrees; None for the curved interface.
    finer : refinements of the reference's mesh; 0 for a closed form or a propagator.
    other_size : as `size`, of the reference's mesh where it is another one: a refined
        mesh has sides of bodies where the coarse one has them.
    slab : whether an elastic plate goes down below the interface, over weak mantle.
    apart : distance of points along x, km. inside : whether points are above and below
        the fault, not on the ground. other : not used when the factors between
        differences and errors were chosen.
    """

    words: str
    size: tuple[float, float, float]
    refine: int = 0
    plane: dict | None = None
    strike: float = 0.0
    dip: float = 1.0
    layered: bool = False
    finer: int = 0
    other_size: tuple[float, float, float] | None = None
    taper: bool = False
    slab: bool = False
    years: list[float] = field(default_factory=lambda: [0.0])
    apart: float = 9.0
    inside: bool = False
    other: bool = False


def refined(
    words: str, edge: float, plane: tuple[float, ...], slip: tuple[float, float],
    growth: float = 0.5, taper: bool = False,
) -> Problem:  # fmt: skip
    """Return a problem that was not used for the choice of factors."""
    shape = dict(zip(("top", "dip", "length", "width"), plane, strict=True))
    size = (edge, 300.0, growth)
    return Problem(words, size, 1, shape, *slip, taper=taper, other=True)


# as the last mesh of `accuracy.py layers`, without what creeps
LIDDED = Problem(
    "stiffer below a lid, tapered", (5.5, 425, 0.41), 1, INSIDE,
    layered=True, taper=True, other=True,
)  # fmt: skip
OTHERS = {
    "reverse": refined("reverse, dip 55", 8, (3, 55, 30, 15), (0, 1)),
    "ramp": refined("thrust to the surface, dip 45", 8, (0, 45, 50, 25), (0, 1)),
    "flat": refined("thrust, dip 10", 22, (6, 10, 120, 80), (0, 1)),
    "oblique": refined("oblique, dip 70, 2 km deep", 8, (2, 70, 40, 18), (1, 1)),
    "deep": refined("strike-slip, 15 km deep", 8, (15, 90, 50, 15), (1, 0)),
    "normal-45": refined("normal, to the surface", 7, (0, 45, 30, 20), (0, -1), 0.7),
    "strike-60": refined("strike-slip, dip 60", 7, (1, 60, 70, 15), (1, 0), 0.7),
    "reverse-tapered": refined(
        "reverse, tapered", 10, (4, 40, 60, 30), (0, 1), taper=True
    ),
    "lidded": LIDDED,
    "lidless": replace(LIDDED, words="no lid, tapered", layered=False),
    "lidded-close": replace(
        LIDDED, words=f"{LIDDED.words}, points 1 km apart", apart=1
    ),
}
PROBLEMS = {
    "buried": Problem("buried thrust", (9, 200, 0.35), plane=BURIED),
    "buried-fine": Problem("buried thrust", (9, 150, 0.2), plane=BURIED),
    "buried-refined": Problem("buried thrust", (18, 300, 0.5), 1, BURIED),
    "thrust": Problem("thrust to the surface", (9, 200, 0.35), plane=THRUST),
    "thrust-refined": Problem("thrust to the surface", (18, 300, 0.5), 1, THRUST),
    "strike-slip": Problem(
        "strike-slip to the surface", (5, 150, 0.35), 0, STRIKE_SLIP, 1.0, 0.0
    ),
    "strike-slip-refined": Problem(
        "strike-slip to the surface", (10, 300, 0.5), 1, STRIKE_SLIP, 1.0, 0.0
    ),
    "normal": Problem("normal fault", (5, 150, 0.35), plane=NORMAL, dip=-1.0),
    "normal-refined": Problem("normal fault", (10, 300, 0.5), 1, NORMAL, dip=-1.0),
    "tapered": Problem("buried thrust, tapered", (9, 200, 0.35), 0, BURIED, taper=True),
    "inside": Problem(
        "buried, 5 and 55 km deep", (9, 200, 0.35), 0, BURIED, taper=True, inside=True
    ),
    "layers": Problem(
        "lid over Maxwell rock, tapered", (8, 200, 0.35), 0, INSIDE,
        layered=True, taper=True, years=[0.0, 5.0, 15.0, 50.0],
    ),
    "layers-refined": Problem(
        "lid over Maxwell rock, tapered", (14, 300, 0.5), 1, INSIDE,
        layered=True, taper=True, years=[0.0, 5.0, 15.0, 50.0],
    ),
    "through": Problem(
        "thrust through the lid", (16, 300, 0.5), 0, THRUST | {"width": 100},
        layered=True, finer=2, years=[0.0, 1.0, 10.0],
    ),
    "curved": Problem(
        "curved interface through the lid", (16, 300, 0.5), 0, None,
        layered=True, finer=2, years=[0.0, 1.0, 10.0],
    ),
    "subduction": Problem(
        "slab over weak mantle", (16, 300, 0.5), 0, None,
        layered=True, finer=1, other_size=(9, 170, 0.28), slab=True,
        years=[0.0, 1.0, 10.0],
    ),
    **OTHERS,
}  # fmt: skip


def bodies() -> list[dict]:
    """Return a plate of 30 km, and weak mantle to 80 km below the interface."""
    stiff = rock("plate", Stratum(30e3, 70e9, 62e9), 3300.0)
    weak = rock("ocean", replace(MANTLE, viscosity=2e18), 3300.0)
    weak["rheology"] = {"maxwell": {"viscosity": 2e18}}
    found = []
    for body, thickness in ((weak, 80), (stiff, 30)):
        del body["bottom"]
        found.append(body | {"below": "slab.csv", "thickness": thickness})
    return found


def spec(problem: Problem, refine: int) -> dict:
    """Return the forward spec of a problem."""
    fault, far, growth = problem.size
    layers = [ROCK]
    if problem.layered:
        layers = [rock("lid", LID, 2800.0), rock("mantle", MANTLE, 3300.0)]
    if problem.plane is None:
        surface = {"file": "interface.csv", "outline": "outline.csv"}
        if problem.slab:
            surface = {"file": "slab.csv", "outline": "slab-outline.csv"}
        shape: dict = {"surface": surface}
    else:
        shape = {"plane": {"x": 0, "y": 0, "strike": 0, **problem.plane}}
    size = {"fault": fault, "far": far, "growth": growth}
    wide = [-HALF, HALF]
    return {
        "name": problem.words,
        "model": {
            "frame": {"kind": "local"},
            "domain": {"x": wide, "y": wide, "depth": HALF},
            "layers": layers,
            "bodies": bodies() if problem.slab else [],
            "faults": [{"name": "main", **shape}],
            "mesh": {"size": size, "refine": refine},
        },
        "slip": [
            {
                "fault": "main",
                "strike": problem.strike,
                "dip": problem.dip,
                "taper": problem.taper,
            }
        ],
        "times": {
            "until": f"{max(*problem.years, 1)} yr",
            "output": [f"{t} yr" for t in problem.years],
        },
        "points": places(problem),
    }


def rock(name: str, stratum: Stratum, rho: float) -> dict:
    """Return a layer of the spec."""
    vp = ((stratum.lam + 2 * stratum.mu) / rho) ** 0.5 / 1e3
    made = {"name": name, "bottom": min(stratum.bottom / 1e3, HALF), "rho": rho}
    made |= {"vp": vp, "vs": (stratum.mu / rho) ** 0.5 / 1e3}
    return made | ({"rheology": LAW} if np.isfinite(stratum.viscosity) else {})


def places(problem: Problem) -> list[list[float]]:
    """Return points around the fault, an element or more from its trace; km."""
    near = problem.size[0] / 2**problem.refine
    x = np.arange(-97.0, 140.0, problem.apart)
    y = np.array([3.0, 17.0, 29.0, 47.0, 71.0])
    trace = 1.2e-3 * y**2 if problem.plane is None else 0.0 * y
    breaks = problem.plane is None or problem.plane["top"] == 0
    found = [
        [float(a), float(b)]
        for b, at in zip(y, trace, strict=True)
        for a in x
        if not breaks or abs(a - at) > 1.2 * near
    ]
    if problem.inside:
        return [[*at, (5.0, 55.0)[k % 2]] for k, at in enumerate(found)]
    return found


def reference(problem: Problem, folder: Path) -> np.ndarray:
    """(n_time, n_point, 3) m."""
    if problem.finer:
        size = problem.other_size or problem.size
        made = spec(replace(problem, size=size), problem.refine + problem.finer)
        made["points"] = places(problem)
        made["solver"] = {"space_error": False}
        return run_forward(made, base=folder)["displacement"].values
    xy = 1e3 * np.array(places(problem))
    plane = problem.plane or {}
    if problem.inside:
        deep = sources(problem, plane)
        return interior_displacement(xy * [1.0, 1.0, -1.0], deep)[None]
    if problem.layered or problem.taper:
        strata = [LID, MANTLE]
        if not problem.layered:
            mu = 2800.0 * (6400.0 / 3**0.5) ** 2
            strata = [Stratum(30e3, mu, mu), Stratum(float("inf"), mu, mu)]
        moments = YEAR * np.array(problem.years)
        return layered_displacement(xy, sources(problem, plane), strata, moments)
    rectangle = Rectangles(
        0, 0, plane["top"] * 1e3, 0, plane["dip"],
        plane["length"] * 1e3, plane["width"] * 1e3,
    )  # fmt: skip
    slip = (problem.strike, problem.dip, 0)
    return surface_displacement(xy, rectangle, slip)[None]


def sources(problem: Problem, plane: dict) -> PointSources:
    """Tapered slip at Gauss points of the rectangle."""
    length, width = plane["length"] * 1e3, plane["width"] * 1e3
    rectangle = PlaneFault(
        "main", 0.0, 0.0, plane["top"] * 1e3, 0.0, plane["dip"], length, width
    )
    (a, wa), (d, wd) = (np.polynomial.legendre.leggauss(n) for n in (40, 24))
    along, down = 0.5 * (a + 1) * length, 0.5 * (d + 1) * width
    shape = np.outer(
        wa * taper_profile(along, length, 0.2, open_start=False),
        wd * taper_profile(down, width, 0.2, open_start=False),
    )
    weight = (0.25 * length * width * shape).reshape(-1, 1) * problem.dip
    strike, updip, normal = rectangle.axes
    grid = [g.reshape(-1, 1) for g in np.meshgrid(along, down, indexing="ij")]
    at = rectangle.origin + grid[0] * strike - grid[1] * updip
    return PointSources(at, weight * updip, np.repeat(normal[None], len(at), axis=0))


def rms(values: np.ndarray) -> float:
    """Root mean square."""
    return float(np.sqrt(np.mean(values**2)))


def measure(name: str, folder: Path) -> list:
    """Return the records of a problem, one of each time."""
    problem, began = PROBLEMS[name], time.perf_counter()
    found = run_forward(spec(problem, problem.refine), base=folder)
    seconds = time.perf_counter() - began
    exact = reference(problem, folder)
    shown, estimate = found["displacement"].values, found["space_error"].values
    cost = found.attrs["n_unknowns"]
    out = []
    for row, years in enumerate(problem.years):
        change = row > 0
        right = exact[row] - exact[0] if change else exact[0]
        ours = shown[row] - shown[0] if change else shown[0]
        peak = float(np.linalg.norm(right, axis=1).max())
        off = np.linalg.norm(ours - right, axis=1)
        true = rms(off) / peak
        guess = rms(estimate[int(change), row]) / peak
        what = f"change, {years:g} yr" if change else "elastic"
        against = "finer mesh" if problem.finer else "exact"
        mesh = f"{problem.size[0]:g} km, growth {problem.size[2]:g}"
        mesh += f", refined {problem.refine} time" if problem.refine else ""
        share = found.attrs["space_error_cost"]
        note = f"{problem.words}; {mesh}; {cost:,} unknowns; {what}; {against}; "
        most = float(estimate[int(change), row].max() / off.max())
        note += f"largest {most:.2f}; {'other' if problem.other else 'used'}; "
        note += f"cost {share:.2f}"
        out.append(record(f"space_error_{name}_{row}", guess, "1", true, note))
        print(
            f"{name:20s} {what:15s} estimate {guess:.2e} true {true:.2e} "
            f"effectivity {guess / true:5.2f} largest {most:5.2f} {seconds:.0f} s",
            flush=True,
        )
    return out


def cost(items: list[dict]) -> str:
    """Say what the estimates cost, of refined meshes and of others."""
    shares: dict[bool, list[float]] = {True: [], False: []}
    for item in items:
        shares["refined" in item["note"]].append(float(item["note"].split("cost ")[1]))
    return (
        f"{min(shares[True]):.0%} to {max(shares[True]):.0%} (refined) and "
        f"{min(shares[False]):.0%} to {max(shares[False]):.0%} (others)"
    )


def table(contents: list[dict]) -> list[str]:
    """Return the page's lines."""
    items = [item for content in contents for item in content["records"]]
    ratios = np.array([item["ratio"] for item in items])
    rest = ratios[["; other; " in item["note"] for item in items]]
    where = [f"{content['device']}, commit {content['commit']}" for content in contents]
    good = np.mean((ratios >= 0.5) & (ratios <= 3.0))
    lines = [
        f"On {'; then on '.join(where)}: {good:.0%} of "
        f"{len(ratios)} effectivities lie between 0.5 and 3, all between "
        f"{ratios.min():.2f} and {ratios.max():.2f}; {len(rest)} of them, of problems "
        "that were not used when the factors were chosen (marked *), between "
        f"{rest.min():.2f} and {rest.max():.2f}. The estimate cost {cost(items)} "
        "of the solves' products with the stiffness matrix.",
        "",
        "| Problem | Mesh | Unknowns | Part | Estimate | True | Effectivity "
        "| Of the largest |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for item in items:
        words, mesh, size, what, against, most, choice, _ = item["note"].split("; ")
        figures = f"{item['value']:.2%} | {item['baseline']:.2%} | {item['ratio']:.2f}"
        figures += f" | {most.removeprefix('largest ')}"
        size = size.removesuffix(" unknowns")
        words += " *" if choice == "other" else ""
        star = "" if against == "exact" else " (finer mesh)"
        lines.append(f"| {words} | {mesh} | {size} | {what}{star} | {figures} |")
    return lines


def write_table(docs: Path, marks: tuple[str, str], lines: list[str]) -> None:
    """Put lines between two marks of a page."""
    begin, end = marks
    before, rest = docs.read_text().split(begin)
    body = "\n".join(lines)
    docs.write_text(f"{before}{begin}\n{body}\n{end}{rest.split(end)[1]}")


def main() -> None:
    """Measure, or write the page's table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *PROBLEMS], default=[])
    parser.add_argument("--json", type=Path, nargs="+", default=[])
    parser.add_argument("--docs", type=Path)
    options = parser.parse_args()
    if options.docs is not None:
        contents = [json.loads(path.read_text()) for path in options.json]
        write_table(options.docs, (BEGIN, END), table(contents))
        return
    found: list = []
    with TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder)
        for problem in options.names or PROBLEMS:
            found += measure(problem, folder)
            for path in options.json:
                content = document(found, device_name())
                path.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
