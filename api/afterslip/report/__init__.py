"""The report of an inversion: one page that needs no other file."""

# ruff: noqa: E402 the check comes before what it guards

from afterslip.extras import require

require("writing a report", "plot", "jinja2", "matplotlib")

from afterslip.report.page import write_report

__all__ = ["write_report"]
