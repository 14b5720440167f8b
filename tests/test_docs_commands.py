"""Every command on the pages is run by a test, or stands here with what runs instead.

The tests that run whole pages: ``test_docs_pages.py`` (tutorial),
``service/test_docs_commands.py`` (REST, security), ``e2e/test_docs_python.py`` (Python,
a server elsewhere, README), ``e2e/test_docs_waves.py`` (waves).
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests"
COMMAND = re.compile(
    r"(?:[A-Z_]+=\S+ )*(?:\S*/)?(?:afterslip [a-z]|python \S+\.py|pytest |jupyter |"
    r"pip |make |curl |ssh |sbatch |docker |kubectl |deploy/|git clone)"
)
# page → test that runs all of its blocks
WHOLE = {
    "docs/tutorial.md": "test_docs_pages.py::test_the_tutorial_goes_through",
    "docs/api.md": "service/test_docs_commands.py::test_a_campaign_goes_from_nothing",
    "docs/security.md": "service/test_docs_commands.py::test_authentication_is_",
}
INSTALLING = "sets everything up anew; .ci/run begins with `make test`, which does so"
DEMO = "minutes: run by hand, as `make demo`, which is the same campaign"
TUTORIAL = "test_docs_pages.py::test_the_tutorial_goes_through"
MINUTES = "many minutes, or published data that are not in the repository: run by hand"
ELSEWHERE = "e2e/test_docs_python.py::test_a_server_elsewhere"
CLUSTER = (
    "needs a cluster or containers: test_deployment_files.py compares with the files"
)
WAVES = "e2e/test_docs_waves.py::test_the_example_is_run"
CHECKS = "e2e/test_docs_waves.py::test_the_checks"
RUPTURE = "e2e/test_docs_waves.py::test_the_rupture"
REAL = "faults/test_run_local.py::test_"  # by `make faults`, with the real programs
# page, beginning of the command → test that runs it, or the same, or why none does
PLACED = {
    ("README.md", "make demo"): DEMO,
    ("README.md", "make test"): "in .ci/run",
    ("README.md", "afterslip run examples/tohoku2011"): DEMO,
    ("README.md", "afterslip forward examples/planar"): (
        "e2e/test_docs_python.py::test_one_given_slip"
    ),
    ("README.md", "afterslip run examples/waves"): WAVES,
    ("README.md", "afterslip verify"): "physics/test_suite.py::test_",
    ("README.md", "afterslip serve"): (
        "service/test_docs_commands.py::test_authentication_is_switched"
    ),
    ("docs/start.md", "git clone"): INSTALLING,
    ("docs/start.md", "make demo"): DEMO,
    ("docs/start.md", "afterslip run campaign.yaml --out result"): TUTORIAL,
    ("docs/start.md", "afterslip forward forward.yaml"): TUTORIAL,
    ("docs/start.md", "afterslip check campaign.yaml"): TUTORIAL,
    ("docs/start.md", "afterslip serve --store"): ELSEWHERE,
    ("docs/start.md", "ssh -N"): ELSEWHERE,
    ("docs/start.md", "afterslip submit"): ELSEWHERE,
    ("docs/start.md", "afterslip invert"): ELSEWHERE,
    ("docs/start.md", "afterslip fetch"): ELSEWHERE,
    ("docs/own-fault.md", "afterslip check campaign.yaml"): TUTORIAL,
    ("docs/examples.md", "afterslip forward examples/planar"): (
        "e2e/test_docs_python.py::test_one_given_slip"
    ),
    (
        "docs/examples.md",
        "pip install jupyterlab",
    ): "test_example_notebooks.py needs none",
    ("docs/examples.md", "jupyter lab"): "e2e/test_example_notebooks.py::test_they_run",
    ("docs/examples.md", "afterslip forward forward.yaml"): TUTORIAL,
    ("docs/examples.md", "afterslip run campaign.yaml"): TUTORIAL,
    ("docs/examples.md", "afterslip run examples/tohoku2011"): DEMO,
    ("docs/examples.md", "afterslip run examples/waves"): WAVES,
    ("docs/examples.md", "python examples/waves"): WAVES,
    ("docs/examples.md", "afterslip run examples/kinematic"): RUPTURE,
    ("docs/waves.md", "afterslip run examples/kinematic"): RUPTURE,
    ("docs/waves.md", "python examples/kinematic"): RUPTURE,
    ("docs/waves.md", "afterslip verify"): CHECKS,
    ("docs/waves.md", "afterslip bench"): CHECKS,
    ("docs/waves.md", ""): WAVES,
    ("docs/verification.md", "afterslip verify"): "physics/test_suite.py::test_",
    ("docs/verification.md", ""): MINUTES,
    ("docs/examples.md", ""): MINUTES,
    ("examples/", ""): MINUTES,
    ("docs/spec.md", "afterslip compare-rheologies"): (
        "workers/test_compare_rheologies.py::test_"
    ),
    (
        "docs/reliability.md",
        "",
    ): "hours: what it prints is benchmarks/faults-2core.json",
    ("docs/operations.md", ""): REAL,
    ("docs/deployment.md", "deploy/run-local"): REAL,
    ("docs/deployment.md", ""): CLUSTER,
}


def commands():
    """(page, command) of each line of shell on any page, without its comment."""
    pages = [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("examples/*/*.md"),
    ]
    for page in pages:
        name = page.relative_to(ROOT).as_posix()
        found = re.findall(
            r"^```(?:sh|text)\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE
        )
        for block in found:
            for line in re.sub(r"\\\n\s*", "", block).split("\n"):
                if COMMAND.match(line):
                    bare = re.sub(r"^(?:[A-Z_]+=\S+ )*(?:\S*/bin/)?", "", line)
                    yield name, bare.partition("  #")[0].strip()


def test_every_block_says_its_language():
    """A block without one would hide its commands from what follows."""
    for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")):
        fences = re.findall(r"^```(.*)$", page.read_text(), re.MULTILINE)
        assert all(fences[::2]), page
        assert not any(fences[1::2]), page


def place(page, command):
    if page in WHOLE:
        return WHOLE[page]
    for (start, beginning), where in PLACED.items():
        if page.startswith(start) and command.startswith(beginning):
            return where
    return None


def test_every_command_has_its_test_or_its_reason():
    found = list(commands())
    assert len(found) > 60
    assert [one for one in found if place(*one) is None] == []
    left = [
        key
        for key in PLACED
        if not any(p.startswith(key[0]) and c.startswith(key[1]) for p, c in found)
    ]
    assert left == [], "no page has these any more"


@pytest.mark.parametrize("where", sorted({*WHOLE.values(), *PLACED.values()}))
def test_the_test_that_is_named_exists(where):
    if "::" in where:
        path, _, name = where.partition("::")
        assert f"def {name}" in (TESTS / path).read_text()
    if "in .ci/run" in where:
        assert "make test" in (ROOT / ".ci/run").read_text()


def test_one_command_runs_the_pages():
    steps = (ROOT / "Makefile").read_text().partition("\ntest-pages:")[2]
    slow = {where.partition("::")[0] for where in WHOLE.values()}
    for path in (*slow, "e2e/test_docs_python.py", "e2e/test_docs_waves.py"):
        assert f"tests/{path}" in steps, path
