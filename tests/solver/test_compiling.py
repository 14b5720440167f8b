"""What is cached of compiled functions is that of their sources and types."""

from __future__ import annotations

import importlib.util
import os
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from afterslip_solver.jit import compiling

MODULE = """
import numpy as np
from afterslip_solver.jit.compiling import compiled
from beside import factor

@compiled()
def scaled(a):
    return factor() * a.sum()
"""
BESIDE = """
from afterslip_solver.jit.compiling import compiled

@compiled()
def factor():
    return {}
"""


@pytest.fixture
def process(tmp_path, monkeypatch):
    """Load the function anew, as another process would."""
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr("numba.config.CACHE_DIR", "")
    # bytecode of a source changed within a second to one of the same size counts as new
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    (tmp_path / "module.py").write_text(MODULE)

    def load(factor=2):
        (tmp_path / "beside.py").write_text(BESIDE.format(factor))
        compiling.sources.cache_clear()
        for name in ("beside", "module"):
            spec = importlib.util.spec_from_file_location(name, tmp_path / f"{name}.py")
            assert spec is not None
            module = importlib.util.module_from_spec(spec)
            monkeypatch.setitem(sys.modules, name, module)
            assert spec.loader is not None
            spec.loader.exec_module(module)
        return module.scaled

    yield load
    compiling.sources.cache_clear()


def hits(function):
    return sum(function.stats.cache_hits.values())


def test_code_is_compiled_once_for_all_processes(process):
    assert process()(np.ones(3)) == 6.0
    second = process()
    assert second(np.ones(3)) == 6.0
    assert hits(second) == 1


def test_a_change_beside_the_function_is_noticed(process):
    assert process()(np.ones(3)) == 6.0
    changed = process(factor=5)
    assert changed(np.ones(3)) == 15.0
    assert hits(changed) == 0


def test_processes_that_compile_at_the_same_time_keep_both(process, monkeypatch):
    one, other = process(), process()
    files = type(one._cache._cache_file)
    write, begun = files._open_for_write, []

    @contextmanager
    def meanwhile(self, path):
        with write(self, path) as file:
            if not begun and "scaled" in path:
                begun.append(path)
                other(np.ones(3, dtype=np.int64))
            yield file

    monkeypatch.setattr(files, "_open_for_write", meanwhile)
    one(np.ones(3))
    assert begun
    third = process()
    assert third(np.full(3, 0.5)) == 3.0
    assert third(np.ones(3, dtype=np.int64)) == 6
    assert hits(third) == 2


def test_a_damaged_file_is_made_again(process, tmp_path):
    process()(np.ones(3))
    for path in tmp_path.rglob("*.nbc"):
        path.write_bytes(path.read_bytes()[:100])
    second = process()
    assert second(np.ones(3)) == 6.0
    assert hits(second) == 0
    third = process()
    third(np.ones(3))
    assert hits(third) == 1


def test_sources_follow_imports_to_other_folders_of_the_package(tmp_path):
    def write(name, text):
        path = tmp_path / "package" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        (path.parent / "__init__.py").touch()
        path.write_text(text)
        return path

    def digest():
        compiling.sources.cache_clear()
        return compiling.sources(kernel)

    write("unrelated.py", "A = 1")
    kernel = write("deep/kernel.py", "from package.tables import between")
    write("tables/between.py", "from package.tables.constants import SIZE\nimport os")
    write("tables/constants.py", "SIZE = 1")
    first = digest()
    write("unrelated.py", "A = 2")
    assert digest() == first
    write("tables/constants.py", "SIZE = 2")
    assert digest() != first


def test_sources_follow_imports_to_the_common_room(tmp_path, monkeypatch):
    common = tmp_path / "beside" / "afterslip_common"
    common.mkdir(parents=True)
    kernel = tmp_path / "package" / "kernel.py"
    kernel.parent.mkdir()
    kernel.with_name("__init__.py").touch()
    kernel.write_text("from afterslip_common.terms import SIZE")
    monkeypatch.setattr(compiling, "_COMMON", common.parent)
    found = set()
    for size in (4, 8):
        (common / "terms.py").write_text(f"SIZE = {size}")
        compiling.sources.cache_clear()
        found.add(compiling.sources(kernel))
    assert len(found) == 2


def test_sources_leave_out_other_distributions_of_the_same_folder(tmp_path):
    for package, text in {"ours": "import theirs", "theirs": "SIZE = 1"}.items():
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text(text)
    kernel = tmp_path / "ours" / "kernel.py"
    kernel.write_text("from ours import theirs\nfrom theirs import SIZE")
    found = set()
    for size in (1, 2):
        (tmp_path / "theirs" / "__init__.py").write_text(f"SIZE = {size}")
        compiling.sources.cache_clear()
        found.add(compiling.sources(kernel))
    assert len(found) == 1


@pytest.mark.parametrize("what", ["file", "folder"])
def test_code_that_others_could_have_written_is_not_loaded(process, what):
    first = process()
    first(np.ones(3))
    folder = Path(first._cache.cache_path)
    places = [folder] if what == "folder" else list(folder.glob("*.nbc"))
    for path in places:
        path.chmod(0o777)
    again = process()
    assert again(np.ones(3)) == 6.0
    assert hits(again) == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_code_of_another_account_is_not_loaded(process):
    first = process()
    first(np.ones(3))
    for path in Path(first._cache.cache_path).glob("*.nbc"):
        os.chown(path, 65534, 65534)
    again = process()
    assert again(np.ones(3)) == 6.0
    assert hits(again) == 0


def test_code_of_an_account_that_shares_its_files_is_loaded(process):
    before = os.umask(0o002)
    try:
        process()(np.ones(3))
    finally:
        os.umask(before)
    again = process()
    again(np.ones(3))
    assert hits(again) == 1
