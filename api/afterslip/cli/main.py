"""The command ``afterslip``: verbs that are imported only when they are used."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from afterslip.cli.verbs import Verb, verbs
from afterslip.cli.wording import PlainCommand, name_parameters, plain_words
from afterslip.extras import PACKAGES, missing
from afterslip.version import __version__

DEBUG = "AFTERSLIP_DEBUG"
BAD_INPUT, FAILURE, INTERRUPTED = 2, 1, 130


class LazyGroup(TyperGroup):
    """A group whose verbs stand in the help by name and summary only."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.verbs = verbs()
        for verb in self.verbs.values():
            stand_in = TyperCommand(
                verb.name, help=verb.summary, rich_help_panel=verb.panel
            )
            self.add_command(stand_in)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Import the verb that was asked for, in place of its stand-in."""
        name, command, rest = super().resolve_command(ctx, args)
        if name in self.verbs:
            command = load(self.verbs[name])
            name_parameters(command)
        return name, command, rest

    def invoke(self, ctx: Any) -> Any:
        """Run the verb; what is wrong with its options is said in plain words."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = plain_words(error.message)
            raise


def load(verb: Verb) -> Any:
    """Import a verb's function and make a command of it.

    Raises
    ------
    VerbError
        when the part of the package that brings it cannot be imported.
    """
    module, _, name = verb.target.partition(":")
    try:
        function = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        extra = PACKAGES.get(module.partition(".")[0])
        if isinstance(error, ModuleNotFoundError) and extra is not None:
            what = f"`afterslip {verb.name}`"
            raise missing(what, extra, str(error.name)) from error
        raise VerbError(f"{verb.name} is not available here: {error}") from error
    if isinstance(function, typer.Typer):
        return get_command(function)
    app = typer.Typer(add_completion=False, context_settings=_HELP)
    app.command(verb.name, cls=PlainCommand)(function)
    return get_command(app)


class VerbError(Exception):
    """A verb cannot be imported."""


_HELP = {"help_option_names": ["-h", "--help"]}

app = typer.Typer(
    name="afterslip",
    cls=LazyGroup,
    no_args_is_help=True,
    context_settings=_HELP,
    help="Green's functions of viscoelastic earthquake deformation, and slip from "
    "them.\n\nWhere a server is needed: --server, or AFTERSLIP_SERVER in the "
    "environment.",
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"afterslip {__version__}")
        raise typer.Exit


@app.callback()
def _face(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Show the version."
        ),
    ] = False,
) -> None:
    pass


def main(args: list[str] | None = None) -> NoReturn:
    """Run the command and exit.

    0 done, 1 failed, 2 bad input, 3 cancelled (of what was watched), 130 interrupted.
    """
    group = get_command(app)
    try:
        group.main(args=args, prog_name="afterslip")
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except Exception as error:
        if os.environ.get(DEBUG, "") not in ("", "0"):
            raise
        sys.stderr.write(f"afterslip: {describe(error)}\n")
        sys.exit(exit_code(error))
    sys.exit(0)


def describe(error: BaseException) -> str:
    """Return what to tell the user about an error."""
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename is not None else ""
        return f"{where}{error.strerror.lower()}"
    if isinstance(error, ModuleNotFoundError) and not _ours(error):
        return str(missing("this command", "all", str(error.name)))
    text = str(error)
    if _ours(error) or (isinstance(error, TimeoutError) and text):
        return text
    kind = type(error).__name__
    return (
        f"unexpected error, {kind}: {text or 'no message'} "
        f"({DEBUG}=1 shows where it comes from)"
    )


def exit_code(error: BaseException) -> int:
    """Return 2 for what the user can correct in the input, else 1."""
    from afterslip.errors import SpecError

    code = getattr(error, "exit_code", None)
    if isinstance(code, int):
        return code
    bad = (SpecError, FileNotFoundError, IsADirectoryError, NotADirectoryError)
    return BAD_INPUT if isinstance(error, bad) else FAILURE


def _ours(error: BaseException) -> bool:
    return any(c.__module__.split(".")[0].startswith("afterslip")
               for c in type(error).__mro__)  # fmt: skip


if __name__ == "__main__":
    main()
