"""The collector of garbage rests while engines are imported, and no longer."""

import gc

import pytest

from afterslip_workers.engines import registry
from afterslip_workers.errors import TaskError
from afterslip_workers.machine.collector import no_collection


class Point:
    """An entry point of an engine."""

    value = "engine_of_a_test"

    def __init__(self, fails: bool) -> None:
        self.fails = fails

    def load(self) -> object:
        assert not gc.isenabled()
        if self.fails:
            raise ImportError("no such library")
        return self


@pytest.mark.parametrize("fails", [False, True])
def test_collection_goes_on_after_an_engine_was_imported(monkeypatch, fails: bool):
    point = Point(fails)
    monkeypatch.setattr(registry, "entry_points", lambda **_: [point])
    find = registry.find.__wrapped__  # remembers nothing of this
    if fails:
        with pytest.raises(TaskError):
            find("one")
    else:
        assert isinstance(find("one"), Point)
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off():
    gc.disable()
    try:
        with no_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
