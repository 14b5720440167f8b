"""What is wrong with a mesh, said so that a user can repair it."""

from __future__ import annotations


class MeshError(ValueError):
    """A mesh or geometry that cannot be used; the message names the remedy."""
