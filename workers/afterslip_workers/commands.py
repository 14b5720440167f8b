"""Verbs of the command line that compute here: ``forward`` and ``verify``."""

from __future__ import annotations

import json
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

from afterslip.cli.options import PAGE, Backend
from afterslip.errors import one_problem
from afterslip.physics.registry import DEFAULT

if TYPE_CHECKING:
    from rich.table import Table

    from afterslip_solver.verification import Check


# exit code where all was written, but not as accurate as it was asked for
NOT_MET = 4


class Size(StrEnum):
    """How large the cases of the suite are."""

    small = "small"
    full = "full"


def forward(
    spec: Annotated[Path, typer.Argument(help="Forward spec, YAML or JSON.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="NetCDF file to write.")
    ] = Path("forward.nc"),
    backend: Annotated[
        Backend | None, typer.Option(help="Instead of the spec's own.")
    ] = None,
    observations: Annotated[
        Path | None,
        typer.Option(help="CSV to write too: synthetic data with --noise."),
    ] = None,
    noise: Annotated[
        str, typer.Option(metavar="H,V", help="Errors of these data, m.")
    ] = "0.003,0.01",
    seed: Annotated[int, typer.Option(min=0, help="Of the errors.")] = 0,
) -> None:
    """Displacement of a given slip at points and times, without a service.

    Exit code 4: it is written, but misses mesh.accuracy or solver.time_tolerance.
    """
    from afterslip_workers.engines.forward import engine_of, require_writable
    from afterslip_workers.engines.registry import failures_of
    from afterslip_workers.engines.viscoelastic import synthetic

    engine = engine_of(spec)
    require_writable("--out", out)
    errors = _noise(noise)
    if observations is not None:
        _require_data(engine.physics.name, out, observations, errors)
    console = Console(stderr=True)
    started = time.monotonic()
    bars = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[detail]}"),
        console=console,
        transient=True,
    )
    with bars:
        bar = bars.add_task("starting", total=None, detail="")

        def report(news: dict[str, Any]) -> None:
            _advance(bars, bar, news)

        own = backend.value if backend else None
        with failures_of(engine):
            result = engine.forward(spec, out, report, own)
    for line in engine.summary(result, time.monotonic() - started):
        typer.echo(line)
    typer.echo(f"wrote {out}")
    if observations is not None:
        lines = synthetic.write_observations(result, observations, errors, seed)
        typer.echo(f"wrote {observations}: {lines} lines, errors of seed {seed}")
    if any(note.startswith("warning") for note in json.loads(result.attrs["notes"])):
        raise typer.Exit(NOT_MET)


def _require_data(
    physics: str, out: Path, observations: Path, errors: tuple[float, float]
) -> None:
    """Refuse synthetic data that cannot be made, before the solve."""
    from afterslip_workers.engines.forward import require_writable
    from afterslip_workers.engines.viscoelastic import synthetic

    if physics != DEFAULT:
        text = f"are not made of {physics}"
        raise one_problem("--observations", str(observations), text, "leave it out")
    synthetic.require_noise(errors)
    require_writable("--observations", observations)
    if observations.absolute() == out.absolute():
        text, hint = "is the file of --out too", "give them different names"
        raise one_problem("--observations", str(observations), text, hint)


def _noise(text: str) -> tuple[float, float]:
    try:
        horizontal, vertical = (float(part) for part in text.split(","))
    except ValueError:
        raise one_problem("--noise", text, "must be two numbers, H,V in m") from None
    return horizontal, vertical


def _advance(bars: Progress, bar: Any, news: dict[str, Any]) -> None:
    expected = news.get("solves_expected")
    if expected is None:
        size = news.get("n_unknowns")
        detail = f"{size:,} unknowns" if size else ""
        bars.update(bar, description=news["phase"], detail=detail)
        return
    done, detail = news.get("solves_done"), ""
    if done is None:
        done = min(news["solve"], expected)
        detail = (
            f"solve {news['solve'] + 1}, iteration {news['iteration']}, "
            f"residual {news['residual']:.1e}"
        )
    text = news["phase"]
    bars.update(bar, description=text, total=expected, completed=done, detail=detail)


def verify(
    name: Annotated[
        str | None, typer.Argument(help="One item of the suite; all without it.")
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write the checks to a file too.")
    ] = None,
    size: Annotated[
        Size, typer.Option(help="small: a minute; full: many, finer meshes.")
    ] = Size.small,
    backend: Annotated[
        str, typer.Option(help="Where curves are solved: cpu or gpu.")
    ] = "cpu",
) -> None:
    """Compare the solver with exact solutions; exit 1 if one is missed."""
    from afterslip_solver import verification
    from afterslip_solver.backend import available

    known = verification.names()
    if name is not None and name not in known:
        raise typer.BadParameter(f"{name!r} is none of {', '.join(known)}")
    reason = available().get(backend, "there is no such backend")
    if reason:
        raise typer.BadParameter(f"{backend}: {reason}")
    console = Console()
    if not console.is_terminal:
        console.width = PAGE
    checks: list[Check] = []
    started = time.monotonic()
    items = [name] if name else known
    with console.status(f"{name or 'all items'} …"):
        for found in verification.run_all(items, size.value, backend):
            checks += found
    console.print(_table(checks))
    ran = [check for check in checks if check.level != "not run"]
    missed = [check for check in ran if not check.passed]
    seconds = time.monotonic() - started
    console.print(
        f"{len(ran) - len(missed)} of {len(ran)} checks passed in {seconds:.0f} s"
    )
    for check in checks:
        if check.level == "not run":
            console.print(f"{check.name}, {check.quantity}: {check.note}")
    if json_file is not None:
        _write(json_file, checks, size, backend, seconds)
    if missed:
        raise typer.Exit(1)


def _table(checks: list[Check]) -> Table:
    from rich.table import Table

    table = Table(title="Verification", show_lines=False)
    for heading in ("check", "quantity", "value", "limit", "reference", "level"):
        right = heading in ("value", "limit")
        table.add_column(heading, justify="right" if right else "left")
    for check in checks:
        ran = check.level != "not run"
        colour = "green" if ran else "yellow"
        table.add_row(
            check.name,
            check.quantity,
            f"{check.value:.3g}" if ran else "–",
            f"{check.tolerance:.3g}" if ran else "–",
            check.reference,
            f"[{colour}]{check.level}[/]" if check.passed else "[bold red]MISSED[/]",
        )
    return table


def _write(
    path: Path, checks: list[Check], size: Size, backend: str, seconds: float
) -> None:
    from afterslip.version import __version__

    content = {
        "version": __version__,
        "size": size.value,
        "backend": backend,
        "seconds": round(seconds, 3),
        "passed": all(check.passed for check in checks),
        "checks": [check.record() for check in checks],
    }
    path.write_text(json.dumps(content, indent=1) + "\n")
