"""Whether a file that is loaded as code or numbers can stem from another account."""

from __future__ import annotations

import os
import stat
from pathlib import Path

_BY_GROUP_OR_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def ours(found: os.stat_result) -> bool:
    """Tell whether only we and root may change a file.

    Parameters
    ----------
    found : of the file, best of its open handle, or of a folder. A folder may be
        writable by its group: what lies in it is asked for each file's own owner.
    """
    owners = {os.getuid(), 0}
    refused = _BY_GROUP_OR_OTHERS
    if stat.S_ISDIR(found.st_mode):
        refused = stat.S_IWOTH
    return found.st_uid in owners and not found.st_mode & refused


def folder_is_ours(folder: Path) -> bool:
    """Tell the same of a folder; True where it is not there and can be made by us."""
    try:
        return ours(folder.stat())
    except FileNotFoundError:
        return True
    except OSError:
        return False
