"""Texts in cells of CSV files, which spreadsheets must not take for formulas."""

from __future__ import annotations

# what begins a formula, also in full-width forms; a number sign begins a comment of
# ours, and an apostrophe is what is put before all of these
_BEGINNINGS = frozenset("=+-@＝＋－＠#'\t\r\n")
_APOSTROPHE = "'"
LONGEST_NAME = 100
NAME_ADVICE = f"use up to {LONGEST_NAME} characters that can be printed"


def guarded(text: str) -> str:
    """Return a text as it is written: after an apostrophe where it begins so.

    A spreadsheet shows ``'=HYPERLINK(...)`` as text, and `restored` takes the
    apostrophe away again.
    """
    return _APOSTROPHE + text if _tempts(text) else text


def restored(text: str) -> str:
    """Return what `guarded` was given."""
    if text.startswith(_APOSTROPHE) and _tempts(text[1:]):
        return text[1:]
    return text


def _tempts(text: str) -> bool:
    # the empty text is in no set
    return text[:1] in _BEGINNINGS or text.lstrip()[:1] in _BEGINNINGS


__all__ = ["LONGEST_NAME", "NAME_ADVICE", "guarded", "restored"]
