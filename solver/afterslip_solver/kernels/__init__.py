"""Compiled kernels for the CPU; every one works on four lanes at once."""
