"""Numerics on arrays: meshes, operators, solvers, Green's functions, inversion."""
