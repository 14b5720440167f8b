"""Content identity: what changes a digest and what must not."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from afterslip.errors import SpecError
from afterslip.identity import (
    campaign_digest,
    canonical,
    canonical_spec,
    digest,
    greens_digest,
    model_digest,
)
from afterslip.schemas.campaign import Campaign
from afterslip.spec import load, parse_campaign, parse_stored
from afterslip.spec.files import LocalFiles, content_ref
from afterslip.spec.inputs import refs, with_refs

SPECS = Path(__file__).parent / "specs"
FILES = LocalFiles(SPECS)


@pytest.fixture
def data() -> dict:
    return load(SPECS / "tohoku.yaml")


def identities(data: dict, files: LocalFiles = FILES) -> tuple[str, str, str]:
    spec = parse_campaign(data)
    return (
        campaign_digest(spec, files),
        greens_digest(spec, files),
        model_digest(spec, files),
    )


def test_canonical_form_is_sorted_json_that_parses_to_the_same_spec(data: dict) -> None:
    spec = parse_campaign(data)
    text = canonical(spec)
    again = json.loads(text)
    assert (
        text
        == json.dumps(
            again, sort_keys=True, separators=(",", ":"), ensure_ascii=False
        ).encode()
    )
    assert again["times"]["until"] == "315576000.0 s"
    assert parse_campaign(again) == spec
    assert canonical(parse_campaign(again)) == text


def test_the_digest_of_plain_data_is_known() -> None:
    assert canonical({"b": [1, 2.5, -0.0, None], "a": "é"}) == (
        '{"a":"é","b":[1,2.5,0.0,null]}'.encode()
    )
    assert digest({}) == content_ref(b"{}")
    with pytest.raises(ValueError, match="not finite"):
        canonical({"a": float("nan")})
    with pytest.raises(ValueError, match="no canonical form"):
        canonical({"a": np.arange(3)})


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["times"].update(until="3652.5 d"),
        lambda d: d["model"]["layers"][0].update(vp="6400 m/s", rheology="elastic"),
        lambda d: d["model"]["layers"][1]["rheology"]["maxwell"].update(
            viscosity="1e19"
        ),
        lambda d: d.update(sources=dict(reversed(d["sources"].items()))),
        lambda d: d["model"].pop("gravity"),
        lambda d: d["model"]["mesh"]["size"].update(growth=0.35),
        lambda d: d["model"]["domain"].update(x=[-700.0, "700 km"]),
    ],
)
def test_another_spelling_is_the_same_campaign(data: dict, change) -> None:
    before = identities(data)
    change(data)
    assert identities(data) == before


def burgers(data: dict) -> None:
    law = {"viscosity": 1e19, "kelvin_viscosity": 1e18, "kelvin_ratio": 0.5}
    data["model"]["layers"][1]["rheology"] = {"burgers": law}


def test_every_number_of_a_burgers_body_is_part_of_the_identity(data: dict) -> None:
    burgers(data)
    before = identities(data)
    for key in ("viscosity", "kelvin_viscosity", "kelvin_ratio"):
        data["model"]["layers"][1]["rheology"]["burgers"][key] *= 2.0
        after = identities(data)
        assert not {*before} & {*after}
        before = after


def test_digests_are_those_of_earlier_releases(data: dict) -> None:
    """Literal: stored campaigns and models are found again by them."""
    maxwell = identities(data)
    burgers(data)
    creeps = identities(data)
    data["model"]["layers"][1]["rheology"] = "elastic"
    found = [value.partition(":")[2][:16] for value in (*maxwell, *creeps)]
    assert found == [
        "9706ac6bb3af0172",
        "e14ca8963ad83668",
        "06dde409f70570a6",
        "b7d7ce6f409de8ce",
        "87a83e5ce04db542",
        "a959f367b7744440",
    ]
    assert identities(data)[2].startswith("sha256:12d84cbdda6753bb")


def test_a_model_stored_by_0_1_0_is_found_by_its_spec() -> None:
    stored = json.loads((SPECS.parents[1] / "service/data/rows-0.1.0.json").read_text())
    for row in stored["campaigns"]:
        spec = parse_stored(row["canonical"])
        assert model_digest(spec) == row["model"]["model_digest"]
        assert canonical(spec.model) == canonical(row["canonical"]["model"])


def same(data: dict, change, files: LocalFiles = FILES) -> list[bool]:
    before = identities(data)
    change(data)
    after = identities(data, files)
    return [a == b for a, b in zip(before, after, strict=True)]


@pytest.mark.parametrize(
    ("change", "unchanged"),
    [
        # campaign, greens, model
        (lambda d: d.update(name="other"), [False, True, True]),
        (lambda d: d.pop("stations"), [False, True, True]),
        (lambda d: d.update(inversions=[], datasets=[]), [False, True, True]),
        (lambda d: d["times"].update(output=["1 yr"]), [False, True, True]),
        (lambda d: d["solver"].update(backend="cpu"), [False, True, True]),
        (lambda d: d["solver"].update(gpus=4), [False, True, True]),
        (lambda d: d["times"].update(until="11 yr"), [False, False, True]),
        (lambda d: d["sources"].update(down_dip=7), [False, False, True]),
        (lambda d: d["solver"].update(tolerance=1e-9), [False, False, True]),
        (lambda d: d["model"]["layers"][0].update(vp=6.5), [False, False, False]),
        (lambda d: d["model"]["mesh"]["size"].update(far=90), [False, False, False]),
        (lambda d: d["model"]["mesh"]["size"].update(growth=0.3), [False] * 3),
        (lambda d: burgers(d), [False] * 3),
        (lambda d: d["model"]["gravity"].update(restoring=True), [False] * 3),
        (lambda d: d["model"]["boundary"].update(sides="fixed"), [False] * 3),
    ],
)
def test_each_digest_changes_with_what_it_names(data: dict, change, unchanged) -> None:
    assert same(data, change) == unchanged


def test_content_of_files_counts_and_their_names_do_not(
    data: dict, tmp_path: Path
) -> None:
    shutil.copytree(SPECS, tmp_path / "copy")
    folder = tmp_path / "copy"
    (folder / "slab.csv").rename(folder / "plate.csv")

    def rename(d: dict) -> None:
        d["model"]["bodies"][0]["below"] = "plate.csv"
        d["model"]["faults"][0]["surface"]["file"] = "plate.csv"

    assert same(data, rename, LocalFiles(folder)) == [True, True, True]
    with (folder / "plate.csv").open("a") as stream:
        stream.write("143.0,38.0,11.0\n")
    assert identities(data, LocalFiles(folder))[2] != model_digest(
        parse_campaign(load(SPECS / "tohoku.yaml")), FILES
    )


def test_canonical_spec_names_files_by_content(data: dict) -> None:
    spec = parse_campaign(data)
    plain = canonical_spec(spec, FILES)
    found = refs(parse_campaign(plain))
    assert all(ref.startswith("sha256:") for ref in found.values())
    assert found["stations.file"] == content_ref(FILES.read("stations.csv"))
    assert campaign_digest(parse_campaign(plain)) == campaign_digest(spec, FILES)
    with pytest.raises(SpecError, match="no content digest yet"):
        campaign_digest(spec)


def test_references_are_found_and_replaced_by_path(data: dict) -> None:
    spec = Campaign.from_dict(data, SPECS)
    found = refs(spec)
    assert list(found) == [
        "model.bodies[0].below",
        "model.faults[0].surface.file",
        "model.faults[0].surface.outline",
        "stations.file",
        "datasets[0].file",
    ]
    other = with_refs(spec, {"datasets[0].file": "sha256:" + "0" * 64})
    assert other.datasets[0].file == "sha256:" + "0" * 64
    assert other.base == SPECS
    assert {k: v for k, v in refs(other).items() if k != "datasets[0].file"} == {
        k: v for k, v in found.items() if k != "datasets[0].file"
    }
    with pytest.raises(SpecError, match="names no file"):
        with_refs(spec, {"datasets[7].file": "x"})


def test_missing_files_are_all_reported_with_their_paths(
    data: dict, tmp_path: Path
) -> None:
    with pytest.raises(SpecError) as caught:
        canonical_spec(parse_campaign(data), LocalFiles(tmp_path))
    assert len(caught.value.problems) == 5
    assert caught.value.problems[3].path == "stations.file"
