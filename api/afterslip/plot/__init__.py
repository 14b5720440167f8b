"""Figures of results and of waves; each returns a figure and touches no window."""

# ruff: noqa: E402 the check comes before what it guards

from afterslip.extras import require

require("drawing figures", "plot", "matplotlib")

from afterslip.plot.choice import cv_curve
from afterslip.plot.comparison import comparison
from afterslip.plot.fit import data_fit
from afterslip.plot.history import moment_history
from afterslip.plot.line_of_sight import scene_fit
from afterslip.plot.misfit import misfit
from afterslip.plot.plan import plan_map
from afterslip.plot.record_section import record_section
from afterslip.plot.resolution import resolution
from afterslip.plot.restoration import restoration
from afterslip.plot.rupture import moment_rate, motion_fit
from afterslip.plot.series import time_series
from afterslip.plot.slip import slip_map
from afterslip.plot.style import save

__all__ = [
    "comparison",
    "cv_curve",
    "data_fit",
    "misfit",
    "moment_history",
    "moment_rate",
    "motion_fit",
    "plan_map",
    "record_section",
    "resolution",
    "restoration",
    "save",
    "scene_fit",
    "slip_map",
    "time_series",
]
