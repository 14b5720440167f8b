"""The page on engines names the toy's entry points and finds the toy complete."""

import configparser
import re
import tomllib
from pathlib import Path

from afterslip.physics import registry
from afterslip_workers.engines import registry as engines

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/how-to/add-an-engine.md"
TOY = ROOT / "tests/toy_physics"


def snippet(kind):
    return re.findall(rf"```{kind}\n(.*?)```", PAGE.read_text(), re.DOTALL)


def test_entry_points_of_the_page_are_those_of_the_toy():
    (text,) = snippet("toml")
    wanted = tomllib.loads(text)["project"]["entry-points"]
    found = configparser.ConfigParser()
    found.read(TOY.glob("*/*.dist-info/entry_points.txt"))
    assert {name: dict(found[name]) for name in found.sections()} == wanted


def test_check_of_the_page_finds_the_toy_complete(monkeypatch):
    for part in ("client", "engine"):
        monkeypatch.syspath_prepend(str(TOY / part))
    registry.find.cache_clear()
    engines.find.cache_clear()
    assert len(PAGE.read_text().splitlines()) <= 65
    (code,) = snippet("python")
    names = {}
    exec(compile(code, PAGE.name, "exec"), names)
    assert names["lacking"] == []
    # and it does find what is missing
    assert names["missing"](object(), names["Reader"]) == [
        "evaluate",
        "sample",
        "stored",
        "until",
    ]
    registry.find.cache_clear()
    engines.find.cache_clear()
