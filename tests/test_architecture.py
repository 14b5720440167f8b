"""Rules of the house that no linter knows."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = ["api", "migrations", "service", "solver", "workers"]
SOURCES = [
    path
    for room in [*ROOMS, "tests", "benchmarks", "examples"]
    for kind in ("*.py", "*.js", "*.css", "*.html", "*.cu")
    for path in sorted((ROOT / room).rglob(kind))
    if "vendor" not in path.parts
]


def test_no_source_file_is_longer_than_400_lines() -> None:
    too_long = {
        str(path.relative_to(ROOT)): length
        for path in SOURCES
        if (length := len(path.read_text().splitlines())) > 400
    }
    assert not too_long


@pytest.mark.parametrize("room", ROOMS)
def test_every_room_says_what_lives_there(room: str) -> None:
    readme = ROOT / room / "README.md"
    assert len(readme.read_text().splitlines()) <= 20


def test_lock_file_names_no_registry() -> None:
    assert "://" not in (ROOT / "requirements.lock").read_text()
