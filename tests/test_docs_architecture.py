"""The page on architecture names what exists, and draws the imports that exist."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs/architecture.md"
PACKAGES = {
    "afterslip": "api",
    "afterslip_common": "common",
    "afterslip_migrations": "migrations",
    "afterslip_service": "service",
    "afterslip_solver": "solver",
    "afterslip_workers": "workers",
}


def defined(source):
    """Names that a module defines or imports at its top."""
    names = set()
    for node in ast.parse(source.read_text()).body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {(alias.asname or alias.name) for alias in node.names}
    return names


def exists(dotted):
    """Whether a dotted name is a package, a module, or a name in one."""
    package, *rest = dotted.split(".")
    path = ROOT / PACKAGES[package] / package
    for number, part in enumerate(rest):
        if (path / part).is_dir():
            path /= part
        elif (path / f"{part}.py").is_file():
            path = path / f"{part}.py"
        else:
            source = path / "__init__.py" if path.is_dir() else path
            return number == len(rest) - 1 and part in defined(source)
    return True


def named(text):
    packages = "|".join(PACKAGES)
    return re.findall(rf"`((?:{packages})(?:\.\w+)+)`", text)


@pytest.mark.parametrize(
    "page", [PAGE, *sorted((ROOT / "docs/how-to").glob("*.md"))], ids=lambda p: p.stem
)
def test_every_module_and_file_that_a_page_names_exists(page):
    text = page.read_text()
    assert len(named(PAGE.read_text())) > 20
    assert not [name for name in named(text) if not exists(name)]
    files = re.findall(r"`((?:api|docs|tests)/[\w/.-]+)`", text)
    assert not [name for name in files if not (ROOT / name).exists()]
    for link in re.findall(r"\]\(([^)#]+)", text):
        assert (page.parent / link).exists(), link


@pytest.mark.parametrize(
    "page", sorted((ROOT / "docs/how-to").glob("add-*.md")), ids=lambda p: p.stem
)
def test_adding_a_part_touches_one_package_or_none_and_the_page_says_so(page):
    text = page.read_text()
    packages = "|".join(PACKAGES.values())
    touched = set(re.findall(rf"`({packages})/[\w/.-]+`", text))
    said = re.findall(rf"It touches the package `({packages})` alone", text)
    if said:
        assert touched == set(said)
    else:
        assert "nothing in this repository changes" in text
        assert not touched
        assert "[project.entry-points" in text


@pytest.mark.parametrize(
    "name", ["afterslip_service.db.nothing", "afterslip_workers.entry.nothing"]
)
def test_a_name_that_is_gone_is_noticed(name):
    assert not exists(name)


def test_drawn_imports_are_those_between_the_packages():
    drawn = set(re.findall(r"^ +(\w+) ==> (\w+)$", PAGE.read_text(), re.MULTILINE))
    found = set()
    for package in PACKAGES.values():
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                names = []
                if isinstance(node, ast.Import):
                    names = [alias.name for alias in node.names]
                elif isinstance(node, ast.ImportFrom):
                    names = [node.module or ""]
                tops = {name.partition(".")[0] for name in names}
                found |= {(package, PACKAGES[top]) for top in tops & PACKAGES.keys()}
    assert drawn == {(a, b) for a, b in found if a != b}


def test_each_walk_is_short():
    text = PAGE.read_text()
    for walk in text.split("\n## ")[1:]:
        lines = re.findall(r"^(?:\d+\.|  ) .*", walk, re.MULTILINE)
        assert 5 <= len(lines) <= 15, walk.splitlines()[0]
