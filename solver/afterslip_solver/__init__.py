"""Numerics on arrays: meshes, operators, solvers, Green's functions, inversion."""

from afterslip_solver.jit import cache_folders

# before anything is compiled
cache_folders.keep()
