"""The report of an inversion: one page that needs no other file."""

from afterslip.report.page import write_report

__all__ = ["write_report"]
