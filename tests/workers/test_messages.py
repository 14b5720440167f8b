"""Messages between service and workers, also of the release before and after."""

import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))
from typing import Any

from small_campaign import SmallCampaign

from afterslip_workers import entry
from afterslip_workers.engines.models import campaign_facts
from afterslip_workers.errors import TaskError
from afterslip_workers.messages import (
    VERSION,
    Cover,
    Envelope,
    Failure,
    Group,
    GroupManifest,
    InversionManifest,
    ModelManifest,
    NamedInversion,
    Origin,
    Progress,
    Receipt,
    Reuse,
    Stats,
    read_envelope,
    read_manifest,
    read_model_facts,
    read_progress,
    read_receipt,
)
from afterslip_workers.process import delivery
from afterslip_workers.store import commit, durable, paths, spool
from afterslip_workers.store import progress as progress_file
from afterslip_workers.store.backend import write_json
from afterslip_workers.store.errors import StoreError
from afterslip_workers.store.local import LocalBackend

WORK = {
    "version": VERSION,
    "token": "t1",
    "kind": "model",
    "campaign": "c1",
    "physics": "viscoelastic",
    "spec": {},
    "store": "s3://bucket",
}
FLAT = {"until": 9.0, "tolerance": 1e-8, "time_tolerance": 1e-6}

# as release 0.1.0 wrote it into its store
FIRST = {
    "version": 1,
    "token": "t1",
    "kind": "greens",
    "campaign": "c1",
    "model_digest": "sha256:m",
    "group": {"index": 1, "sources": [4]},
    "files": {"response/c/0": "ab"},
    "stats": {"solves": 7, "iterations": 91, "residual": 1e-9, "modes": [6, 6]},
    "history": [{"solves": 1, "residual": 0.1}],
    "covers": {"4": {**FLAT, "origin": "c0", "origin_position": 3}},
}
FIRST_MODEL: dict[str, Any] = {
    "version": 1,
    "token": "t0",
    "kind": "model",
    "campaign": "c1",
    "model_digest": "sha256:m",
    "n_sources": 1,
    "groups": [[0]],
    "sources": [{"fault": "main", "patch": 0}],
    "from_cache": False,
    "reuse": {"model": "m", "solver": "s", "slips": ["a"], "keys": ["k"], **FLAT},
    "files": {"node_x/c/0": "cd"},
    "n_unknowns": 300,
    "n_elements": 40,
    "n_node": 9,
    "quality": {"gamma_min": 0.3},
    "notes": ["the mesh is coarse"],
}

# of a campaign of release 0.1.0, without its own keys of arrays and meshes
FIRST_FACTS = {
    "digest": "sha256:m",
    "n_sources": 2,
    "groups": [[0, 1]],
    "files": {"node_x/c/0": "cd"},
    "sizes": {"n_source": 2},
    "integrator": "spectral",
    "order": [1, 0],
}

names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True)
numbers = st.floats(allow_nan=False)
plain = st.dictionaries(st.text(max_size=5), numbers | st.text(max_size=5), max_size=3)
files = st.dictionaries(st.text(max_size=9), st.text(max_size=9), max_size=3)
counts = st.integers(0, 2**31)
failures = st.builds(Failure, error_class=names, message=st.text())
figures = st.builds(
    Stats,
    solves=counts,
    seconds=numbers,
    phases=st.dictionaries(names, numbers, max_size=2),
    worker=st.text(max_size=9),
    spooled=st.none() | failures,
    residual=numbers | st.lists(numbers, max_size=2),
)
origins = st.builds(
    Origin, campaign=names, position=counts, group=counts, quality=plain, files=files
)
groups = st.builds(
    Group,
    index=counts,
    sources=st.lists(counts, max_size=4),
    taken=st.dictionaries(counts, origins, max_size=2),
)
stored = {"token": names, "campaign": names, "files": files, "model_digest": names}
covers = st.builds(
    Cover, quality=plain, origin=st.none() | names, origin_position=st.none() | counts
)
group_manifests = st.builds(
    GroupManifest,
    kind=st.just("greens"),
    group=groups,
    stats=figures,
    history=st.lists(plain, max_size=2),
    covers=st.dictionaries(counts, covers, max_size=2),
    **stored,
)
model_manifests = st.builds(
    ModelManifest,
    kind=st.just("model"),
    n_sources=counts,
    groups=st.lists(st.lists(counts, max_size=4), max_size=3),
    sources=st.lists(plain, max_size=2),
    reuse=st.none()
    | st.builds(
        Reuse,
        model=names,
        solver=names,
        slips=st.lists(names, max_size=2),
        keys=st.lists(names, max_size=2),
        quality=plain,
    ),
    quality=plain,
    notes=st.lists(st.text(max_size=9), max_size=2),
    **stored,
)
inversion_manifests = st.builds(
    InversionManifest,
    kind=st.just("inversion"),
    inversion=st.builds(NamedInversion, id=names, name=st.text(max_size=9)),
    summary=plain,
    **stored,
)
manifests = group_manifests | model_manifests | inversion_manifests
envelopes = st.builds(
    Envelope,
    token=names,
    kind=st.just("group"),
    campaign=names,
    physics=names,
    spec=plain,
    store=st.text(max_size=9),
    group=groups,
    backend=st.sampled_from(["auto", "cpu", "gpu"]),
    avoid=st.lists(st.text(max_size=9), max_size=2),
    timeout_s=st.none() | numbers,
)
receipts = st.builds(
    Receipt, token=names, outcome=st.just("stored"), manifest=manifests, stats=figures
) | st.builds(
    Receipt, token=names, outcome=st.just("failed"), error=failures, stats=figures
)


