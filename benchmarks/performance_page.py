"""The tables of docs/performance.md from the records in this folder.

python benchmarks/performance_page.py      # write the tables anew

A table begins behind its marker and ends at the next empty line. A record that a table
needs and that is missing is an error, and so is a table without a marker.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RECORDS = ROOT / "benchmarks"
PAGE = ROOT / "docs/performance.md"
NAMES = (
    "kernels-h200",
    "solve-h200",
    "unknowns-h200",
    "unknowns-100m-h200",
    "peers-h200",
    "curve-h200",
    "campaign-h200",
    "scaling-x2-h200",
    "scaling-x4-h200",
    "groups-x2-h200",
    "groups-x4-h200",
    "setup-2core",
    "iteration-2core",
    "service-2core",
    "page-2core",
)
DASH = "–"

# what a metric of a record measures, and what was asked for: accepted / goal
KERNELS = {
    "p2_apply_fp32_ms": ("K u, FP32; a copy of its bytes", "1.30 / 0.80"),
    "p2_apply_fp64_ms": ("K u, FP64; the same", "3.3 / 2.3"),
    "p1_spmm_fp16_ms": ("linear elements, FP16 matrix; the same", "– / 0.19"),
    "group_solve_s": ("elastic solve; by block Jacobi", "0.26 / 0.20"),
    "group_iterations": ("its iterations; of block Jacobi", ""),
    "group_setup_taken_s": ("set-up, taken from disk; made", ""),
    "group_memory_gb": ("operators and hierarchy", "60 / –"),
}
CAMPAIGN = {
    "campaign_372_s": ("request to closed store; published, A100", "145 / 110"),
    "campaign_model_s": ("before it the model, not counted", "15 / 8"),
    "campaign_compile_s": ("compiling before that, once on a new machine", ""),
    "campaign_before_groups_s": ("until the first group begins", "6 / 3"),
    "campaign_first_group_s": ("the first group, which sets the model up", ""),
    "campaign_pace_s": ("from one group's begin to the next one's", ""),
    "campaign_stored_bytes": ("stored, with the model", ""),
}
CURVES = {"group_curve_30d_s", "step_per_function_s"}
# requests as quick as those that are shown, and what is shown of the page
LEFT_OUT = ("show", "groups")
BROWSER = {
    "page_first_load_s",
    "page_groups_frame_ms",
    "page_greens_s",
    "page_greens_mb",
    "page_scrub_frame_ms",
}
SIZES = (69_804, 526_965, 4_089_543, 32_210_955, 99_785_715)
SETUPS = {
    ("whole", 4.14): "all on the CPU, with a softened stiffness",
    ("of_a_gpu", 32.56): "what the host makes for a GPU",
}


def record(name: str) -> dict:
    """Return one record, its rows as ``records``."""
    return json.loads((RECORDS / f"{name}.json").read_text())


def by_metric(name: str) -> dict[str, dict]:
    """Return the rows of a record by their metric, of several the last."""
    return {row["metric"]: row for row in record(name)["records"]}


def by_unknowns(name: str) -> dict[int, dict[str, dict]]:
    """Return the rows of a record by unknowns of their model and metric."""
    found: dict[int, dict[str, dict]] = {}
    for row in record(name)["records"]:
        unknowns = int(re.match(r"(\d+) unknowns", row["note"])[1])
        found.setdefault(unknowns, {})[row["metric"]] = row
    return found


def number(value: float | None, unit: str = "") -> str:
    """Return a number of three figures with its unit, or a dash for none."""
    if value is None:
        return DASH
    if unit == "B":
        value, unit = value / 1e9, "GB"
    figures = f"{value:.3g}" if value < 1000 else f"{value:,.0f}"
    return f"{figures} {unit}".removesuffix(" 1").strip()


def millions(unknowns: int) -> str:
    """Return a count of unknowns in millions."""
    return f"{unknowns / 1e6:.3g} M"


def lines(head: Iterable[object], rows: Iterable[Iterable[object]]) -> list[str]:
    """Return a table in Markdown."""
    cells = [list(head), *map(list, rows)]
    shown = [f"| {' | '.join(map(str, row))} |" for row in cells]
    return [shown[0], "|" + " --- |" * len(cells[0]), *shown[1:]]


def listed(metrics: dict[str, tuple[str, str]], *names: str) -> list[str]:
    """Return a table of chosen metrics, each beside its baseline and what was asked."""
    found: dict[str, dict] = {}
    for name in names:
        found |= by_metric(name)
    rows = []
    for metric, (words, asked) in metrics.items():
        row = found[metric]
        value, beside = (number(row[key], row["unit"]) for key in ("value", "baseline"))
        rows.append((words, value, beside if ";" in words else "", asked))
    return lines(("measured; beside it", "", "beside it", "accepted / goal"), rows)


def growth() -> list[str]:
    """Return the table of models from 0.07 to 100 million unknowns."""
    rows = []
    models = by_unknowns("unknowns-h200") | by_unknowns("unknowns-100m-h200")
    for unknowns in SIZES:
        found = models[unknowns]
        value = {metric: row["value"] for metric, row in found.items()}
        rows.append(
            (
                millions(unknowns),
                number(value["growth_iterations"]),
                number(value["growth_solve_s"], "s"),
                number(value["growth_ns_per_unknown"]),
                number(value["growth_peak_gb"], "GB"),
                number(found["growth_peak_gb"]["baseline"], "GB"),
                number(value["growth_setup_s"], "s"),
            )
        )
    head = ("unknowns", "iterations", "elastic solve", "ns an unknown", "memory")
    return lines((*head, "predicted", "set-up"), rows)


def peers() -> list[str]:
    """Return the table of a factorisation and of PyAMG beside this solver."""
    rows = []
    for unknowns, found in by_unknowns("peers-h200").items():
        cells = []
        for kind in ("group", "cudss"):
            names = ("setup_s", "solve_s", "memory_gb")
            parts = (found[f"{kind}_{name}"] for name in names)
            cells.append(", ".join(number(p["value"], p["unit"]) for p in parts))
        pyamg = found["pyamg_solve_s"]
        lanes, setup = re.search(r"(\d) lanes?.*set-up (.*?),", pyamg["note"]).groups()
        solve = number(pyamg["value"], "s")
        cells.append(f"{setup}, {solve} for {lanes} of four lanes")
        rows.append((millions(unknowns), *cells))
    head = ("unknowns", "afterslip: set-up, solve, memory", "cuDSS", "PyAMG, one core")
    return lines(head, rows)


def curves() -> list[str]:
    """Return the table of ways to a curve of 30 days."""
    rows = []
    for curve, memory, error in by_order(record("curve-h200")["records"]):
        note = curve["note"]
        if curve["metric"] == "group_curve_30d_s":
            words, seconds = "spectral", curve["value"]
            done = sum(json.loads(re.search(r"\[.*?\]", note)[0]))
        else:
            words = "30 steps, " + re.search(r"predictor (\w+)", note)[1]
            seconds = float(re.search(r"curve ([\d.]+) s", note)[1])
            done = int(re.search(r"all 30: (\d+)", note)[1])
            error = float(re.search(r"error ([\d.e+-]+)", note)[1])
        cells = (number(seconds, "s"), f"{error:.1e}", number(memory, "GB"))
        rows.append((words, done, *cells))
    head = ("way to the curve", "iterations", "time", "error", "memory")
    return lines(head, rows)


def by_order(rows: list[dict]) -> Iterable[tuple[dict, float, float | None]]:
    """Yield each curve of a record with the memory and the error measured with it.

    The largest memory taken is written before the spectral curve and behind each of
    the stepped ones.
    """
    errors = [row["value"] for row in rows if row["metric"] == "group_curve_error"]
    memory = [row["value"] for row in rows if row["metric"] == "curve_memory_gb"]
    found = [row for row in rows if row["metric"] in CURVES]
    for curve, taken in zip(found, memory, strict=True):
        yield curve, taken, errors[0] if curve is found[0] else None


def gpus() -> list[str]:
    """Return the table of one group over several GPUs, beside one GPU in the run."""
    rows = []
    for n in (2, 4):
        found = by_metric(f"scaling-x{n}-h200")
        unknowns = int(found[f"group_solve_{n}_gpus_s"]["note"].split()[0])
        cells = []
        for kind in ("solve", "curve", "wall", "nested"):
            if f"efficiency_{kind}_{n}_gpus" not in found:
                cells.append(DASH)
                continue
            seconds = [found[f"group_{kind}_{k}_gpus_s"]["value"] for k in (1, n)]
            share = found[f"efficiency_{kind}_{n}_gpus"]["value"]
            one, more = (number(value, "s") for value in seconds)
            cells.append(f"{one} to {more}, {100 * share:.1f} %")
        rows.append((millions(unknowns), n, *cells))
    head = ("unknowns", "GPUs", "elastic solve, efficiency", "solves of a curve")
    return lines((*head, "whole group", "with the mesh's error"), rows)


def groups() -> list[str]:
    """Return the table of groups shared out to workers of one GPU each."""
    found = by_metric("groups-x2-h200") | by_metric("groups-x4-h200")
    rows = []
    for n in (1, 2, 4):
        cells = (found[f"fleet_{n}_{kind}_s"]["value"] for kind in ("span", "group"))
        share = found.get(f"fleet_{n}_efficiency")
        efficiency = f"{100 * share['value']:.0f} %" if share else DASH
        rows.append((n, *(number(cell, "s") for cell in cells), efficiency))
    return lines(("workers", "16 groups", "one group", "efficiency"), rows)


def host() -> list[str]:
    """Return the table of set-ups on two cores, and the CPU's iteration."""
    rows = []
    for (kind, size), words in SETUPS.items():
        note = f"{kind}, {size} M unknowns, "
        value = {
            row["metric"].removeprefix(f"{kind}_wall_"): row["value"]
            for row in record("setup-2core")["records"]
            if row["note"].startswith(note)
        }
        made, taken = (number(value[key], "s") for key in ("made", "taken"))
        rows.append((f"set-up of {size} M unknowns, {words}; made", taken, made))
    found = by_metric("iteration-2core")
    row, other = found["cpu_iteration_ms"], found["cpu_iteration_matrix_ms"]
    value, beside, copy = (
        number(v, "ms") for v in (row["value"], other["value"], row["baseline"])
    )
    unknowns = millions(int(row["note"].split()[0]))
    words = f"an iteration, {unknowns} unknowns; with a matrix, whose bytes take"
    rows.append((f"{words} {copy} to copy", value, beside))
    return lines(("measured; beside it", "", "beside it"), rows)


