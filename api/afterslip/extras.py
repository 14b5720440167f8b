"""Parts of the package that are installed only where they are asked for."""

from __future__ import annotations

import importlib.util

from afterslip.errors import AfterslipError

# what a package needs, as `pip install 'afterslip[extra]'` names it
PACKAGES = {"afterslip_service": "service", "afterslip_workers": "workers"}


class MissingExtraError(AfterslipError, ImportError):
    """Something was asked for whose libraries are not installed here."""


def require(what: str, extra: str, *modules: str) -> None:
    """Refuse to go on where a library of an extra is missing.

    Parameters
    ----------
    what : was asked for, as the subject of the message ("figures").
    extra : of the package, which brings the modules.
    modules : names of top-level modules.

    Raises
    ------
    MissingExtraError
        Names the first missing module and the command that installs it.
    """
    for module in modules:
        if importlib.util.find_spec(module) is None:
            raise missing(what, extra, module)


def missing(what: str, extra: str, module: str) -> MissingExtraError:
    """Return the error that says how to install what is missing."""
    return MissingExtraError(
        f"{what} needs {module}, which is not installed here: "
        f"pip install 'afterslip[{extra}]'"
    )
