"""What the faults cost, stored as JSON, and as the tables of ``docs/reliability.md``.

python tests/faults/measured.py        # write the tables anew from the JSON
"""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path

from afterslip_common.record import device_name

ROOT = Path(__file__).resolve().parents[2]
RECORD = ROOT / "benchmarks/faults-2core.json"
PAGE = ROOT / "docs/reliability.md"
KILLS = ROOT / "benchmarks/kills-2core.json"
BEGIN, END = "<!-- measured -->", "<!-- end of measured -->"
BEGIN_KILLS, END_KILLS = "<!-- kills -->", "<!-- end of kills -->"
HEADINGS = {
    "fault": "fault",
    "seconds": "s",
    "groups again": "groups again",
    "solves again": "solves again",
    "lost": "lost",
    "twice": "twice",
    "result": "result",
    "runs": "runs",
}
COSTS = ("seconds", "groups again", "solves again", "lost", "twice", "load")


def commit():
    """Return the commit that is measured, or nothing outside a checkout."""
    asked = ["git", "rev-parse", "--short", "HEAD"]
    text = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True)
    return text.stdout.strip()


def keep(path, rows, failed, at):
    """Put rows into a record of one commit, those of failed tests out of it.

    Of several runs the worst of each figure stays, and their number.

    Parameters
    ----------
    failed : rows of tests that failed: what they had measured before is void.
    at : the commit; a record of another one is begun anew.
    """
    content = json.loads(path.read_text()) if path.is_file() else {}
    ours = content.get("commit") == at
    known = {row["fault"]: row for row in content["rows"]} if ours else {}
    for row in failed:
        known.pop(row["fault"], None)
    for row in rows:
        fresh = {**row, "runs": 1}
        if before := known.get(row["fault"]):
            fresh["runs"] += before["runs"]
            fresh |= {key: max(row[key], before[key]) for key in COSTS}
            if "note" in row:
                fresh["note"] = f"{before['note']}; {row['note']}"
        known[row["fault"]] = fresh
    content = {"device": device_name(), "commit": at, "rows": list(known.values())}
    path.write_text(json.dumps(content, indent=1) + "\n")


def table(rows):
    """Return rows as a table in Markdown."""
    lines = ["| " + " | ".join(HEADINGS.values()) + " |", "|" + "---|" * len(HEADINGS)]
    for row in rows:
        note = f" ({row['note']})" if "note" in row else ""
        shown = {**row, "fault": row["fault"] + note}
        lines.append(
            "| " + " | ".join(str(shown.get(key, "–")) for key in HEADINGS) + " |"
        )
    return "\n".join(lines)


def page(text, record=RECORD):
    """Return the page with the table that the record asks for."""
    content = json.loads(record.read_text())
    rows = content["rows"]
    loads = [row["load"] for row in rows]
    summary = (
        f"{content['device']}, load average {min(loads):g} to {max(loads):g}; "
        f"commit {content['commit']}."
    )
    head, _, rest = text.partition(BEGIN)
    tail = rest.partition(END)[2]
    return f"{head}{BEGIN}\n{summary}\n\n{table(rows)}\n{END}{tail}"


def keep_kills(path, rows, at):
    """Put rows of random kills into a record, each in place of its deployment's.

    Parameters
    ----------
    at : the commit.
    """
    content = json.loads(path.read_text()) if path.is_file() else {"rows": []}
    fresh = [{"commit": at, **row} for row in rows]
    by_deployment = {row["deployment"]: row for row in [*content["rows"], *fresh]}
    content = {"device": device_name(), "rows": list(by_deployment.values())}
    path.write_text(json.dumps(content, indent=1) + "\n")


def kills_page(text, record=KILLS):
    """Return the page with the tables of random kills that the record asks for."""
    content = json.loads(record.read_text())
    rows = content["rows"]
    kills = {row["deployment"]: _sum(row["kills"].values()) for row in rows}
    head = ["deployment", "kills", "pauses", "campaigns", "jobs", "jobs again", "lost"]
    head += ["duplicates", "s", "seed", "commit"]
    lines = [
        f"{content['device']}; "
        f"{sum(sum(found.values()) for found in kills.values())} kills.",
        "",
        *_head(head),
    ]
    for row in rows:
        cells = [row["deployment"], sum(kills[row["deployment"]].values())]
        cells.append(sum(_sum(row["pauses"].values()).values()))
        cells += [row[name] for name in head[3:-3]]
        cells += [round(row["seconds"]), row["seed"], row["commit"]]
        lines.append(_line(cells))
    by_victim = _by_victim(rows)
    moments = sorted({moment for found in by_victim.values() for moment in found})
    lines += ["", *_head(["killed", *moments, "in all"])]
    for victim, found in by_victim.items():
        cells = [found.get(moment, 0) for moment in moments]
        lines.append(_line([victim, *cells, sum(found.values())]))
    before, _, rest = text.partition(BEGIN_KILLS)
    after = rest.partition(END_KILLS)[2]
    return "\n".join([before + BEGIN_KILLS, *lines, END_KILLS]) + after


def _sum(counts):
    """Return the sum of tables of counts, by key."""
    total = Counter()
    for found in counts:
        total.update(found)
    return total


def _by_victim(rows):
    victims = sorted({victim for row in rows for victim in row["kills"]})
    return {v: _sum(row["kills"].get(v, {}) for row in rows) for v in victims}


def _line(cells):
    return "| " + " | ".join(map(str, cells)) + " |"


def _head(names):
    return [_line(names), "|" + "---|" * len(names)]


if __name__ == "__main__":
    PAGE.write_text(kills_page(page(PAGE.read_text())))
