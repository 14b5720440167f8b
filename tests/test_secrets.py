"""No secret is in a tracked file, and the scan that says so sees secrets."""

import importlib.util
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parent.parent / ".ci" / "scan.py"


def test_no_tracked_file_holds_a_secret() -> None:
    done = subprocess.run(
        [sys.executable, SCRIPT, "--offline"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_scan_sees_secrets_and_passes_over_placeholders() -> None:
    spec = importlib.util.spec_from_file_location("scan", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    scan = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(scan)
    # put together here, so that this file is none of them
    secrets = [
        "-----BEGIN " + "PRIVATE KEY-----",
        "afs_" + "a1" * 21 + "b",
        "AKIA" + "Q" * 16,
        "ghp_" + "a" * 36,
        "postgresql://u:" + "hunter2hunter2" + "@host/db",
        "api_key = '" + "a1b2" * 8 + "'",
    ]
    for secret in secrets:
        assert scan.secrets_in(f"x\n{secret}\n".encode()) != [], secret
    fine = [
        "postgresql://u:***@host/db",
        "postgresql://u:${PASSWORD}@host/db",
        "afs_...",
        "token = os.environ['AFTERSLIP_TOKEN']",
        "secret = 'hunter2'",
    ]
    for text in fine:
        assert scan.secrets_in(text.encode()) == [], text
