"""Kernels as functions of a library that the system's compiler makes."""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import os
import re
import subprocess
from functools import cache, cached_property
from pathlib import Path
from threading import Lock

import numpy as np

from cupy import cuda

HEADER = Path(__file__).parents[1] / "device.h"
_KERNEL = re.compile(r'extern "C" __global__ void\s+(\w+)\(')
# what only a GPU's compiler understands
_REPLACED = {
    r"extern __shared__ __align__\(\d+\) char (\w+)\[\]": r"char* \1 = dynamic_shared",
    r'const u32 to = .*;\n.*"cp\.async\.ca.*': "*shared = *global;",
    r'asm volatile\("cp\.async\.\w+_group.*': "",
    r'asm volatile\("bar\.sync.*': "barriers[barrier].arrive(PASSING, true);",
    r'asm volatile\("bar\.arrive.*': "barriers[barrier].arrive(PASSING, false);",
    # the other rank may need this processor
    r"(while \(\(int\)\(now.*) \{\}": r"\1 sched_yield();",
    r'asm\("cvt\.f32\.f16 %0, %1;" : "=f"\(f\) : "h"\((.*)\)\);': r"f = from_half(\1);",
    r'asm\("\{\.reg .*cvt\.rn\.f16\.f32.*\n.*': "d.bits = two_halves(high, low);",
    r'asm\("\{\.reg .*\{(.), \1\}.*': "d.bits = twice(v.bits, '\\1');",
    r'asm\("add\.rn\.f16x2.*': "d.bits = add_halves(v.bits, w.bits);",
    r'asm\("sub\.rn\.f16x2.*': "d.bits = add_halves(v.bits, w.bits ^ 0x80008000u);",
    r'asm\("neg\.f16x2.*': "d.bits = v.bits ^ 0x80008000u;",
    r'asm\("mul\.rn\.f16x2.*': "d.bits = fma_halves(v.bits, w.bits, 0);",
    r'asm\("fma\.rn\.f16x2.*\n.*': "d.bits = fma_halves(v.bits, w.bits, x.bits);",
}
_FLAGS = ["-std=c++20", "-O2", "-ffp-contract=off"]
# structures are read as others of the same size
_FLAGS += ["-fno-strict-aliasing", "-w", "-fPIC", "-shared", "-xc++"]
# the C library has an `advance`, too
_LINKED = "-Wl,-Bsymbolic"
# the folder of libraries, and whether a sanitizer watches their threads
FOLDER, RACES = "DEVICE_ON_CPU", "DEVICE_ON_CPU_RACES"
_alone = Lock()


def as_library(code, options):
    """Return the C++ of a source: its kernels, and functions that launch them."""
    for pattern, other in _REPLACED.items():
        code = re.sub(pattern, other, code)
    # some names are made by macros
    command = ["-E", "-xc++", "-D__launch_bounds__(...)=", *options, "-"]
    plain = _compiler(command, code, stdout=subprocess.PIPE).stdout
    launches = "".join(
        f'extern "C" void launch_{name}(Place* blocks, int threads, void** arguments)'
        f" {{ launch(thread_of<{name}>, *blocks, threads, arguments); }}\n"
        for name in _KERNEL.findall(plain)
    )
    return f'#include "{HEADER}"\n{code}\n{launches}'


def _compiler(arguments, code, **how):
    # a sanitizer that is loaded into this process would watch the compiler, too
    plain = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    command = ["g++", *arguments]
    return subprocess.run(command, input=code, text=True, check=True, env=plain, **how)


@cache
def _fixed():
    """Return what all libraries are made of."""
    return f"{HEADER.read_text()} {Path(__file__).read_text()}"


class RawModule:
    """A source that is compiled when it is first used."""

    def __init__(self, code, options):
        self._options = [one for one in options if one.startswith("-D")]
        if os.environ.get(RACES):
            # the loader's own memory for threads would be reported, too
            self._options += ["-DTHREADED=1", "-ftls-model=initial-exec"]
            self._options += ["-fsanitize=thread", "-g"]
        self._code = code

    def compile(self):
        self.library  # noqa: B018

    @cached_property
    def library(self):
        cause = " ".join((_fixed(), self._code, *self._options))
        name = hashlib.sha256(cause.encode()).hexdigest()[:16]
        folder = Path(os.environ[FOLDER])
        path = folder / f"{name}.so"
        # processes that need the same at once wait for the one that makes it
        with (folder / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                self._make(path)
        return ctypes.CDLL(str(path))

    def _make(self, path):
        made = path.with_suffix(".new")
        command = [*_FLAGS, *self._options, "-", _LINKED, "-o", str(made)]
        _compiler(command, as_library(self._code, self._options))
        made.replace(path)

    def get_function(self, name):
        return _Kernel(getattr(self.library, f"launch_{name}"))


class _Kernel:
    max_dynamic_shared_size_bytes = 49152

    def __init__(self, function):
        self._function = function

    def __call__(self, grid, block, arguments, shared_mem=0):
        assert shared_mem <= self.max_dynamic_shared_size_bytes
        assert len(block) == 1
        blocks = (ctypes.c_uint * 3)(*grid, *(1 for _ in range(3 - len(grid))))
        boxes = [_boxed(one) for one in arguments]
        places = (ctypes.c_void_p * len(boxes))(*(box.ctypes.data for box in boxes))

        def run(alive=(arguments, boxes)):
            del alive  # as long as a graph that repeats the launch
            # shared memory is the library's, and blocks are run one by one
            with _alone:
                self._function(blocks, int(block[0]), places)

        if cuda.recording() is None:
            run()
        cuda.record(run)


def _boxed(value):
    from cupy import ndarray

    if isinstance(value, ndarray):
        assert value.flags.c_contiguous
        return np.array(value.ctypes.data, dtype=np.uint64)
    assert isinstance(value, np.generic), type(value)
    box = np.array(value)
    box.setflags(write=False)
    return box