def service() -> list[str]:
    """Return the table of the service with 10,000 campaigns."""
    found = by_metric("service-2core")
    rows = []
    for metric, row in found.items():
        busy = found.get(metric.replace("_ms", "_busy_ms"), row)
        hidden = metric.removesuffix("_ms") in LEFT_OUT
        if (
            hidden
            or row["baseline"] is None
            or metric.endswith(("_busy_ms", "_first_ms"))
        ):
            continue
        words = row["note"].split("baseline")[0]
        if busy is not row:
            words = f"{metric.removesuffix('_ms')}, {words}"
        values = (row["value"], busy["value"] if busy is not row else None)
        cells = (number(value, row["unit"]) for value in (*values, row["baseline"]))
        rows.append((words.rstrip(",; "), *cells))
    return lines(("", "idle", "while a dispatcher works", "bare database"), rows)


def browser() -> list[str]:
    """Return the table of the page in a browser, beside its limits."""
    rows = []
    for metric, row in by_metric("page-2core").items():
        if metric not in BROWSER:
            continue
        words = row["note"].removesuffix("; limit").removesuffix("; 60 a second")
        beside = number(row["baseline"], row["unit"])
        rows.append((words, number(row["value"], row["unit"]), beside))
    return lines(("", "measured", "limit"), rows)


