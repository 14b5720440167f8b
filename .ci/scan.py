"""Look for secrets in tracked files, and for known holes in the libraries.

    python .ci/scan.py             both; the second needs a source of advisories
    python .ci/scan.py --offline   secrets only

Exit status: 0 if all was looked at and is clean, 1 if something was found, 2 if no
library was audited, which the last line says.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements.lock"
AUDIT_S = 180
MOST = 2 * 1024 * 1024
FOUND, NOT_AUDITED = 1, 2

# what gives a secret away; each is specific enough to have no excuse
PATTERNS = {
    "private key": re.compile(rb"-----BEGIN (?:[A-Z ]+ )?PRIVATE KEY-----"),
    "token of this service": re.compile(
        rb"\bafs_(?=[A-Za-z0-9_-]*\d)[A-Za-z0-9_-]{43}"
    ),
    "AWS key": re.compile(rb"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    "GitHub token": re.compile(rb"\bgh[pousr]_[A-Za-z0-9]{36}\b"),
    "GitLab token": re.compile(rb"\bglpat-[A-Za-z0-9_-]{20}\b"),
    "Slack token": re.compile(rb"\bxox[abprs]-[A-Za-z0-9-]{10,}"),
    "JSON web token": re.compile(rb"\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}"),
    "password in an address": re.compile(
        rb"\b[a-z][a-z0-9+]*://[^\s:/@'\"{}$<>]+:(?!\*\*\*|(?i:change))[^\s:/@'\"{}$<>.]{8,}@"
    ),
    "assigned secret": re.compile(
        rb"(?i)\b(?:password|passwd|secret|api_?key|token)\s*[:=]\s*"
        rb"['\"](?=[^'\"]*\d)(?=[^'\"]*[a-z])[A-Za-z0-9+/_=-]{24,}['\"]"
    ),
}


def secrets_in(content: bytes) -> list[tuple[str, int]]:
    """Return (kind, line) of everything that looks like a secret."""
    return [
        (kind, content[: found.start()].count(b"\n") + 1)
        for kind, pattern in PATTERNS.items()
        for found in pattern.finditer(content)
    ]


def tracked() -> list[Path]:
    """Return the files that git knows."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True
    )
    return [ROOT / name for name in listed.stdout.decode().split("\0") if name]


def scan_secrets() -> bool:
    """Print every secret found, never its value; return whether there is none."""
    clean, count = True, 0
    for path in tracked():
        if not path.is_file() or path.stat().st_size > MOST:
            continue
        count += 1
        for kind, line in secrets_in(path.read_bytes()):
            clean = False
            print(f"{path.relative_to(ROOT)}:{line}: looks like a {kind}")
    print(f"secrets: {count} files looked at, {'none' if clean else 'some'} found")
    return clean


def audit() -> int:
    """Ask pip-audit about the locked libraries; return the exit status."""
    uv = Path(sys.executable).with_name("uv")
    command = [
        str(uv), "tool", "run", "pip-audit", "--requirement", str(LOCK),
        "--no-deps", "--disable-pip", "--progress-spinner", "off", "--format", "json",
    ]  # fmt: skip
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=AUDIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return _not_audited(type(error).__name__)
    try:
        found = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError, TypeError):
        errors = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        return _not_audited(errors[-1][:200])
    audited = [item for item in found if "skip_reason" not in item]
    holes = [(item, hole) for item in audited for hole in item["vulns"]]
    for item, hole in holes:
        print(f"{item['name']} {item['version']}: {hole['id']}, fixed in "
              f"{', '.join(hole['fix_versions']) or 'no version yet'}")  # fmt: skip
    if not audited:
        return _not_audited(f"no advisories of any of {len(found)} are here")
    print(f"libraries: {len(audited)} of {len(found)} audited, {len(holes)} holes")
    return FOUND if holes else 0


def _not_audited(reason: str) -> int:
    print(f"libraries: NOT AUDITED, nothing is known of their holes: {reason}")
    return NOT_AUDITED


if __name__ == "__main__":
    status = 0 if scan_secrets() else FOUND
    if "--offline" not in sys.argv[1:]:
        audited = audit()
        status = status or audited
    sys.exit(status)