def travelled(message):
    return json.loads(json.dumps(message.as_json()))


@given(envelopes)
def test_envelope_arrives_as_it_was_sent(envelope):
    assert read_envelope(travelled(envelope)) == envelope


@given(manifests)
def test_manifest_is_read_as_it_was_written(manifest):
    assert read_manifest(travelled(manifest)) == manifest
    assert travelled(read_manifest(travelled(manifest))) == travelled(manifest)


@given(
    st.builds(
        Progress,
        token=names,
        phase=st.text(max_size=9),
        solves_done=st.none() | counts,
        iteration=st.none() | counts,
        residual=st.none() | numbers,
        lane_residuals=st.none() | st.lists(numbers, max_size=4),
        updated=numbers,
    )
)
def test_progress_is_read_as_it_was_written(progress):
    assert read_progress(travelled(progress)) == progress


def test_progress_and_facts_of_the_first_release_had_no_version_and_are_read():
    first = {"token": "t1", "phase": "solving", "solves_done": 3, "updated": 9.5}
    there = read_progress({**first, "lane_residuals": None})
    assert (there.solves_done, there.updated) == (3, 9.5)
    facts = read_model_facts(FIRST_FACTS)
    assert facts.groups == [[0, 1]]
    # what only an engine knows stays, and what was not said is not made up
    assert travelled(facts) == {**FIRST_FACTS, "version": VERSION}


def test_model_of_a_later_release_is_refused_by_groups_and_by_promotion(tmp_path):
    store = LocalBackend(tmp_path)
    store.prepare()
    facts = {**FIRST_FACTS, "version": VERSION + 1}
    write_json(store, paths.model_facts("c1"), facts)
    with pytest.raises(TaskError, match=r"the model\.json has version 3") as error:
        campaign_facts(store, "c1")
    assert error.value.error_class == "other_release"
    with pytest.raises(StoreError, match=r"campaign c1: the model\.json has version 3"):
        commit.facts_of(store, "c1")


def test_progress_that_an_engine_says_wrongly_is_left_out(tmp_path):
    """The watch over the child goes on with what was right before."""
    (tmp_path / "attempts" / "t1").mkdir(parents=True)
    said = progress_file.ProgressFile(tmp_path / "attempts" / "t1", "t1")
    said.update({"phase": "solving", "solves_done": 2})
    said.update({"phase": "solving", "solves_done": "many"})
    said.beat(force=True)
    found = progress_file.read(LocalBackend(tmp_path), "t1")
    assert found is not None
    assert found == Progress(
        token="t1", phase="solving", solves_done=2, updated=found.updated
    )


@given(receipts)
def test_receipt_arrives_as_it_was_sent(receipt):
    assert read_receipt(travelled(receipt)) == receipt


def test_infinite_and_undefined_figures_survive_the_way():
    sent = Stats(seconds=1.0, residual=float("inf"), time_error=float("nan"))
    there: Any = Stats.model_validate(travelled(sent))
    assert there.residual == float("inf")
    assert there.time_error != there.time_error


def test_envelope_of_the_first_release_is_read_as_one_of_this():
    origin = {"campaign": "c0", "position": 3, "group": 0, "files": {"a": "b"}}
    group = {"index": 1, "sources": [4], "taken": {"4": {**origin, **FLAT}}}
    first = {**WORK, "version": 1, "kind": "greens", "group": group, "strict": 2}
    del first["physics"]
    read = read_envelope(first)
    assert (read.version, read.kind, read.physics) == (VERSION, "group", "viscoelastic")
    assert read.escalation == 2
    assert read.taken == {4: Origin(**origin, quality=FLAT)}
    # what the worker hands to its child is read there again
    assert read_envelope(travelled(read)) == read


