"""Every view by the rules of axe, and the page's types; both where npm has been."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from test_page import count, has, submit

VENDOR = Path(__file__).parents[2] / "service" / "vendor"
INSTALLED = VENDOR / "node_modules"

pytestmark = pytest.mark.skipif(
    not INSTALLED.is_dir(), reason="make vendor installs axe-core and TypeScript"
)

VIEWS = {
    "#/": f"{count('.row')} > 0",
    "#/new": has("can be submitted"),
    "#/campaigns/CAMPAIGN": f"{count('.grid button')} > 1",
    "#/workers": "document.querySelector('main').children.length > 1",
    "docs": f"{count('details')} > 10",
}


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("path", VIEWS)
def test_axe_finds_nothing(page, service, worker, path, dark):
    worker.fail["group", 1] = ["bad_input"]
    campaign = submit(service)
    shown = page(path.replace("CAMPAIGN", campaign), dark=dark)
    shown.until(VIEWS[path], 90)
    shown.run((INSTALLED / "axe-core" / "axe.min.js").read_text() + "; 0")
    found = shown.run(
        "axe.run(document, {resultTypes: ['violations']}).then(({ violations }) => "
        "violations.map(({ id, nodes }) => [id, nodes.map((n) => n.html)]))"
    )
    assert found == [], json.dumps(found, indent=1)


def test_types_are_right():
    command = [str(INSTALLED / ".bin" / "tsc"), "--project", "tsconfig.json"]
    done = subprocess.run(command, cwd=VENDOR, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
