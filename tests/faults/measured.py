"""What the faults cost, kept as JSON, and as the table of ``docs/reliability.md``.

python tests/faults/measured.py        # write the table anew from the JSON
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from afterslip_workers.bench import device_name

ROOT = Path(__file__).resolve().parents[2]
RECORD = ROOT / "benchmarks/faults-2core.json"
PAGE = ROOT / "docs/reliability.md"
BEGIN, END = "<!-- measured -->", "<!-- end of measured -->"
HEADINGS = {
    "fault": "fault",
    "seconds": "s",
    "groups again": "groups again",
    "solves again": "solves again",
    "lost": "lost",
    "twice": "twice",
    "result": "result",
}


def keep(path, rows):
    """Put rows into a record; those of the same fault are replaced."""
    known = json.loads(path.read_text())["rows"] if path.is_file() else []
    load = round(os.getloadavg()[1], 1)
    fresh = {row["fault"]: {**row, "load": load} for row in rows}
    kept = [fresh.pop(row["fault"], row) for row in known]
    content = {"device": device_name(), "rows": [*kept, *fresh.values()]}
    path.write_text(json.dumps(content, indent=1) + "\n")


def table(rows):
    """Return rows as a table in Markdown."""
    lines = ["| " + " | ".join(HEADINGS.values()) + " |", "|" + "---|" * len(HEADINGS)]
    lines += [
        "| " + " | ".join(str(row.get(key, "–")) for key in HEADINGS) + " |"
        for row in rows
    ]
    return "\n".join(lines)


def page(text, record=RECORD):
    """Return the page with the table that the record asks for."""
    content = json.loads(record.read_text())
    loads = [row["load"] for row in content["rows"] if "load" in row] or [0]
    told = f"{content['device']}, load average {min(loads):g} to {max(loads):g}."
    head, _, rest = text.partition(BEGIN)
    tail = rest.partition(END)[2]
    return f"{head}{BEGIN}\n{told}\n\n{table(content['rows'])}\n{END}{tail}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
