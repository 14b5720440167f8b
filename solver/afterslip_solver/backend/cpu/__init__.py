"""NumPy with kernels that Numba compiles, four lanes a pass."""
