"""Which files are time series of stations; their reader needs xarray, this does not."""

from __future__ import annotations

import re

PBO = b"PBO Station Position Time Series"


def is_series(content: bytes) -> bool:
    """Say whether the bytes look like ``.tenv3`` or ``.pos``."""
    head = content[:4096].lstrip(b"\xef\xbb\xbf \t\r\n")
    return head.startswith(PBO) or re.match(rb"site\s+YYMMMDD\s", head) is not None
