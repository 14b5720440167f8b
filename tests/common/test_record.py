"""Files of benchmarks' figures."""

import json

from afterslip_common.record import commit, device_name, record, write_records


def test_records_are_written_with_their_machine_and_commit(tmp_path):
    found, path = [record("solve_s", 1.0, "s", 2.0, "note")], tmp_path / "found.json"
    write_records(None, found)
    assert not list(tmp_path.iterdir())
    write_records(path, found)
    written = json.loads(path.read_text())
    assert written == {"device": device_name(), "commit": commit(), "records": found}
    write_records(path, found, "abc")
    assert json.loads(path.read_text()) == written | {"commit": "abc"}
