"""Finite elements: geometry and shape functions."""
