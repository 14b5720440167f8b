"""CuPy with CUDA kernels, which NVRTC compiles at run time."""
