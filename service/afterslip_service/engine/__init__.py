"""Decisions about campaigns and jobs: pure, without I/O, clock or SQL."""
