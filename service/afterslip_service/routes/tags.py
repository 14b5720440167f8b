"""Tags of campaigns, as requests may say them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

# lower case: one database compares without it, the other one with it
Tag = Annotated[
    str,
    Field(
        pattern=r"^[a-z0-9][a-z0-9._:-]{0,39}$",
        description="lower-case letters, digits and . _ : -, 40 at most",
    ),
]
