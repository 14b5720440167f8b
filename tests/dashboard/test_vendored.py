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
PAGE = ROOT / "service" / "afterslip_service" / "dashboard"
MODULES = PAGE / "vendor"


@pytest.mark.parametrize("folder", [VENDOR, ROOT / "tests/service/typescript"])
def test_libraries_are_pinned_without_addresses(folder):
    packages = json.loads((folder / "package-lock.json").read_text())["packages"]
    for package in packages.values():
        package.pop("funding", None)
    assert "://" not in json.dumps(packages)
    wanted = json.loads((folder / "package.json").read_text())["devDependencies"]
    for name, version in wanted.items():
        assert packages[f"node_modules/{name}"]["version"] == version
    unlocked = [n for n, p in packages.items() if n and "integrity" not in p]
    assert unlocked == []


def test_libraries_evaluate_no_text():
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


def loaded_by(module):
    """Return what the browser loads for a module, itself and all that it names."""
    found, left = set(), [module]
    while left:
        path = left.pop()
        if path not in found:
            found.add(path)
            names = re.findall(
                r'^import\b[^;]*?"/dashboard/(.+?)";', path.read_text(), re.M
            )
            left += [PAGE / name for name in names]
    return found


def compressed(paths):
    return sum(len(gzip.compress(path.read_bytes())) for path in paths)


def test_the_first_page_is_small():
    """Every other view is loaded with its libraries when somebody asks for it."""
    first = loaded_by(PAGE / "app.js")
    assert 5 < len(first) < 20
    beside = [PAGE / name for name in ("index.html", "style.css", "icon.svg")]
    assert compressed([*first, *beside]) < 30_000
    own = [p for p in PAGE.rglob("*.*") if p.suffix in {".js", ".css", ".html"}]
    assert compressed(own) < 1_000_000
