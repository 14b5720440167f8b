"""A TypeScript client, whose types a generator makes of OpenAPI, works a real service.

``tests/service/typescript`` has the program and, by npm, generator and compiler.
"""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
import tiny_worker

HERE = Path(__file__).parent / "typescript"
MODULES = HERE / "node_modules"

pytestmark = [
    # one is enough: nothing here depends on it
    pytest.mark.databases("sqlite"),
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("node") is None, reason="no node here"),
    pytest.mark.skipif(
        not MODULES.is_dir(), reason="cd tests/service/typescript && npm ci"
    ),
]


@pytest.fixture
def compiled(client, tmp_path):
    """Generate the types, check the program against them, return what node runs."""
    for name in ("client.ts", "tsconfig.json", "package.json"):
        shutil.copy(HERE / name, tmp_path)
    (tmp_path / "node_modules").symlink_to(MODULES)
    (tmp_path / "openapi.json").write_text(client.get("/openapi.json").text)
    # a field with a default may be left out of a request
    call(
        tmp_path, ".bin/openapi-typescript", "openapi.json", "--output=api.ts",
        "--default-non-nullable=false",
    )  # fmt: skip
    call(tmp_path, ".bin/tsc")
    return tmp_path / "build" / "client.js"


def call(folder, program, *words):
    """Run one of npm's programs and return what it prints."""
    done = subprocess.run(
        ["node", MODULES / program, *words],
        cwd=folder, capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.timeout(300)
def test_a_typescript_client_goes_from_a_spec_to_a_result(client, compiled):
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    (data,) = schemas["DatasetRequest"]["examples"]
    given = json.dumps({"spec": tiny_worker.spec(), "data": data})
    said = json.loads(call(compiled.parent, compiled, str(client.base_url), given))
    assert said["bytes"] == len(b"CDF tiny")
    assert said["slip"] == "source,slip\n0,1.0\n"
    (finding,) = said["findings"]
    assert finding["path"] == "sources.fault"
    assert finding["value"] == "mian"
    assert finding["hint"] == "did you mean main?"
