"""Where tasks run: the only room that names Dask, and its in-process twin."""
