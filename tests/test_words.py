"""Words and names that were given up do not come back.

A newcomer cannot guess what a coinage means; `docs/glossary.md` has the terms instead.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ["api", "common", "migrations", "service", "solver", "workers"]
FOLDERS = [*PACKAGES, ".ci", "benchmarks", "deploy", "docs", "examples", "tests"]

# what is not written any more: what is written instead
WORDS = {
    "dear": "expensive",
    "foretell": "predict, estimate",
    "foretold": "predicted, estimated",
    "kept": "stored, recorded, left",
    "mend": "hint (advice) or repair (an act)",
    "mended": "repaired",
    "mending": "repairing",
    "mends": "repairs",
    "seen": "received, resolved, known, checked",
    "spent": "used, overwritten",
    "stranger": "anonymous, not trusted",
    "strangers": "anonymous, not trusted",
    "stumbled": "failed",
    "told": "reported, recorded, named",
    "whoever": "any process, any user",
}
# names of recorded figures, and a column of the database
PUBLIC = {
    "benchmarks/setup.py": "kept",
    "migrations/afterslip_migrations/versions/0001_first_schema.py": "seen",
    "service/afterslip_service/benchmarks/load.py": "told",
    "service/afterslip_service/db/attempts.py": "seen",
    "service/afterslip_service/db/claims.py": "seen",
    "service/afterslip_service/db/tables.py": "seen",
    "service/afterslip_service/reconcile/watch.py": "seen",
    "solver/afterslip_solver/benchmarks/growth.py": "kept",
}
# deprecated keys and the tests that they are still sent
ALLOWED = {
    "api/afterslip/client/errors.py": "mend",
    "api/afterslip/errors.py": "mend",
    "CHANGELOG.md": "mend mended",
    "docs/api.md": "mend",
    "service/afterslip_service/commands/fsck.py": "mended",
    "service/afterslip_service/http/problems.py": "mend",
    "tests/api/test_client_transport.py": "mend",
    "tests/service/test_campaigns.py": "mend",
    "tests/service/test_fsck.py": "mended",
}
# names of old that nothing has any more
NAMES = [
    r"afterslip\.(?:tables|document|validation|files|inputs|references|coverage)",
    r"cli[./](?:look|act)",
    r"plot[./](?:seen|scene)",
    r"doubts",
    r"see_free",
    r"StrangerDep",
    r"KeyedDep",
    r"retry\.judge",
    r"afterslip_service\.routes\.(?:intake|trail|stored|reference|shapes|changes)",
    r"TraceJudge",
    r"_?Told",
    r"WarmCache",
]
ALLOWED_NAMES = {"CHANGELOG.md"}


def sources() -> list[str]:
    paths = [*ROOT.glob("*.md")]
    for top in FOLDERS:
        for kind in ("*.py", "*.md", "*.js"):
            paths += (ROOT / top).rglob(kind)
    names = {path.relative_to(ROOT).as_posix() for path in paths}
    here = Path(__file__).relative_to(ROOT).as_posix()
    others = re.compile("/(vendor|node_modules)/")
    return sorted(name for name in names - {here} if not others.search(name))


def places(name: str, pattern: re.Pattern[str]) -> list[tuple[int, str]]:
    """Numbers of lines with what is found there; 0 is the file's own name."""
    lines = [name, *(ROOT / name).read_text(encoding="utf-8").splitlines()]
    return [
        (number, found)
        for number, line in enumerate(lines)
        for found in pattern.findall(line)
    ]


# letters beside it make another word, an underscore does not
RETIRED = re.compile(rf"(?<![a-z])({'|'.join(WORDS)})(?![a-z])", re.IGNORECASE)
OLD_NAMES = re.compile(rf"(?<![\w.])({'|'.join(NAMES)})(?![\w])")


def test_retired_words_are_not_written() -> None:
    wrong = [
        f"{name}:{number}: {word}; say {WORDS[word.lower()]}"
        for name in sources()
        for number, word in places(name, RETIRED)
        if word.lower() not in PUBLIC.get(name, "").split()
        and word.lower() not in ALLOWED.get(name, "").split()
    ]
    assert not wrong, "\n".join(wrong)


def test_old_names_are_gone() -> None:
    wrong = [
        f"{name}:{number}: {found}"
        for name in sources()
        if name not in ALLOWED_NAMES
        for number, found in places(name, OLD_NAMES)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("def is_told_at_once():", ["told"]),
        ("Whoever mends it", ["Whoever", "mends"]),
        ("recommended, untold, heldout, dearth", []),
    ],
)
def test_a_word_is_found_by_itself_and_inside_names(
    line: str, found: list[str]
) -> None:
    assert RETIRED.findall(line) == found
