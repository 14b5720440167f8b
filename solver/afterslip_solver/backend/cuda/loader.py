"""Compilation of the CUDA sources at run time (NVRTC, through CuPy)."""

from __future__ import annotations

import os
import re
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.resources import files
from threading import Lock
from typing import Any

import cupy
import numpy as np

_FOLDER = files("afterslip_solver.backend.cuda")
# `python .ci/compiled.py` writes it where there is a GPU
LIST = _FOLDER.joinpath("listed-modules.txt")
_INCLUDE = re.compile(r'^#include "(.+)"$', re.MULTILINE)
# no array, as an argument of a kernel
NOWHERE = np.uint64(0)
# modules that this process has asked for, in the words of the list
asked: set[str] = set()
_allowing = Lock()


def kernel(source: str, name: str, *definitions: str) -> Any:
    """Return one kernel of a source file of this folder, of the current device.

    Parameters
    ----------
    source : file name, such as "elastic.cu".
    name : of the kernel. definitions : such as "REAL=float".
    """
    return _kernel(source, name, definitions, cupy.cuda.Device().id)


def allow_shared(run: Any, size: int) -> None:
    """Let a kernel be launched with so many bytes of shared memory, or more.

    Other threads launch the same kernel with other sizes, so none is taken back.
    """
    with _allowing:
        if run.max_dynamic_shared_size_bytes < size:
            run.max_dynamic_shared_size_bytes = size


def compile_listed() -> None:
    """Compile the modules of a curve, several at once, unless they are on disk."""
    device = cupy.cuda.Device().id

    def compiled(line: str) -> None:
        source, *definitions = line.split()
        with cupy.cuda.Device(device):
            _module(source, tuple(definitions), device).compile()

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        list(pool.map(compiled, listed()))


def listed() -> list[str]:
    """Return the lines of the list, each a source file and definitions."""
    return LIST.read_text("utf-8").splitlines()


@cache
def _kernel(source: str, name: str, definitions: tuple[str, ...], device: int) -> Any:
    return _module(source, definitions, device).get_function(name)


def source_text(source: str) -> str:
    """Return a source file of this folder with the ones that it includes."""
    text = _FOLDER.joinpath(source).read_text("utf-8")
    return _INCLUDE.sub(lambda found: source_text(found[1]), text)


@cache
def _module(source: str, definitions: tuple[str, ...], device: int) -> Any:
    del device  # a module belongs to one device's context; it is part of the key
    asked.add(" ".join((source, *definitions)))
    code = source_text(source)
    options = ("-std=c++17", *(f"-D{item}" for item in definitions))
    return cupy.RawModule(code=code, options=options)
