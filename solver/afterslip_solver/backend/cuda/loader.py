"""Compilation of the CUDA sources at run time (NVRTC, through CuPy)."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Any

import cupy

_INCLUDE = re.compile(r'^#include "(.+)"$', re.MULTILINE)


def kernel(source: str, name: str, *definitions: str) -> Any:
    """Return one kernel of a source file of this folder, of the current device.

    Parameters
    ----------
    source : file name, such as "elastic.cu".
    name : of the kernel. definitions : such as "REAL=float".
    """
    return _kernel(source, name, definitions, cupy.cuda.Device().id)


@cache
def _kernel(source: str, name: str, definitions: tuple[str, ...], device: int) -> Any:
    return _module(source, definitions, device).get_function(name)


def source_text(source: str) -> str:
    """Return a source file of this folder with the ones that it includes."""
    text = files("afterslip_solver.backend.cuda").joinpath(source).read_text("utf-8")
    return _INCLUDE.sub(lambda found: source_text(found[1]), text)


@cache
def _module(source: str, definitions: tuple[str, ...], device: int) -> Any:
    del device  # a module belongs to one device's context; it is part of the key
    code = source_text(source)
    options = ("-std=c++17", *(f"-D{item}" for item in definitions))
    return cupy.RawModule(code=code, options=options)
