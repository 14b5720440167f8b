"""The page's libraries: what is in them, and how much a first visit loads."""

import gzip
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
VENDOR = ROOT / "service" / "vendor"
MODULES = ROOT / "service" / "afterslip_service" / "dashboard" / "vendor"


def test_libraries_are_pinned_without_addresses_and_evaluate_no_text():
    packages = json.loads((VENDOR / "package-lock.json").read_text())["packages"]
    for package in packages.values():
        package.pop("funding", None)
    assert "://" not in json.dumps(packages)
    wanted = json.loads((VENDOR / "package.json").read_text())["devDependencies"]
    for name, version in wanted.items():
        assert packages[f"node_modules/{name}"]["version"] == version
    unlocked = [n for n, p in packages.items() if n and "integrity" not in p]
    assert unlocked == []
    for module in MODULES.glob("*.js"):
        for forbidden in ("WebAssembly", "new Function", "eval("):
            assert forbidden not in module.read_text(), module


def test_vendored_modules_are_what_the_lock_file_builds(tmp_path):
    if shutil.which("node") is None or not (VENDOR / "node_modules").is_dir():
        pytest.skip("its libraries are not installed here: make vendor")
    command = json.loads((VENDOR / "package.json").read_text())["scripts"]["build"]
    words = re.sub(r"--outdir=\S+", f"--outdir={tmp_path}", command).split()
    words[0] = str(VENDOR / "node_modules" / ".bin" / "esbuild")
    subprocess.run(words, cwd=VENDOR, check=True, capture_output=True)
    ours = {module.name: module.read_bytes() for module in MODULES.glob("*.js")}
    assert {m.name: m.read_bytes() for m in tmp_path.iterdir()} == ours
    coast = VENDOR / "node_modules" / "world-atlas" / "land-50m.json"
    assert (MODULES / coast.name).read_bytes() == coast.read_bytes()


def test_the_first_page_is_small():
    """What is loaded before any view that brings libraries, compressed."""
    own = [
        p for p in MODULES.parent.rglob("*.*") if p.suffix in {".js", ".css", ".html"}
    ]
    first = [p for p in own if p.parent != MODULES]
    assert sum(len(gzip.compress(p.read_bytes())) for p in first) < 100_000
    assert sum(len(gzip.compress(p.read_bytes())) for p in own) < 1_000_000
