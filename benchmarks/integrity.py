"""What checksums cost: a store written and read with and without them, in turn.

    python benchmarks/integrity.py --json benchmarks/integrity-2core.json

One store has crc32c in its chunks and SHA-256 of its files, the other neither, as
release 0.1.0 wrote it. Both hold the same numbers, in shards of a real campaign's
size, and are written and read in turn in one process; the fastest time counts.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from afterslip import integrity
from afterslip.archive import (
    SourceTable,
    StoreLayout,
    SurfaceTable,
    chunk_file,
    create_group_store,
    create_store,
    open_greens,
)
from afterslip.physics.viscoelastic.store import (
    Sizes,
    attributes,
    fixed_arrays,
    layout_of,
)
from afterslip.units import YEAR
from afterslip_common.terms import GROUP_SIZE
from afterslip_workers.store import durable

MODES = 8


def create(path: Path, nodes: int, groups: int, sealed: bool) -> StoreLayout:
    """Create a store without groups; unsealed: of version 1."""
    n = GROUP_SIZE * groups
    sources = SourceTable(
        ["main"],
        *(np.zeros(n, dtype=np.int64), np.arange(n) % 2),
        np.zeros((n, 2), dtype=np.int64),
        np.zeros((n, 3)),
        *(np.ones(n), np.ones(n)),
    )
    surface = SurfaceTable(np.zeros((nodes, 3)), np.zeros((2, 6), dtype=np.int64))
    layout = layout_of(Sizes(source=n, mode=MODES, node=nodes, face=2, time=2))
    create_store(
        path,
        layout,
        fixed_arrays(sources, surface, None, [0.0, YEAR], MODES),
        attributes=attributes("spectral", YEAR),
        crc32c=sealed,
    )
    if not sealed:
        root = json.loads((path / integrity.ROOT).read_text())
        for name in ("checksum", "store_id"):
            del root["attributes"][name]
        root["attributes"]["format_version"] = 1
        (path / integrity.ROOT).write_text(json.dumps(root))
        shutil.rmtree(path / integrity.FOLDER)
    return layout


def values(nodes: int) -> dict[str, Any]:
    """Return the arrays of a group; noise, which does not compress."""
    rng = np.random.default_rng(0)
    response = rng.normal(size=(GROUP_SIZE, MODES, nodes, 3)).astype(np.float32)
    one = np.ones(GROUP_SIZE)
    return {
        "response": response,
        "recurrence": np.ones((GROUP_SIZE, MODES, 2)),
        **dict.fromkeys(("start_norm", "shift", "residual", "time_error"), one),
        "mode_count": np.full(GROUP_SIZE, MODES),
        "iterations": one,
    }


def write(
    path: Path, layout: StoreLayout, content: dict[str, Any], sealed: bool
) -> None:
    """Write all groups durably, as an attempt and its acceptance do."""
    for group in range(layout.of("source") // GROUP_SIZE):
        part = path.with_name("part.zarr")
        create_group_store(part, layout, content, crc32c=sealed)
        durable.sync_tree(part)
        # 0.1.0 took these as well, for the group's manifest
        sums = durable.checksums(part)
        files = {}
        for variable in layout.grouped:
            key, own = chunk_file(variable, group), chunk_file(variable, 0)
            target = path / key
            target.parent.mkdir(parents=True, exist_ok=True)
            (part / own).rename(target)
            files[key] = sums[own]
        if sealed:
            root = integrity.read_root((path / integrity.ROOT).read_bytes())
            text = integrity.write_checksums(root.store, files, group)
            durable.write_bytes(path / integrity.group_key(group), text)
        shutil.rmtree(part)


def read(path: Path, again: bool) -> None:
    """Read all responses; ``again``: files were compared before in this process."""
    if not again:
        integrity.file_digests.clear()
    data = open_greens(path)
    for source in range(0, data.sizes["source"], GROUP_SIZE):
        assert np.isfinite(data["response"][source : source + GROUP_SIZE].values).all()


def seconds(action: Callable[[], None]) -> float:
    """Return how long an action takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def measure(nodes: int, groups: int, rounds: int) -> dict[str, dict[bool, float]]:
    """Return the fastest seconds of each step, by whether there are checksums."""
    content = values(nodes)
    found: dict[str, dict[bool, list[float]]] = {
        name: {True: [], False: []} for name in ("write", "read", "read_again")
    }
    for _ in range(rounds):
        for sealed in (True, False):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "greens.zarr"
                sizes = create(path, nodes, groups, sealed)
                took = seconds(lambda: write(path, sizes, content, sealed))  # noqa: B023
                found["write"][sealed].append(took)
                # until files count as settled, see integrity.FileDigests
                time.sleep(2.1)
                for name, again in (("read", False), ("read_again", True)):
                    took = seconds(lambda: read(path, again))  # noqa: B023
                    found[name][sealed].append(took)
    return {
        name: {sealed: min(all_) for sealed, all_ in each.items()}
        for name, each in found.items()
    }


def main() -> None:
    """Measure, print, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=150_000)
    parser.add_argument("--groups", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", default="2 cores")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    found = measure(asked.nodes, asked.groups, asked.rounds)
    megabytes = asked.groups * GROUP_SIZE * MODES * asked.nodes * 3 * 4 / 1e6
    note = (
        f"{asked.groups} shards, {megabytes:.0f} MB in all, fastest of {asked.rounds}; "
        "baseline: the same numbers as 0.1.0 wrote and read them, without crc32c and "
        "without comparing anything when they are read"
    )
    records = [
        {
            "metric": f"integrity_{name}_s",
            "value": each[True],
            "unit": "s",
            "baseline": each[False],
            "ratio": each[True] / each[False],
            "note": note,
        }
        for name, each in found.items()
    ]
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    record = {"device": asked.device, "commit": commit, "records": records}
    text = json.dumps(record, indent=1)
    print(text)
    if asked.json is not None:
        asked.json.write_text(text + "\n")


if __name__ == "__main__":
    main()
