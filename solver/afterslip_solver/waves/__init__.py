"""Elastic waves on voxels: explicit steps of a finite element with a diagonal mass.

Frame: x east, y north, z up, so that the uppermost plane of nodes is the ground. Node
(i, j, k) has number (k ny + j) nx + i. Fields are (3, n_node, lane) in C order, a lane
being one right-hand side.
"""
