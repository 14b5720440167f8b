"""Compiled tables of a mesh: edges, neighbours, midpoints, orders, gradients."""
