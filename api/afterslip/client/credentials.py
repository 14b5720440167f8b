"""Where a token comes from, other than the command line that everybody sees."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from afterslip.client.errors import CredentialError

TOKEN_FILE = "AFTERSLIP_TOKEN_FILE"  # noqa: S105 the name of a variable


def resolve(token: str | None) -> str | None:
    """Return a token given as it is, or as ``@file`` that holds it.

    Parameters
    ----------
    token : None: the file that ``AFTERSLIP_TOKEN_FILE`` names, if it does.

    Raises
    ------
    CredentialError
        when the file cannot be read, is open to others, or holds no token.
    """
    if token is None and os.environ.get(TOKEN_FILE):
        token = f"@{os.environ[TOKEN_FILE]}"
    if token is None or not token.startswith("@"):
        return token
    path = Path(token[1:]).expanduser()
    try:
        mode = path.stat().st_mode
        text = path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "is no text"
        raise CredentialError(f"{path}: the token cannot be read: {reason}") from None
    if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise CredentialError(
            f"{path}: others may read this token: chmod 600 {path}, and revoke it if "
            "they are not you"
        )
    if not text or not text.isascii() or not text.isprintable() or " " in text:
        raise CredentialError(f"{path}: holds no token: it must be one word")
    return text
