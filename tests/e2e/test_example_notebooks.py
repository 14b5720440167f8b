"""The notebooks run from their first cell to their last, and hold no results."""

import os
import shutil
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).parents[2] / "examples/notebooks"
NAMES = ("greens_functions", "inversion", "postseismic_curves")


def test_they_hold_no_outputs():
    assert sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb")) == sorted(NAMES)
    for name in NAMES:
        book = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
        code = [cell for cell in book.cells if cell.cell_type == "code"]
        assert all(not cell.outputs and not cell.execution_count for cell in code)


# one after the other in one folder, as a reader does: what was solved is reused
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_they_run_in_their_order(tmp_path, monkeypatch):
    # nothing of this process's own user is read or written
    monkeypatch.setitem(os.environ, "IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setitem(os.environ, "JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    folder = tmp_path / "notebooks"
    shutil.copytree(NOTEBOOKS, folder, ignore=shutil.ignore_patterns("work"))
    printed = {}
    for name in NAMES:
        book = nbformat.read(folder / f"{name}.ipynb", as_version=4)
        place = {"metadata": {"path": str(folder)}}
        NotebookClient(book, timeout=300, resources=place).execute()
        outputs = [out for cell in book.cells for out in cell.get("outputs", [])]
        printed[name] = "".join(out.get("text", "") for out in outputs)
        kinds = {kind for out in outputs for kind in out.get("data", {})}
        assert {"image/png", "text/html"} <= kinds
    assert "the two sides differ by" in printed["greens_functions"]
    assert "95 % between" in printed["inversion"]
    assert "ten of the other differ by" in printed["postseismic_curves"]
