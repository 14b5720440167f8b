"""What of the CUDA path can be checked without a GPU: plans, layouts, compilation."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import bsr_array

import afterslip_solver.backend.cuda
from afterslip_solver.backend.cuda import packing, variants
from afterslip_solver.backend.cuda import plan as planning
from afterslip_solver.backend.cuda.slices import in_slices, longest_first

WARPS = 4
FLOAT, DOUBLE = np.float32, np.float64
SOURCES = [
    ("elastic.cu", variants.elastic(FLOAT, FLOAT, variants.PRODUCT)),
    ("elastic.cu", variants.elastic(FLOAT, FLOAT, variants.RESIDUAL, True)),
    ("elastic.cu", variants.elastic(FLOAT, FLOAT, variants.RELAX)),
    ("elastic.cu", variants.elastic(FLOAT, FLOAT, variants.RELAX_SUMMED)),
    ("elastic.cu", variants.elastic(DOUBLE, FLOAT, variants.PRODUCT)),
    ("elastic.cu", variants.elastic(FLOAT, shape=variants.SHAPES[8])),
    ("elastic.cu", variants.elastic(DOUBLE, shape=variants.SHAPES[16])),
    ("macro.cu", variants.macro(FLOAT, FLOAT, variants.PRODUCT)),
    ("macro.cu", variants.macro(FLOAT, FLOAT, variants.RELAX)),
    ("macro.cu", variants.macro(FLOAT, FLOAT, variants.RELAX_SUMMED)),
    ("macro.cu", variants.macro(FLOAT, FLOAT, variants.RESIDUAL, True)),
    ("macro.cu", variants.macro(FLOAT, FLOAT, variants.RELAX, True, True)),
    ("macro.cu", variants.macro(FLOAT, FLOAT, variants.RELAX_SUMMED, True, True)),
    ("elastic.cu", variants.elastic(FLOAT, finish=variants.RELAX, packed=True)),
    ("elastic_half.cu", variants.elastic_half(variants.RESIDUAL, packed=False)),
    ("elastic_half.cu", variants.elastic_half(variants.RELAX, packed=True)),
    ("elastic_half.cu", variants.elastic_half(variants.RELAX_SUMMED, packed=True)),
    ("macro.cu", variants.macro(DOUBLE, FLOAT, variants.PRODUCT)),
    ("macro.cu", variants.macro(DOUBLE, DOUBLE, variants.RESIDUAL)),
    ("conjugate.cu", ()),
    ("inner.cu", ()),
    ("sparse.cu", variants.sparse(FLOAT)),
    ("sparse.cu", variants.sparse(FLOAT, np.float16)),
    ("sparse.cu", variants.sparse(DOUBLE)),
    ("creep.cu", variants.creep(FLOAT)),
    ("creep.cu", variants.creep(DOUBLE)),
    ("basis.cu", variants.basis(FLOAT)),
    ("basis.cu", variants.basis(DOUBLE)),
    ("vectors.cu", variants.vectors(FLOAT, FLOAT)),
    ("vectors.cu", variants.vectors(FLOAT, DOUBLE)),
    ("vectors.cu", variants.vectors(DOUBLE, FLOAT)),
    ("vectors.cu", variants.vectors(DOUBLE, DOUBLE)),
]


@pytest.fixture(params=[16, 48])
def planned(small, request):
    mesh = small.box_mesh((4, 3, 3), (1.0, 1.0, 1.0))
    elements = mesh.elements.astype(np.int32)
    fixed = small.held_sides(mesh.nodes)
    plan = planning.make_plan(elements, mesh.nodes, fixed, request.param, WARPS)
    return mesh, fixed, plan


def _block_of_task(plan):
    return np.repeat(np.arange(len(plan.tasks) - 1), np.diff(plan.tasks))


def test_plan_lists_every_element_once_with_its_nodes(planned):
    mesh, fixed, plan = planned
    there = plan.members >= 0
    members = plan.members[there]
    assert sorted(members) == list(range(len(mesh.elements)))
    first = plan.slots[_block_of_task(plan)]
    slot = first[:, None, None] + plan.local[:, :, :10].astype(int)
    entries = plan.nodes[slot[there]]
    np.testing.assert_array_equal(entries & 0x0FFFFFFF, mesh.elements[members])
    held = (entries[..., None] >> np.arange(28, 31)) & 1
    np.testing.assert_array_equal(held.astype(bool), fixed[mesh.elements[members]])
    assert (plan.local[~there] == packing.ABSENT).all()


def test_plan_marks_the_nodes_that_blocks_share(planned):
    mesh, _, plan = planned
    block = np.repeat(_block_of_task(plan), 8)[plan.members.ravel() >= 0]
    owners = [set() for _ in mesh.nodes]
    for b, e in zip(block, plan.members[plan.members >= 0], strict=True):
        for node in mesh.elements[e]:
            owners[node].add(int(b))
    shared = {n for n, blocks in enumerate(owners) if len(blocks) > 1}
    assert set((plan.shared & 0x0FFFFFFF).tolist()) == shared
    real = plan.nodes[plan.nodes != planning.NO_NODE]
    marked = real[real >> 31 == 1] & 0x0FFFFFFF
    assert set(marked.tolist()) == shared
    assert sum(map(len, owners)) == len(real)
    # every sum of a shared node is found, in one order
    counts = np.diff(plan.starts)
    np.testing.assert_array_equal(
        plan.nodes[plan.places], np.repeat(plan.shared, counts)
    )
    assert len(set(plan.places.tolist())) == len(plan.places)
    own = plan.shared & 0x0FFFFFFF
    np.testing.assert_array_equal(counts, [len(owners[n]) for n in own])


def test_elements_of_a_task_share_no_node(planned):
    mesh, _, plan = planned
    assert (np.diff(plan.tasks) % WARPS == 0).all()
    assert all(shape.together == 1 for shape in variants.SHAPES.values())
    for task in plan.members:
        nodes = mesh.elements[task[task >= 0]].ravel()
        assert len(nodes) == len(set(nodes.tolist()))


def test_block_numbering_is_a_permutation_with_compact_blocks(small):
    mesh = small.box_mesh((4, 4, 4), (1.0, 1.0, 1.0))
    centres = mesh.nodes[mesh.cells].mean(axis=1)
    nodes, elements = planning.block_numbering(mesh.elements, centres, 48)
    assert sorted(nodes) == list(range(len(mesh.nodes)))
    assert sorted(elements) == list(range(len(mesh.elements)))
    spread = [np.ptp(centres[elements[k : k + 48]], axis=0).max() for k in (0, 48)]
    assert max(spread) < 0.8


@pytest.mark.parametrize("together", [1, 8])
def test_slices_hold_the_matrix(together):
    rng = np.random.default_rng(2)
    dense = rng.standard_normal((70, 70, 3, 3)) * (rng.random((70, 70, 1, 1)) < 0.1)
    flat = dense.transpose(0, 2, 1, 3).reshape(210, 210)
    matrix = bsr_array(flat, blocksize=(3, 3))
    csr = matrix.indptr, matrix.indices, matrix.data
    starts, columns, values = in_slices(*csr, together)
    whole = 32 * (9 - 9 % together)
    x = rng.standard_normal((70, 3))
    y = np.zeros((96, 3))
    for s in range(3):
        for j in range(starts[s], starts[s + 1]):
            first = values[j, :whole].reshape(-1, 32, together).swapaxes(1, 2)
            rows = first.reshape(-1, 32), values[j, whole:].reshape(-1, 32)
            block = np.concatenate(rows).reshape(3, 3, 32)
            y[32 * s : 32 * s + 32] += np.einsum("ijr,rj->ri", block, x[columns[j]])
    np.testing.assert_allclose(y[:70], (flat @ x.ravel()).reshape(70, 3), atol=1e-12)


def test_thread_blocks_with_long_rows_begin_first():
    steps = np.array([15, 15, 40, 15, 16, 15, 15, 59, 15])
    assert longest_first(steps, 1).tolist() == [7, 2, 0, 1, 3, 4, 5, 6, 8]
    assert longest_first(steps, 2).tolist() == [3, 1, 0, 2, 4]
    assert longest_first(np.zeros(0, dtype=int), 2).tolist() == []


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs CUDA's compiler nvcc")
@pytest.mark.parametrize(
    "architecture",
    [*(pytest.param(a, marks=pytest.mark.slow) for a in ("sm_75", "sm_80")), "sm_90"],
)
def test_sources_compile(architecture, tmp_path):
    folder = Path(afterslip_solver.backend.cuda.__file__).parent
    for source, definitions in SOURCES:
        options = [f"-D{item}" for item in definitions]
        command = [
            "nvcc",
            f"-arch={architecture}",
            "-std=c++17",
            "-Werror=all-warnings",
        ]
        target = ["-cubin", "-o", str(tmp_path / "out.cubin"), str(folder / source)]
        done = subprocess.run(
            [*command, *options, *target], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{source} {definitions}: {done.stderr}"
