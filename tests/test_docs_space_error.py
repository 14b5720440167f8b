"""What the page says of the published errors is what was measured, and good enough."""

import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import convergence
import end_of_slip
import space_error

ROOT = Path(__file__).parents[1]
RECORDS = [
    json.loads((ROOT / "benchmarks" / name).read_text())
    for name in ("space-error-2core.json", "space-error-slab-2core.json")
]
ITEMS = [item for record in RECORDS for item in record["records"]]


def shown(begin, end):
    page = (ROOT / "docs/verification.md").read_text()
    return page.split(begin)[1].split(end)[0].strip()


def test_the_page_shows_the_record():
    found = shown(space_error.BEGIN, space_error.END)
    assert found == "\n".join(space_error.table(RECORDS))


def test_errors_fall_by_three_where_sizes_of_good_meshes_are_halved():
    content = json.loads((ROOT / "benchmarks/convergence-2core.json").read_text())
    found = shown(convergence.BEGIN, convergence.END)
    assert found == "\n".join(convergence.table(content))
    # of each problem, from its second mesh to the third
    assert [item["ratio"] >= 3.0 for item in content["records"][1::2]] == [True] * 4


def test_estimates_are_within_the_factors_that_were_promised():
    ratios = np.array([item["ratio"] for item in ITEMS])
    problems = {item["metric"].rsplit("_", 1)[0] for item in ITEMS}
    assert len(problems) >= 12
    assert np.mean((ratios > 0.5) & (ratios < 3.0)) >= 0.9
    assert ratios.min() > 0.3
    for item in ITEMS:
        cost = float(item["note"].split("cost ")[1])
        assert cost < (0.25 if "refined" in item["note"] else 0.5)


def test_estimates_hold_for_problems_that_were_not_used_for_the_choice():
    others = [item for item in ITEMS if "; other; " in item["note"]]
    assert len(others) >= 8
    assert min(item["ratio"] for item in others) >= 0.5


def test_slip_ends_on_a_curved_fault_about_within_its_elements_own_error():
    content = json.loads((ROOT / "benchmarks/end-of-slip-2core.json").read_text())
    found = shown(end_of_slip.BEGIN, end_of_slip.END)
    assert found == "\n".join(end_of_slip.table(content))
    for item in content["records"]:
        elements, slip, ramp = (
            float(part.rsplit(" ", 1)[1].rstrip("%"))
            for part in item["note"].split("; ")[5:8]
        )
        if item["note"].split("; ")[2] == "0.4":  # as accuracies mesh it
            assert slip <= elements
        # 1.04 and 0.98 % on one of the others
        assert slip <= 1.1 * elements
        assert slip < 0.5 * ramp


def test_shorter_edges_at_ends_bring_errors_down_there():
    content = json.loads((ROOT / "benchmarks/end-of-slip-2core.json").read_text())
    near = {"1": [], "0.4": []}
    for item in content["records"]:
        _, _, ends, _, where, *_ = item["note"].split("; ")
        if where == "near":
            near[ends].append(item["value"])
    assert np.mean(near["0.4"]) < 0.75 * np.mean(near["1"])
