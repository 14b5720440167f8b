"""Warm models stay while they fit."""

import numpy as np

from afterslip_workers.machine.model_cache import ModelCache, footprint


def _block(megabytes):
    return np.ones(megabytes << 17)


def test_second_task_finds_the_model_warm():
    cache = ModelCache(1 << 30)
    first = cache.get("m", lambda: _block(1))
    assert cache.get("m", lambda: _block(1)) is first
    assert cache.builds == 1


def test_least_recently_used_goes_first():
    cache = ModelCache(200 << 20)
    cache.get("a", lambda: _block(60))
    cache.get("b", lambda: _block(60))
    cache.get("a", lambda: _block(60))
    cache.get("c", lambda: _block(60))
    cache.get("d", lambda: _block(60))
    assert "b" not in cache
    assert "d" in cache
    assert cache.bytes <= 200 << 20


def test_model_larger_than_the_limit_still_works():
    cache = ModelCache(1)
    assert cache.get("m", lambda: _block(4)).nbytes == 4 << 20
    assert len(cache) == 1


def test_footprint_counts_shared_arrays_once(broken_ground):
    array = np.zeros(1000)
    assert footprint([array, array, {"again": array[:10]}]) == 8000
    mesh = broken_ground.mesh
    assert footprint(broken_ground) >= mesh.nodes.nbytes + mesh.elements.nbytes


def test_what_was_put_is_taken_once():
    cache = ModelCache(1 << 30)
    block = _block(1)
    cache.put("m", block)
    assert cache.bytes == 1 << 20
    assert cache.take("m") is block
    assert cache.take("m") is None
    assert cache.bytes == 0
