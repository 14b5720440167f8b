"""Whatever arrives, the answer is a spec or a list of problems."""

import copy
import json
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from afterslip.errors import SpecError
from afterslip.frame import Frame
from afterslip.identity import canonical
from afterslip.readers.interface import read_interface, read_outline
from afterslip.readers.observations import read_observations
from afterslip.readers.places import read_points, read_stations
from afterslip.readers.slip import read_slip
from afterslip.spec import load, loads, parse
from afterslip.spec.files import content_ref
from afterslip.spec.inputs import resolve
from afterslip.spec.references import leaves

SPECS = Path(__file__).parent / "specs"
CAMPAIGN, FORWARD = (load(SPECS / f"{name}.yaml") for name in ("tohoku", "forward"))
FRAMES = (Frame("geographic", 142.4, 38.3), Frame("local"))

fuzz = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
words = st.sampled_from(
    ["elastic", "auto", "1 d", "10 yr", "1e19", "a.csv", "main", "nan", "", "\0", "-5"]
)
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | words,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=8) | words, inner, max_size=4)
    ),
    max_leaves=8,
)


def places(data: Any, path: tuple = ()) -> list[tuple]:
    items = (
        data.items()
        if isinstance(data, dict)
        else enumerate(data)
        if isinstance(data, list)
        else ()
    )
    return [path, *(p for k, v in items for p in places(v, (*path, k)))]


def explained(call, *arguments: Any) -> None:
    """Call; the only way to fail is to say what is wrong, in JSON."""
    try:
        call(*arguments)
    except SpecError as error:
        found = error
    else:
        return
    assert found.problems
    text = str(found) + json.dumps(found.as_dicts(), allow_nan=False)
    assert "pydantic" not in text


@fuzz
@given(st.sampled_from([CAMPAIGN, FORWARD]), st.data())
def test_any_value_at_any_place_of_a_spec(spec: dict, data: st.DataObject) -> None:
    changed = copy.deepcopy(spec)
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from([p for p in places(changed) if p]))
        here = changed
        for key in path[:-1]:
            here = here[key]
        here[path[-1]] = data.draw(plain)
    explained(lambda: canonical(parse(changed)))


@fuzz
@given(plain)
def test_anything_at_all_as_a_spec(data: Any) -> None:
    explained(parse, data)


@fuzz
@given(st.binary() | st.text(alphabet=st.sampled_from("a:{}[]!&*\n\t -1.e'\"#|>?%@,")))
def test_any_text_as_yaml_or_json(text: bytes | str) -> None:
    explained(loads, text)
    explained(loads, text, "spec.json")


fields = st.sampled_from(
    [
        "",
        "1",
        "142.4",
        "38",
        "-1",
        "nan",
        "inf",
        "A",
        "gnss",
        "insar",
        "1e400",
        '"',
        "x y",
    ]
)
COLUMNS = (
    "station lon lat x_km y_km depth_km east north up sigma_e sigma_u type time los "
    "los_e los_n los_u strike dip"
)
headers = st.lists(st.sampled_from(COLUMNS.split(" ")), min_size=1, max_size=9)
tables = st.builds(
    lambda head, rows: "\n".join(
        [",".join(head), *(",".join(r) for r in rows)]
    ).encode(),
    headers,
    st.lists(st.lists(fields, min_size=1, max_size=9), max_size=4),
)


@fuzz
@given(tables | st.binary(), st.sampled_from(FRAMES))
def test_any_bytes_as_any_table(content: bytes, frame: Frame) -> None:
    for read in (
        read_stations,
        read_observations,
        read_points,
        read_slip,
        read_interface,
        read_outline,
    ):
        explained(read, content, frame)


class OneFile:
    """The same bytes under every name."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    def read(self, ref: str) -> bytes:
        return self.content

    def exists(self, ref: str) -> bool:
        return True


@fuzz
@given(tables | st.binary(), st.sampled_from([CAMPAIGN, FORWARD]))
def test_any_bytes_in_every_file_of_a_spec(content: bytes, spec: dict) -> None:
    explained(resolve, parse(spec), OneFile(content))


def test_leaves_of_a_spec_are_all_its_values() -> None:
    found = dict(leaves(parse(FORWARD)))
    assert found["model.faults[0].plane.dip"] == 30.0
    assert found["points[2][2]"] == 3.0
    assert content_ref(b"").startswith("sha256:e3b0")
