"""Rules of the house that no linter knows."""

import ast
import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent
PACKAGES = ["api", "common", "migrations", "service", "solver", "workers"]
SOURCES = [
    path
    for package in [*PACKAGES, "tests", "benchmarks", "examples"]
    for kind in ("*.py", "*.js", "*.css", "*.html", "*.cu", "*.cuh")
    for path in sorted((ROOT / package).rglob(kind))
    if not {"vendor", "node_modules"} & set(path.parts)
]


# functions of more than 40 lines without docstring, and the longest of each package;
# the figures may only fall
LONGEST = 40
CEILINGS = {
    "api": (4, 45),
    "common": (0, 0),
    "migrations": (2, 186),
    "service": (4, 53),
    "solver": (13, 84),
    "workers": (1, 41),
    "benchmarks": (3, 69),
    "examples": (0, 0),
}


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count a function's lines without its head, decorators and docstring."""
    body = function.body
    if ast.get_docstring(function) is not None:
        body = body[1:]
    return (function.end_lineno or 0) - body[0].lineno + 1 if body else 0


@pytest.mark.parametrize("package", CEILINGS)
def test_no_more_functions_than_before_are_long(package: str) -> None:
    number, most = CEILINGS[package]
    long = {
        f"{path.relative_to(ROOT)}: {node.name}": lines
        for path in sorted((ROOT / package).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and (lines := body_lines(node)) > LONGEST
    }
    assert len(long) <= number, f"cut one of these, or what was added: {long}"
    assert max(long.values(), default=0) <= most, long


def test_hooks_before_a_commit_are_local_and_those_of_make_lint() -> None:
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    assert {repo["repo"] for repo in config["repos"]} == {"local"}
    hooks = [hook for repo in config["repos"] for hook in repo["hooks"]]
    lint = (ROOT / "Makefile").read_text().partition("\nlint:")[2].partition("\n\n")[0]
    for hook in hooks:
        assert hook["language"] == "system"
        assert f"$(BIN)/{hook['entry'].removesuffix(' --force-exclude')}" in lint
    assert len(hooks) == 4


def test_no_source_file_is_longer_than_400_lines() -> None:
    too_long = {
        str(path.relative_to(ROOT)): length
        for path in SOURCES
        if (length := len(path.read_text().splitlines())) > 400
    }
    assert not too_long


def test_no_module_is_exempt_from_types() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]
    assert "tests" in settings["files"]
    exempt = [
        override["module"]
        for override in settings["overrides"]
        if override.get("ignore_errors")
    ]
    assert exempt == []


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_says_what_lives_there(package: str) -> None:
    readme = ROOT / package / "README.md"
    assert len(readme.read_text().splitlines()) <= 20


def test_lock_file_names_no_registry() -> None:
    assert "://" not in (ROOT / "requirements.lock").read_text()


def test_only_the_folders_of_a_physics_name_what_its_curves_are_made_of() -> None:
    words = re.compile(r"""mode_count|recurrence|lanczos|until_yr|["']mode["']""", re.I)
    own = ("physics/viscoelastic", "engines/viscoelastic")
    packages = ("api", "service", "workers", "migrations")
    named = [
        f"{path.relative_to(ROOT)}: {found[0]}"
        for package in packages
        for path in (ROOT / package).rglob("*")
        if path.suffix in {".py", ".js", ".j2"}
        and not any(folder in path.as_posix() for folder in (*own, "/vendor/"))
        and (found := words.search(path.read_text()))
    ]
    assert named == []


def test_only_its_own_folders_name_a_mode_of_a_physics() -> None:
    modes = {"adams_bashforth", "four_steps", "galerkin", "integrator", "spectral"}
    naming = {
        str(path.relative_to(ROOT)): sorted(named)
        for package in ("api", "service", "workers", "migrations")
        for path in sorted((ROOT / package).rglob("*.py"))
        if "viscoelastic" not in path.parts
        and (named := modes & set(re.findall(r"\w+", path.read_text().lower())))
    }
    assert naming == {}
