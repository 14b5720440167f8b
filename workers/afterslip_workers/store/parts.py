"""Folders in which attempts leave their results, by kind of work."""

GROUP = "group.zarr"
RESULT = "result"
# a model is written into its campaign at once: nothing of it has to be moved
PARTS = {"greens": GROUP, "inversion": RESULT}