def test_manifest_of_the_first_release_is_read_and_nothing_of_it_is_lost():
    read = read_manifest(FIRST)
    cover = {"origin": "c0", "origin_position": 3, "quality": FLAT}
    new = {**FIRST, "version": VERSION, "covers": {"4": cover}}
    assert travelled(read) == new
    assert read_manifest(new) == read
    model = read_manifest(FIRST_MODEL)
    reuse = {k: v for k, v in FIRST_MODEL["reuse"].items() if k not in FLAT}
    known = {**FIRST_MODEL, "version": VERSION, "reuse": {**reuse, "quality": FLAT}}
    assert travelled(model) == known


def test_receipt_of_the_first_release_which_had_no_version_is_read():
    receipt = {"token": "t1", "outcome": "stored", "manifest": FIRST, "error": None}
    read = read_receipt({**receipt, "stats": FIRST["stats"]})
    assert read.manifest == read_manifest(FIRST)
    assert read.stats.as_json()["modes"] == [6, 6]


@pytest.mark.parametrize(
    ("read", "content", "what"),
    [
        (read_envelope, WORK, "envelope"),
        (read_manifest, FIRST, "manifest"),
        (read_receipt, {"token": "t1", "outcome": "cancelled"}, "receipt"),
        (read_progress, {"token": "t1", "updated": 1.0}, "progress"),
        (read_model_facts, FIRST_FACTS, "model.json"),
        (
            lambda content: read_receipt(
                {"token": "t1", "outcome": "stored", "manifest": content}
            ),
            FIRST,
            "manifest",
        ),
    ],
)
@pytest.mark.parametrize("version", [0, 3, "2", None])
def test_message_of_another_version_is_refused_by_its_name(
    read, content, what, version
):
    with pytest.raises(TaskError, match=rf"the {what} has version .*same re") as error:
        read({**content, "version": version, "new": 1})
    assert error.value.error_class == "other_release"


@pytest.mark.parametrize(
    ("read", "content", "says"),
    [
        (read_envelope, {**WORK, "stricter": 2}, "stricter"),
        (read_envelope, {**WORK, "kind": "waves"}, "kind"),
        (read_envelope, {**WORK, "kind": "group"}, "names no group"),
        (read_envelope, {**WORK, "kind": "inversion"}, "describes none"),
        (read_envelope, {**WORK, "token": "../t1"}, "token"),
        (read_envelope, {k: v for k, v in WORK.items() if k != "spec"}, "spec"),
        (read_envelope, {k: v for k, v in WORK.items() if k != "physics"}, "physics"),
        (read_manifest, {**FIRST, "group": {"index": "x", "sources": []}}, "index"),
        (read_manifest, {**FIRST, "kind": "wave"}, "wave"),
        (read_manifest, {"version": VERSION}, "kind"),
        (read_receipt, {"token": "t1", "outcome": "stored"}, "manifest"),
        (read_receipt, {"token": "t1", "outcome": "failed"}, "error"),
        (read_progress, {"token": "t1"}, "updated"),
        (read_progress, {"token": "t1", "updated": 1.0, "solves_done": "x"}, "solves"),
        (read_model_facts, {**FIRST_FACTS, "groups": [["x"]]}, "groups"),
    ],
)
def test_what_is_wrong_in_a_message_is_named(read, content, says):
    with pytest.raises(TaskError, match=says) as error:
        read(content)
    assert error.value.error_class == "internal"


def test_worker_refuses_an_envelope_of_a_later_release_before_anything_begins(
    tmp_path,
):
    """Through the real worker, whose store stays as it was."""
    campaign = SmallCampaign(tmp_path)
    content = {**campaign.envelope("model", "m1"), "version": VERSION + 1}
    receipt = read_receipt(entry.execute(content))
    assert receipt.error is not None
    assert receipt.error.error_class == "other_release"
    assert f"version {VERSION + 1}, this worker reads 1 and 2" in receipt.error.message
    assert receipt.token == "m1"
    assert entry.attempt_tokens(tmp_path) == []


def test_result_of_a_later_release_stays_in_the_spool_and_holds_up_no_other(
    tmp_path, monkeypatch
):
    monkeypatch.setenv(spool.ENV, str(tmp_path / "spool"))
    store = LocalBackend(tmp_path / "store")
    store.prepare()
    for token, version in (("late", VERSION + 1), ("ours", VERSION)):
        folder = spool.make(store, token)
        receipt = {"version": version, "token": token, "outcome": "cancelled"}
        durable.write_json(folder / "receipt.json", receipt)
    assert delivery.deliver_all() == 0
    ours = entry.read_receipt(store.root, "ours")
    assert ours is not None
    assert ours["outcome"] == "cancelled"
    assert entry.read_receipt(store.root, "late") is None
    assert (spool.entry(store, "late") / "receipt.json").exists()
