"""Compiled loops: how they are compiled, cached and shared among threads."""
