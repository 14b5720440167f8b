"""Where tasks run: the only package that names Dask, and its in-process twin."""
