"""Numerics on arrays: meshes, operators, solvers, Green's functions, inversion."""

from afterslip_solver import compiled

# before anything is compiled
compiled.keep()
