"""Every view by the rules of axe, and the page's types; both where npm has been."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from axe import INSTALLED, violations
from test_page import count, has, submit

VENDOR = Path(__file__).parents[2] / "service" / "vendor"

pytestmark = pytest.mark.skipif(
    not INSTALLED.is_dir(), reason="make vendor installs axe-core and TypeScript"
)

# what sticks out of the card that it stands in, beside what can be scrolled
WIDER = """[...document.querySelectorAll('.card')].flatMap((card) => {
  const { right } = card.getBoundingClientRect();
  return [...card.querySelectorAll('*')].filter((one) => !one.closest('.scroll, svg')
    && one.checkVisibility() && one.getBoundingClientRect().right > right + 1)
    .map((one) => one.outerHTML.slice(0, 80));
})"""
VIEWS = {
    "#/": f"{count('.row')} > 0",
    "#/new": has("can be submitted"),
    "#/campaigns/CAMPAIGN": f"{count('.grid button')} > 1",
    "#/campaigns/CAMPAIGN/invert": f"{count('form')} === 2",
    "#/webhooks": has("No webhooks yet"),
    "#/workers": "document.querySelector('main').children.length > 1",
    "docs": f"{count('details')} > 10",
}


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("dark", "width"), [(False, 2560), (True, 375)])
@pytest.mark.parametrize("path", VIEWS)
def test_axe_finds_nothing_and_nothing_is_wider(
    page, service, worker, path, dark, width
):
    worker.fail["group", 1] = ["bad_input"]
    campaign = submit(service)
    shown = page(path.replace("CAMPAIGN", campaign), dark=dark, width=width)
    shown.until(VIEWS[path], 90)
    assert shown.run("document.documentElement.scrollWidth") == width
    wider = shown.run(WIDER)
    assert wider == []
    found = violations(shown)
    assert found == [], json.dumps(found, indent=1)


def test_types_are_right():
    command = [str(INSTALLED / ".bin" / "tsc"), "--project", "tsconfig.json"]
    done = subprocess.run(command, cwd=VENDOR, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
