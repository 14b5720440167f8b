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


@pytest.mark.parametrize("name", ["escalation", "strict"])
def test_escalation_is_read_under_its_old_name_too(name):
    assert parse({**WORK, name: 2}).escalation == 2
    assert parse(WORK).escalation == 0


def test_unknown_field_is_refused_by_its_name():
    with pytest.raises(TaskError, match="stricter"):
        parse({**WORK, "stricter": 2})
