"""Which share of each package's statements its own tests execute.

    python .ci/covered.py [--write] [PACKAGE ...]

A package's share is measured in one process, which runs the default tests of its
folders below ``tests``. Threads are counted; other processes are not (computing
children, Dask workers, `afterslip` as a command), nor is what numba has
compiled, nor CUDA. A share below the package's floor in pyproject.toml fails; floors
may only rise, and ``--write`` raises them to what was measured, in whole per cent.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
# package → its package, its tests
PACKAGES: dict[str, tuple[str, list[str]]] = {
    "common": ("afterslip_common", ["tests/common"]),
    "api": ("afterslip", ["tests/api"]),
    "solver": ("afterslip_solver", ["tests/solver", "tests/physics"]),
    "workers": ("afterslip_workers", ["tests/workers"]),
    "service": ("afterslip_service", ["tests/service"]),
    "migrations": ("afterslip_migrations", ["tests/service/test_migrations.py"]),
}


def floors() -> dict[str, float]:
    """Return package → least share in percent, of the packages that have one."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        found: dict[str, float] = tomllib.load(file)["tool"]["afterslip"]["coverage"]
    return found


def measure(name: str) -> float | None:
    """Run the tests of a package; its share in percent, None where one failed."""
    package, tests = PACKAGES[name]
    # a folder, not a name: Alembic gives the files that it loads other names
    source = ROOT / name / package
    with tempfile.TemporaryDirectory(prefix="afterslip-coverage-") as folder:
        data, report = Path(folder) / "data", Path(folder) / "report.json"
        tool = [sys.executable, "-m", "coverage"]
        files = {**os.environ, "COVERAGE_FILE": str(data)}
        run = [*tool, "run", f"--source={source}", "-m", "pytest", "-q", *tests]
        if subprocess.run(run, cwd=ROOT, env=files, check=False).returncode:
            return None
        write = [*tool, "json", "-q", "-i", "-o", str(report)]
        subprocess.run(write, cwd=ROOT, env=files, check=True)
        return float(json.loads(report.read_text())["totals"]["percent_covered"])


def raise_floor(package: str, share: float) -> None:
    """Write a package's floor, a new one or one that is higher than before."""
    path = ROOT / "pyproject.toml"
    before, header, after = path.read_text().partition("[tool.afterslip.coverage]\n")
    own, blank, others = after.partition("\n\n")
    known = dict(line.split(" = ") for line in own.splitlines())
    known[package] = str(max(math.floor(share), int(known.get(package, 0))))
    lines = [f"{name} = {known[name]}" for name in PACKAGES if name in known]
    path.write_text(before + header + "\n".join(lines) + blank + others)


def main(arguments: list[str]) -> int:
    """Measure packages, all unless some are named; return how many are below."""
    write = "--write" in arguments
    packages = [name for name in arguments if name != "--write"]
    least, below = floors(), 0
    for package in packages or PACKAGES:
        share = measure(package)
        if share is None:
            print(f"{package}: a test failed, so that nothing was measured")
            below += 1
            continue
        floor = least.get(package)
        says = "no floor yet" if floor is None else f"floor {floor:g} %"
        print(f"{package}: {share:.1f} %, {says}", flush=True)
        below += floor is not None and share < floor
        if write:
            raise_floor(package, share)
    return below


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