def sources() -> list[str]:
    """Return which records the tables are of: device and commit of each."""
    by_device: dict[str, list[str]] = {}
    for name in NAMES:
        content = record(name)
        commit = content["commit"].split(",")[0]
        by_device.setdefault(content["device"], []).append(f"`{name}` {commit}")
    return ["; ".join(f"{name}: {', '.join(of)}" for name, of in by_device.items())]


TABLES = {
    "kernels": lambda: listed(KERNELS, "kernels-h200", "solve-h200"),
    "growth": growth,
    "peers": peers,
    "curves": curves,
    "campaign": lambda: listed(CAMPAIGN, "campaign-h200"),
    "gpus": gpus,
    "groups": groups,
    "host": host,
    "service": service,
    "browser": browser,
    "sources": sources,
}


def page(text: str) -> str:
    """Return the page with the tables that the records ask for."""
    for name, table in TABLES.items():
        marker = f"<!-- {name} -->\n"
        if text.count(marker) != 1:
            raise SystemExit(
                f"docs/performance.md: {marker.strip()} must be there once"
            )
        head, _, rest = text.partition(marker)
        tail = rest[re.search(r"^$", rest, re.MULTILINE).start() :]
        text = head + marker + "\n".join(table()) + "\n" + tail
    return text


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
