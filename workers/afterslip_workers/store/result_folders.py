"""Folders in which attempts leave their results, by kind of manifest."""

GROUP_FOLDER = "group.zarr"
INVERSION_FOLDER = "result"
# a model is written into its campaign at once: nothing of it has to be moved
RESULT_FOLDERS = {"greens": GROUP_FOLDER, "inversion": INVERSION_FOLDER}
