"""Elastic waves: spec to voxels, unit sources, keys, solving."""
