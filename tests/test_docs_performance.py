"""The page of figures says what the records say."""

import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture
def script():
    path = ROOT / "benchmarks/performance_page.py"
    spec = importlib.util.spec_from_file_location("performance_page", path)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    assert spec.loader is not None
    spec.loader.exec_module(module)
    return module


def test_tables_of_the_page_are_those_of_the_records(script):
    text = script.PAGE.read_text()
    assert script.page(text) == text, "run python benchmarks/performance_page.py"
    assert len(text.splitlines()) <= 120


def test_another_figure_in_a_record_changes_the_page(script, tmp_path):
    for path in script.RECORDS.glob("*.json"):
        (tmp_path / path.name).write_text(path.read_text())
    changed = tmp_path / "campaign-h200.json"
    content = json.loads(changed.read_text())
    assert content["records"][0]["metric"] == "campaign_372_s"
    content["records"][0]["value"] = 123.0
    changed.write_text(json.dumps(content))
    script.RECORDS = tmp_path
    assert "123 s" in script.page(script.PAGE.read_text())


def test_page_without_a_marker_is_refused(script):
    text = script.PAGE.read_text().replace("<!-- peers -->", "")
    with pytest.raises(SystemExit, match="peers"):
        script.page(text)
