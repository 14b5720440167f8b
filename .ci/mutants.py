"""Mutation testing: change the product's code a little, and see whether a test fails.

    python .ci/mutants.py FOLDER [--count 100] [--seed 1] [--minutes 60] [--floor 0.8]
        [--jobs 1] [--leave-out]

mutmut makes the mutants of one folder (see `mutated.py`) in a scratch copy of the tree,
where the fast tests run once, to know which functions each reaches. A random sample is
tried, each in a fork of this process and with the tests that reach its function;
``--jobs`` processes share both. ``--leave-out``: where a package is missing (gmsh), go
on without the tests that then fail, and name them.
Mutants that change nothing but prose (a text with a space in it, such as a message) are
not drawn, and what PostgreSQL alone runs is not tried: databases are SQLite here.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import difflib
import json
import math
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from mutated import FOLDERS, SLOW

ROOT = Path(__file__).parents[1]
PACKAGES = ("api", "common", "migrations", "service", "solver", "workers")


def lay_out(scratch: Path) -> None:
    """Copy the tree, all packages below one root."""
    plain = shutil.ignore_patterns("__pycache__")
    for name in PACKAGES:
        for package in (ROOT / name).glob("afterslip*"):
            shutil.copytree(package, scratch / "src" / package.name, ignore=plain)
    for other in ("tests", "examples", "docs", "benchmarks", "deploy"):
        shutil.copytree(ROOT / other, scratch / other, ignore=plain)
    shutil.copy(ROOT / "pyproject.toml", scratch)
    # what our packages are mutated with
    with (scratch / "pyproject.toml").open("a") as file:
        file.write('\n[tool.mutmut]\nsource_paths = ["src"]\n')


def without_prose(function: ast.AST) -> str:
    """Return what a function does, texts with a space left out."""
    function = copy.deepcopy(function)
    for node in ast.walk(function):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = " " if " " in node.value else node.value
    assert isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
    return "\n".join(ast.dump(node) for node in [function.args, *function.body])


def mutate(scratch: Path, folder: str) -> dict[str, str]:
    """Put all mutants into the scratch copy; return name → difference."""
    from mutmut.mutation.file_mutation import mutate_file_contents

    found = {}
    package = FOLDERS[folder][0].partition("/")[2]
    for path in sorted((scratch / "src" / package).glob("*.py")):
        made = mutate_file_contents(str(path), path.read_text(), None, None)
        path.write_text(made.code)
        functions = {
            node.name: node
            for node in ast.walk(ast.parse(made.code))
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        }
        module = package.replace("/", ".") + f".{path.stem}".removesuffix(".__init__")
        for name in made.mutant_names:
            original = functions[name.partition("__mutmut_")[0] + "__mutmut_orig"]
            texts = [
                ast.unparse(f).splitlines()[1:] for f in (original, functions[name])
            ]
            if without_prose(functions[name]) != without_prose(original):
                lines = difflib.unified_diff(*texts, n=0, lineterm="")
                found[f"{module}.{name}"] = "\n".join(
                    line for line in lines if line[:2] not in {"--", "++", "@@"}
                )
    return found


class Reached:
    """What each test reaches of the mutated package, in this process."""

    def __init__(self) -> None:
        self.functions: set[str] = set()
        self.tests: dict[str, tuple[float, list[str]]] = {}
        self.failed: dict[str, str] = {}

    def call(self, function: str, **_: str | None) -> None:
        """Note one call of a mutated function."""
        self.functions.add(function)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, bool, bool]:
        """Note the seconds of a test and the functions that it calls."""
        self.functions.clear()
        began = time.monotonic()
        result = yield
        seconds = time.monotonic() - began
        self.tests[item.nodeid] = seconds, sorted(self.functions)
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a failure, also of what a test stands on."""
        if report.failed:
            self._fail(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note a file that cannot be imported."""
        if report.failed:
            self._fail(report)

    def _fail(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        self.failed[report.nodeid] = report.longreprtext.rpartition("\nE ")[2].strip()


def share(work: Callable[[int], int], jobs: int) -> None:
    """Do so many shares of some work in forks, side by side."""
    children = []
    for index in range(jobs):
        child = os.fork()
        if not child:
            code = 1
            try:
                code = work(index)
            except BaseException:  # noqa: BLE001 - what is above belongs to the parent
                traceback.print_exc()
            os._exit(code)
        children.append(child)
    codes = [os.waitstatus_to_exitcode(os.waitpid(c, 0)[1]) for c in children]
    if any(codes):
        sys.exit(f"a share of the work failed: {codes}")


def forked(scratch: Path, work: Callable[[], int], limit: float) -> str:
    """Do some work in a fork, where all is imported already; say how it ended."""
    child = os.fork()
    if not child:
        os.setpgid(0, 0)
        output = scratch / f"output-{os.getppid()}"
        os.dup2(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
        os.dup2(1, 2)
        os._exit(work())
    # by whom comes first
    with contextlib.suppress(PermissionError):
        os.setpgid(child, child)
    end = time.monotonic() + limit
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return {0: "survived"}.get(os.waitstatus_to_exitcode(status), "killed")
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "timeout"


def run_tests(tests: list[str], *more: str, plugins: Sequence[object] = ()) -> int:
    """Run pytest in this process, until the first failure."""
    # the same examples each time; the checks are of how fast they come
    hypothesis.settings.register_profile(
        "mutants",
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    chosen = f"not postgresql and not ({SLOW})"
    # how long a fork may take is said by who waits for it
    options = ["-x", "-q", "-p", "no:cacheprovider", "-o", "timeout=0", "-k", chosen]
    options += ["--hypothesis-profile=mutants", *more]
    return int(pytest.main([*options, *tests], plugins=plugins))


def survey(
    scratch: Path, files: list[str], jobs: int, leave_out: bool
) -> dict[str, tuple[float, list[str]]]:
    """Run all tests without a mutant; return test → (seconds, functions reached)."""
    from mutmut.mutation import trampoline

    def work(index: int) -> int:
        reached = Reached()
        # not by the environment, which processes that a test starts would inherit
        trampoline.get_mutant_under_test = lambda: "stats"
        trampoline.record_trampoline_hit = reached.call
        mine, more = files[index::jobs], ["--maxfail=0"]
        if leave_out:
            more.append("--continue-on-collection-errors")
        code = run_tests(mine, *more, plugins=[reached]) if mine else 0
        done = [reached.tests, reached.failed]
        (scratch / f"reached-{index}").write_text(json.dumps(done))
        # 1: some failed; 2: some files cannot be imported; 5: none is meant for here
        return 0 if code in {0, 5} or (leave_out and code in {1, 2}) else 1

    def fork(index: int) -> int:
        if forked(scratch, lambda: work(index), 3600.0) == "survived":
            return 0
        text = (scratch / f"output-{os.getpid()}").read_text()
        print(f"without a mutant:\n{text}", flush=True)
        return 1

    share(fork, jobs)
    found: dict[str, tuple[float, list[str]]] = {}
    for index in range(jobs):
        tests, failed = json.loads((scratch / f"reached-{index}").read_text())
        for name, why in failed.items():
            print(f"left out: {name}: {why[:200]}", flush=True)
        found.update({name: tests[name] for name in tests if name not in failed})
    return found


def ends(
    scratch: Path,
    name: str,
    module: list[str],
    reached: dict[str, tuple[float, list[str]]],
) -> str:
    """Run the tests that reach a mutant, the fastest first; say how it ended.

    Where none does, in this process, those of its module are run; where there are none
    either, nothing is known of it.
    """
    function = name.partition("__mutmut_")[0]
    tests = sorted(test for test in reached if function in reached[test][1])
    tests.sort(key=lambda test: reached[test][0])
    if not tests:
        tests = [test for test in reached if test.partition("::")[0] in module]
    if not tests:
        return "untested"
    os.environ["MUTANT_UNDER_TEST"] = name
    limit = 10.0 + 5 * sum(reached[test][0] for test in tests)
    return forked(scratch, lambda: run_tests(tests), limit)


def interval(killed: int, tried: int) -> tuple[float, float]:
    """Return Wilson's interval of 95 % of a proportion."""
    z, p = 1.959964, killed / tried
    middle = (p + z * z / (2 * tried)) / (1 + z * z / tried)
    half = z / (1 + z * z / tried)
    half *= math.sqrt(p * (1 - p) / tried + z * z / (4 * tried * tried))
    return middle - half, middle + half


def sample(asked: argparse.Namespace, scratch: Path) -> dict[str, Any]:
    """Try mutants in random order until there are enough, or the time is over."""
    mutants = mutate(scratch, asked.folder)
    place, everywhere, special = FOLDERS[asked.folder]
    names = random.Random(asked.seed).sample(sorted(mutants), len(mutants))
    os.environ["MUTANT_UNDER_TEST"] = ""
    sys.path.insert(0, str(scratch / "src"))
    # before what else is named there
    beside = [str(scratch / "src"), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(beside)
    with (scratch / "collected").open("w") as file, contextlib.redirect_stdout(file):
        files = {*everywhere, *(test for more in special.values() for test in more)}
        tests = [f"tests/{test}" for test in sorted(files)]
        run_tests(tests, "--collect-only")
    reached = survey(scratch, tests, asked.jobs, asked.leave_out)
    began = time.monotonic()

    def work(index: int) -> int:
        tried: dict[str, str] = {}
        for name in names[index : asked.count : asked.jobs]:
            if tried and time.monotonic() - began > 60 * asked.minutes:
                break
            module = name.rsplit(".", 2)[-2]
            tests = [f"tests/{t}" for t in (*special.get(module, []), *everywhere)]
            tried[name] = ends(scratch, name, tests, reached)
            if tried[name] == "survived":
                print(f"{name}\n{mutants[name]}\n", flush=True)
        (scratch / f"ended-{index}").write_text(json.dumps(tried))
        return 0

    share(work, asked.jobs)
    ended: dict[str, str] = {}
    for index in range(asked.jobs):
        ended.update(json.loads((scratch / f"ended-{index}").read_text()))
    # an endless loop is noticed as well
    left = sum(how == "untested" for how in ended.values())
    ended = {name: how for name, how in ended.items() if how != "untested"}
    if not ended:
        sys.exit("no test of the folder can be run here")
    killed = sum(how != "survived" for how in ended.values())
    low, high = interval(killed, len(ended))
    return {
        "folder": place, "mutants": len(mutants), "seed": asked.seed,
        "untested": left, "tried": len(ended), "killed": killed,
        "score": round(killed / len(ended), 3),
        "interval_95": [round(low, 3), round(high, 3)],
        "survivors": [name for name, how in ended.items() if how == "survived"],
    }  # fmt: skip


def main() -> None:
    """Try a sample of the mutants of one folder, and print who survived."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", choices=FOLDERS)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--floor", type=float, default=0.0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--leave-out", action="store_true")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="afterslip-mutants-") as folder:
        scratch = Path(folder)
        lay_out(scratch)
        with contextlib.chdir(scratch):
            record = sample(asked, scratch)
    print(json.dumps({key: record[key] for key in record if key != "survivors"}))
    if asked.json:
        asked.json.write_text(json.dumps(record, indent=1) + "\n")
    if record["interval_95"][1] < asked.floor:
        sys.exit(f"fewer than {asked.floor:.0%} are noticed, at 95 % confidence")


if __name__ == "__main__":
    main()
