"""An export that is added as the page says is one of the verb's formats."""

import re
from pathlib import Path

import numpy as np
import pytest
from example_result import example_result

from afterslip import exports
from afterslip.cli import main as command
from afterslip.cli.export import WITH_OPTIONS

DOCS = Path(__file__).parents[2] / "docs"


def test_snippets_of_the_page_add_a_format(tmp_path, monkeypatch):
    text = (DOCS / "how-to/add-an-export.md").read_text()
    assert len(text.splitlines()) <= 60
    monkeypatch.setattr(exports, "FORMATS", dict(exports.FORMATS))
    names = {}
    for snippet in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(snippet, "add-an-export.md", "exec"), names)
    result = example_result(n_along=5, n_down=4)
    result.to_netcdf(tmp_path / "result.nc", engine="h5netcdf")
    with pytest.raises(SystemExit) as ended:
        command.main(["export", str(tmp_path), "--format", "xyz"])
    assert not ended.value.code
    found = np.loadtxt(tmp_path / "slip.xyz")
    assert found.shape == (result.sizes["fault_node"], 3)
    slip = np.hypot(*result.fault_slip.values.T)
    np.testing.assert_allclose(found[:, 2], slip, atol=1e-4)


@pytest.mark.parametrize("name", [*exports.FORMATS, *WITH_OPTIONS])
def test_every_format_is_described(name):
    table = (DOCS / "files.md").read_text()
    assert f"| `{name}` | `write_" in table
    assert name in (DOCS.parent / "api/afterslip/cli/export.py").read_text()
