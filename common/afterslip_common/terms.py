"""Names and constants that every package must use alike."""

from __future__ import annotations

from typing import Literal

DAY = 86400.0
# a Julian year of 365.25 days
YEAR = 31557600.0
KM = 1000.0

# axes of motion, in the order of every array
COMPONENTS = ("east", "north", "up")
SlipComponent = Literal["strike", "dip"]
SLIP_COMPONENTS: tuple[SlipComponent, ...] = ("strike", "dip")

# unit sources that are solved together: as many as fill a vector register of the CPU
GROUP_SIZE = 4
