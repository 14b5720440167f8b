"""The rules of axe, where npm has installed it."""

from __future__ import annotations

from pathlib import Path

import pytest

INSTALLED = Path(__file__).parents[2] / "service" / "vendor" / "node_modules"
CORE = INSTALLED / "axe-core" / "axe.min.js"


def violations(shown):
    """Return each rule that a page breaks, with the elements that break it."""
    if not CORE.is_file():
        pytest.skip("make vendor installs axe-core")
    shown.run(CORE.read_text() + "; 0")
    return shown.run(
        "axe.run(document, {resultTypes: ['violations']}).then(({ violations }) => "
        "violations.map(({ id, nodes }) => [id, nodes.map((n) => n.html)]))"
    )
