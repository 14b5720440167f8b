"""What a worker reads of an envelope, also of the release before."""

import pytest

from afterslip_workers.envelope import VERSION, parse
from afterslip_workers.errors import TaskError

WORK = {
    "version": VERSION,
    "token": "t1",
    "kind": "model",
    "campaign": "c1",
    "spec": {},
    "store": "s3://bucket",
}


def test_envelope_of_the_first_release_is_read_as_one_of_this():
    origin = {"campaign": "c0", "position": 3, "group": 0, "files": {"a": "b"}}
    quality = {"until": 9.0, "tolerance": 1e-8, "time_tolerance": 1e-6}
    group = {"index": 1, "sources": [4], "taken": {"4": {**origin, **quality}}}
    first = {**WORK, "version": 1, "kind": "greens", "group": group, "strict": 2}
    read = parse(first)
    assert (read.version, read.kind, read.physics) == (VERSION, "group", "viscoelastic")
    assert read.escalation == 2
    assert read.group == {**group, "taken": {"4": {**origin, "quality": quality}}}
    # what the worker hands to its child is read there again
    assert parse(read.as_json()) == read


def test_envelope_of_a_later_release_is_refused_before_anything_begins():
    with pytest.raises(TaskError, match=r"version 3.*same release") as refused:
        parse({**WORK, "version": 3, "new": 1})
    assert refused.value.error_class == "other_release"


def test_unknown_field_is_refused_by_its_name():
    with pytest.raises(TaskError, match="stricter"):
        parse({**WORK, "stricter": 2})
