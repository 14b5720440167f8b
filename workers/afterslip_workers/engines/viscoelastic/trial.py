"""A coarser mesh of a model, made in a process that ends in time.

A geometry that looks harmless can keep Gmsh busy for hours or fill the memory, and a
call into it cannot be interrupted. Only another process can be ended.
"""

from __future__ import annotations

import pickle
import resource
import subprocess
import sys
import tempfile
from dataclasses import replace
from threading import Lock
from typing import Any

from afterslip.schemas.earth import Model
from afterslip.spec.files import LocalFiles
from afterslip.spec.inputs import Inputs
from afterslip_solver.materials.properties import MaterialError
from afterslip_solver.mesh import MeshError
from afterslip_workers.engines.viscoelastic.building import build_model
from afterslip_workers.machine import limit

# s of processor time; a mesh of 40,000 elements takes some seconds
CPU_S = 60.0
# of a busy machine, times the processor's
WALL = 4.0
# bytes of address space, a few times what such a mesh takes
MEMORY = 8 << 30

# one at a time: they would take the machine from the workers
_turn = Lock()


def make(model: Model, inputs: Inputs) -> dict[str, Any]:
    """Mesh a model in a process of its own.

    Parameters
    ----------
    model : with the sizes of elements to ask for; a mesh of a file is not read.
    inputs : the campaign's files.

    Returns
    -------
    What `build_model` says of the model, or {"failed": why there is none}.
    """
    alone = replace(inputs, datasets={}, stations=None, points=None)
    memory = min(MEMORY, limit.of_child() or MEMORY)
    # -P: a module of the working folder is not taken for one of ours
    command = [
        sys.executable,
        "-P",
        "-m",
        __name__,
        f"{max(CPU_S, 1):.0f}",
        str(memory),
    ]
    with _turn, tempfile.TemporaryFile() as errors:
        try:
            done = subprocess.run(
                command,
                input=pickle.dumps((model, alone)),
                stdout=subprocess.PIPE,
                stderr=errors,
                timeout=WALL * CPU_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return {"failed": f"it was not made within {WALL * CPU_S:g} s"}
        if done.returncode == 0:
            found: dict[str, Any] = pickle.loads(done.stdout)  # noqa: S301 our own
            return found
        if done.returncode == -_out_of_time():
            return {"failed": f"it took more than {CPU_S:g} s of processor time"}
        errors.seek(0)
        words = errors.read()[-4000:].decode(errors="replace").strip().splitlines()
    end = words[-1] if words else f"the mesher ended with {done.returncode}"
    return {"failed": f"{end}, with {memory / 1e9:.0f} GB of memory allowed"}


def _out_of_time() -> int:
    import signal

    return int(signal.SIGXCPU)


def main() -> None:
    """Read a model from standard input; write what is said of its mesh, pickled."""
    seconds, memory = (int(word) for word in sys.argv[1:])
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    model, inputs = pickle.loads(sys.stdin.buffer.read())  # noqa: S301 our own
    # Gmsh prints to standard output
    answer = sys.stdout.buffer
    try:
        _, found = build_model(model, inputs, LocalFiles("."), lambda _: None)
    except (MeshError, MaterialError) as error:
        found = {"failed": str(error)}
    answer.write(pickle.dumps(found))


if __name__ == "__main__":
    main()
