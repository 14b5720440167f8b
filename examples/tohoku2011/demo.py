"""Run the 2011 Tohoku-oki example through the embedded service.

    python examples/tohoku2011/demo.py --out DIR [--kill-child]

DIR keeps the database, the Green's functions and the results. A run that was
interrupted goes on where it stopped.
"""

import argparse
import sys
import threading
import time
from datetime import datetime
from pathlib import Path

import numpy as np
import psutil

from afterslip import AfterslipError, Campaign, Client
from afterslip.result import facts, fit_by_type
from afterslip.units import largest_slip, limits
from afterslip_service.errors import ServiceError

SPEC = Path(__file__).parent / "campaign.yaml"
GOING = ("waiting", "building", "running", "paused")
CHILD = "afterslip_workers.child"


def kill_one_child(client: Client, identity: str) -> None:
    """Kill the process that computes, once, while groups are being solved."""
    campaign = client.campaign(identity)
    while campaign.refresh().state in GOING:
        for process in psutil.Process().children(recursive=True):
            if not campaign.progress.get("accepted"):
                break
            try:
                if CHILD in " ".join(process.cmdline()):
                    process.kill()
                    print(f"killed the solving process {process.pid}", file=sys.stderr)
                    return
            except psutil.Error:
                continue
        time.sleep(0.2)


def start(client: Client, spec: Campaign):
    """Take up an interrupted run of the example, or submit it."""
    for campaign in client.campaigns():
        if campaign.name == spec.name and campaign.state in GOING:
            print(f"going on with {campaign.id}", file=sys.stderr)
            return campaign
    return client.submit(spec)


def moments(campaign) -> dict[str, datetime]:
    """When the campaign entered each of its states."""
    found = {}
    for event in campaign.events():
        if event.kind == "campaign.state":
            found.setdefault(event.data["state"], datetime.fromisoformat(event.time))
    return found


def table(rows: list[tuple[str, str]]) -> str:
    """Two columns, names to the left."""
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"  {name:<{width}}  {value}" for name, value in rows)


def place(result) -> str:
    """Where slip is largest."""
    slip = (result["fault_slip"] ** 2).sum("slip_component")
    peak = result.isel(fault_node=int(np.argmax(slip.values)))
    depth = max(0.0, -float(peak["fault_z"])) / 1e3
    return (
        f"{float(peak['fault_lon']):.2f} E {float(peak['fault_lat']):.2f} N, "
        f"{depth:.0f} km deep"
    )


def mesh_error(result) -> str:
    """Estimated error, of the worst of a few sources, as shares of their motion."""
    found = (facts(result, "solver") or {}).get("space_error") or {}
    parts = {"elastic": "of the displacement", "change": "of ten years' change"}
    shares = [f"{found[p]:.1%} {of}" for p, of in parts.items() if p in found]
    return ", ".join(shares) or "not estimated"


def report(campaign, inversion, folder: Path, phases: list[tuple[str, float]]) -> None:
    """Print what came out, how long it took and where it lies."""
    result, model = inversion.result, campaign.data.get("model") or {}
    said = result.attrs
    rows = [
        ("Green's functions", f"{campaign.data['n_sources']}, ten years each"),
        ("unknowns", f"{model.get('n_unknowns', 0):,}"),
        ("error of the mesh", mesh_error(result)),
        (
            "largest slip",
            largest_slip(said, ".1f", f" at {place(result)}"),
        ),
        (
            "moment",
            f"{inversion.moment:.2e} N m, Mw {inversion.magnitude:.2f}"
            f"{limits(inversion.magnitude_interval, '.2f')}",
        ),
        ("variance reduction", f"{100 * inversion.variance_reduction:.2f} %"),
        ("score of the folds", f"{inversion.score:.2f} ± {said['score_se']:.2f}"),
    ]
    print(table(rows))
    print("\nfit: rms residual, and the same over sigma")
    fit = fit_by_type(result)
    print(table([(r.name, f"{r.rms:6.3f} m {r.chi:6.2f}") for r in fit]))
    print("\ntime")
    print(table([(name, f"{seconds:6.1f} s") for name, seconds in phases]))
    print("\nwritten")
    for path in sorted(p for p in folder.iterdir() if p.suffix in (".png", ".html")):
        print(f"  {path}")


def run(out: Path, kill_child: bool) -> None:
    """Start the service, wait for the campaign and show its result."""
    begun = time.monotonic()
    with Client.embedded(out) as client:
        ready = time.monotonic()
        campaign = start(client, Campaign.from_yaml(SPEC))
        if kill_child:
            threading.Thread(
                target=kill_one_child, args=(client, campaign.id), daemon=True
            ).start()
        campaign.wait(progress=True, inversions=False)
        solved = time.monotonic()
        inversion = campaign.inversions()[-1].wait()
        inverted = time.monotonic()
        folder = inversion.save(out / "results")
        at = moments(campaign)
        model = (at["running"] - at["building"]).total_seconds()
        phases = [
            ("set-up of the service", ready - begun),
            ("mesh, materials", model),
            ("solves", (at["complete"] - at["running"]).total_seconds()),
            ("inversion", inverted - solved),
            ("plots, report", time.monotonic() - inverted),
            ("all", time.monotonic() - begun),
        ]
        report(campaign, inversion, folder, phases)


def main() -> None:
    """Run; a failure is one line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("demo-out"))
    parser.add_argument(
        "--kill-child", action="store_true", help="kill a solving process once"
    )
    arguments = parser.parse_args()
    try:
        run(arguments.out, arguments.kill_child)
    except KeyboardInterrupt:
        sys.exit("demo: interrupted; the same command goes on from here")
    except (AfterslipError, ServiceError, TimeoutError, OSError) as error:
        sys.exit(f"demo: {error}")


if __name__ == "__main__":
    main()
