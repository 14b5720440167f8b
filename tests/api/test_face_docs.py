"""The user's pages name every key, verb, public name and variable, as they are."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from example_result import example_result
from small_store import TIMES, sources, square, stations

import afterslip
from afterslip import spec
from afterslip.cli.verbs import verbs
from afterslip.client import Client
from afterslip.client.campaign import CampaignHandle
from afterslip.client.inversion import Inversion
from afterslip.physics.viscoelastic import store
from afterslip.physics.viscoelastic.spec import (
    ViscoelasticCampaign,
    ViscoelasticForward,
)
from afterslip.result import ATTRIBUTES, LAYOUT

DOCS = Path(__file__).parents[2] / "docs"


def page(name):
    return (DOCS / name).read_text()


def spec_rows(model):
    """Lines of the table of keys that the schema implies, by section."""
    schema = model.model_json_schema()
    parts = {model.__name__: schema} | schema.get("$defs", {})
    return {
        name: [row(key, field, part) for key, field in part["properties"].items()]
        for name, part in parts.items()
    }


def row(key, field, part):
    must = "required" if key in part.get("required", []) else default(field)
    text = field.get("description", "").replace("|", "\\|")
    return f"| `{key}` | {kind(key, field)} | {must} | {text} |"


def default(field):
    value = field.get("default")
    if value in ([], {}, None) or isinstance(value, dict):
        return "–"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, list):
        return f"`[{', '.join(value)}]`"
    return f"`{plain(value)}`" if isinstance(value, float) else f"`{value}`"


def plain(number):
    """A number as a user would write it."""
    return f"{number:g}".replace("e-0", "e-").replace("e+", "e")


def kind(key, field):
    """Unit and range, or the words that are allowed, or what it is made of."""
    for part in [field, *field.get("anyOf", [])]:
        if "enum" in part:
            return ", ".join(f"`{v}`" for v in part["enum"])
        if part.get("type") in ("number", "integer"):
            return span(part)
    kinds = {part.get("type") for part in [field, *field.get("anyOf", [])]}
    if "boolean" in kinds:
        return "`true`, `false`"
    if "string" in kinds:
        if key in ("file", "outline", "below", "topography"):
            return "file"
        return "time" if key in ("until", "step", "epoch", "spacing") else "text"
    return "list" if "array" in kinds else "mapping"


def span(part):
    low = part.get("minimum", part.get("exclusiveMinimum"))
    high = part.get("maximum", part.get("exclusiveMaximum"))
    words = []
    if low is not None:
        words.append(("≥ " if "minimum" in part else "> ") + plain(low))
    if high is not None:
        words.append(("≤ " if "maximum" in part else "< ") + plain(high))
    unit = [part["x-unit"]] if part.get("x-unit") else []
    return ", ".join(words + unit) or part["type"]


@pytest.mark.parametrize("model", [ViscoelasticCampaign, ViscoelasticForward])
def test_every_key_of_a_spec_is_documented_with_unit_range_and_default(model):
    text = page("spec.md")
    missing = [
        f"{section}: {line}"
        for section, lines in spec_rows(model).items()
        for line in lines
        if line not in text
    ]
    assert missing == []


def test_the_specs_on_the_page_are_good_ones():
    found = re.findall(r"```yaml\n(.*?)```", page("spec.md"), re.DOTALL)
    kinds = [type(spec.parse(spec.loads(text))).__name__ for text in found]
    assert kinds == ["ViscoelasticCampaign", "ViscoelasticForward"]


def test_python_on_the_pages_compiles():
    for text in re.findall(r"```python\n(.*?)```", page("python.md"), re.DOTALL):
        compile(text, "python.md", "exec")


def test_every_verb_is_documented():
    text = page("start.md")
    assert [n for n in verbs() if f"`afterslip {n}" not in text] == []


def test_every_public_name_is_documented():
    text = page("python.md")
    names = [n for n in afterslip.__all__ if not n.startswith("__")]
    for kind_of, owner in (
        (Client, "client"), (CampaignHandle, "campaign"), (Inversion, "inversion"),
    ):  # fmt: skip
        names += [f"{owner}.{n}" for n in vars(kind_of) if not n.startswith("_")]
    missing = [
        n for n in names if not re.search(rf"`(?:[\w]+ )?{re.escape(n)}\b", text)
    ]
    assert missing == []


def test_every_variable_of_a_result_is_documented():
    text = page("files.md")
    names = [*LAYOUT, *ATTRIBUTES, *example_result().variables, *example_result().attrs]
    skipped = {"component", "slip_component"}
    assert [n for n in names if n not in skipped and f"`{n}`" not in text] == []


def test_every_variable_of_the_store_is_documented():
    text = page("files.md")
    sizes = store.Sizes(source=8, mode=3, node=10, face=4, station=2, time=2)
    arrays = [
        *store.layout_of(sizes, "spectral").grouped,
        *store.layout_of(sizes, "stepping").grouped,
    ]
    assert [a.name for a in arrays if f"`{a.name}`" not in text] == []


def names_of(layout, values):
    return {a.name for a in layout.grouped} | {array.name for array, _ in values}


def test_what_a_store_may_lack_is_marked_on_the_page():
    geographic, local = square(), replace(square(), lon=None, lat=None)
    places = replace(stations(), lon=np.ones(2), lat=np.ones(2))
    full = store.Sizes(6, 3, 49, len(local.faces), station=2, time=3, error_time=2)
    least = replace(full, station=0, error_time=0)
    known = sources(), geographic, places, TIMES, 3
    fixed = store.fixed_arrays
    spectral = names_of(store.layout_of(full), fixed(*known, errors_at=TIMES[1:]))
    stepping = names_of(store.layout_of(full, "stepping"), fixed(*known, TIMES))
    poor = names_of(store.layout_of(least), fixed(sources(), local, None, TIMES, 3))
    optional = (spectral | stepping | poor) - (spectral & stepping & poor)
    _, _, table = page("files.md").partition("### greens.zarr")
    rows = re.findall(r"^\| (`.*?) \|", table.partition("### result.nc")[0], re.M)
    marked = {n for r in rows if r.endswith("(o)") for n in re.findall(r"`(\w+)`", r)}
    assert marked == optional - {"station"}


def test_links_between_the_pages_lead_somewhere():
    for path in DOCS.glob("*.md"):
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text()):
            assert (path.parent / target).exists(), f"{path.name}: {target}"
