"""Install each extra alone, in an environment of its own, and run its tests there.

    python .ci/extras.py [EXTRA ...]

What a room imports without declaring it is found here: the environment in which all
tests run has everything.
"""

import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]
TOOLS = ("pytest", "pytest-timeout", "pytest-xdist", "hypothesis")
NEED_FIGURES = (
    "tests/api/test_far_field_tables.py",
    "tests/api/test_plot.py",
    "tests/api/test_report.py",
    "tests/api/test_tables_cells.py",
)
# long ones of code that needs no library besides; `make test` runs them
LONG = (
    "tests/api/test_spec_fuzz.py",
    "tests/api/test_table_fuzz.py",
    "tests/api/test_array_fuzz.py",
    "tests/api/test_tables_hostile.py",
    "tests/api/test_tables_surfaces.py",
)
# extra → tests that need nothing beyond it, "" is the package without extras
TESTS = {
    "": ["tests/api", *(f"--ignore={path}" for path in (*NEED_FIGURES, *LONG))],
    # where texts lie on a figure is the same with everything installed: `make test`
    "plot": [*NEED_FIGURES, "-k", "not no_text_lies_on_another"],
    "interactive": ["tests/api/test_interactive.py"],
    "seismology": [
        "tests/api/test_export_seismograms.py",
        "tests/api/test_seismograms.py",
    ],
    "workers": [
        "tests/workers/test_forward.py",
        "tests/workers/test_commit.py",
        "-k",
        "not error_of_the_mesh and not halving and not restoring",
    ],
    "service": ["tests/service/test_attempts.py"],
}
# what must not have come along
FOREIGN = {
    "": ("matplotlib", "numba", "gmsh", "dask", "sqlalchemy", "fastapi"),
    "plot": ("numba", "gmsh", "dask", "sqlalchemy", "fastapi"),
    "interactive": ("matplotlib", "numba", "gmsh", "dask", "sqlalchemy", "fastapi"),
    "seismology": ("numba", "gmsh", "dask", "fastapi"),
    "workers": ("sqlalchemy", "fastapi", "alembic"),
    "service": (),
}
PROBE = (
    "import importlib.util as u,sys;print(*[m for m in sys.argv[1:] if u.find_spec(m)])"
)


def check(extra: str, folder: Path) -> bool:
    """Install one extra and run its tests; True if all is well."""
    name = extra or "client"
    python = folder / name / "bin" / "python"
    uv = [sys.executable, "-m", "uv"]
    subprocess.run([*uv, "venv", "--quiet", str(folder / name)], check=True)
    wanted = f"{ROOT}[{extra}]" if extra else str(ROOT)
    install = ["pip", "install", "--quiet", "--python", python]
    lock = ["--constraint", str(ROOT / "requirements.lock")]
    subprocess.run([*uv, *install, *lock, wanted, *TOOLS], check=True)
    found = subprocess.run(
        [python, "-c", PROBE, *FOREIGN[extra]],
        check=True, capture_output=True, text=True,
    ).stdout.split()  # fmt: skip
    if found:
        print(f"{name}: brings {', '.join(found)}, which it must not")
    tool = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    tests = [*tool, *(() if extra else ("-n", "2")), *TESTS[extra]]
    done = subprocess.run(tests, cwd=ROOT, check=False, capture_output=True, text=True)
    print(f"{name}:\n{done.stdout}{done.stderr}", flush=True)
    return done.returncode == 0 and not found


def main() -> None:
    """Check the extras that were asked for, all of them by default."""
    with tempfile.TemporaryDirectory(prefix="afterslip-extras-") as folder:
        chosen = sys.argv[1:] or ["client", *(extra for extra in TESTS if extra)]
        extras = ["" if extra == "client" else extra for extra in chosen]
        # two at a time: half of what each takes is waiting
        with ThreadPoolExecutor(2) as pool:
            passed = list(pool.map(lambda extra: check(extra, Path(folder)), extras))
    failed = [extra for extra, fine in zip(chosen, passed, strict=True) if not fine]
    if failed:
        sys.exit(f"failed in an environment of their own: {', '.join(failed)}")


if __name__ == "__main__":
    main()
