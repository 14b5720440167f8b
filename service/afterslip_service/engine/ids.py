"""Identifiers that sort by the time of their making."""

from __future__ import annotations

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
RANDOM_BITS = 40


def _base32(value: int, digits: int) -> str:
    out = []
    for _ in range(digits):
        value, digit = divmod(value, 32)
        out.append(_ALPHABET[digit])
    return "".join(reversed(out))


def sortable(milliseconds: int, randomness: int) -> str:
    """Return 17 characters: 9 of time, 8 of randomness (``RANDOM_BITS``)."""
    return _base32(milliseconds, 9) + _base32(randomness, 8)
