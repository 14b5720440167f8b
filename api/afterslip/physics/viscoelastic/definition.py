"""When stored curves serve, and how much a campaign asks for.

Stores and meshes are imported late: who submits a spec needs neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from afterslip.identity import plain
from afterslip.physics.base import Quality, Work
from afterslip.physics.viscoelastic.spec import (
    ViscoelasticCampaign,
    ViscoelasticForward,
)
from afterslip.units import power_of_ten
from afterslip_common.terms import GROUP_SIZE

if TYPE_CHECKING:
    from collections.abc import Mapping

    import xarray as xr

    from afterslip.archive.layout import StoreLayout
    from afterslip.physics.viscoelastic.reader import CurveReader
    from afterslip.spec.inputs import Inputs


class Viscoelastic:
    """See `afterslip.physics.base.Physics`."""

    name = "viscoelastic"
    numerics = 1
    group_size = GROUP_SIZE
    inverts = True
    unit = "m per m of slip"
    spec = ViscoelasticCampaign
    forward = ViscoelasticForward
    parts: ClassVar[dict[str, tuple[str, ...]]] = {
        "model": ("model",),
        "slip": ("sources",),
        "solver": ("solver", "times"),
    }

    def gpus(self, canonical: Mapping[str, Any]) -> int:
        """Return the solver's GPUs."""
        return int((canonical.get("solver") or {}).get("gpus") or 1)

    def quality(self, spec: ViscoelasticCampaign) -> Quality:
        """Return what a campaign's numbers will be good for.

        Returns
        -------
        {"until", "tolerance", "time_tolerance"}: end of the curve, s; relative
        residual of the solves; relative error of the curve.
        """
        return {
            "until": max(map(float, [spec.times.until, *spec.times.output])),
            "tolerance": spec.solver.tolerance,
            "time_tolerance": spec.solver.time_tolerance,
        }

    def worse(self, stored: Quality, wanted: Quality) -> list[str]:
        """Return the keys of the spec in which stored numbers are not good enough."""
        checks = {
            "times.until": stored["until"] >= wanted["until"],
            "solver.tolerance": stored["tolerance"] <= wanted["tolerance"],
            "solver.time_tolerance": (
                stored["time_tolerance"] <= wanted["time_tolerance"]
            ),
        }
        return [key for key, good in checks.items() if not good]

    def serves(self, stored: Quality, wanted: Quality) -> bool:
        """Tell whether a curve is as long, and as exact, as the one that is wanted."""
        return not self.worse(stored, wanted)

    def numbers(self, spec: ViscoelasticCampaign) -> dict[str, Any]:
        """Return end of the curve and solver, without backend and number of GPUs.

        Output times are left out, because the curve must hold its tolerance on the
        whole of 0 … until and is evaluated afterwards; and the devices, whose
        results agree within the tolerance.
        """
        solver = plain(spec.solver)
        del solver["backend"], solver["gpus"]
        solver.pop("space_error", None)
        return {"until": plain(spec.times.until), "solver": solver}

    def work(
        self,
        spec: ViscoelasticCampaign,
        inputs: Inputs | None = None,
        mesh_bytes: int | None = None,
    ) -> Work:
        """Return the number of unit sources and of tetrahedra."""
        from afterslip.physics.viscoelastic.elements import elements
        from afterslip.physics.viscoelastic.sizing import sized

        sources = sum(grid.count for grid in spec.grids)
        if inputs is None:
            return Work(sources)
        model = sized(spec.model, inputs, spec.grids)
        return Work(sources, elements(model, inputs, mesh_bytes))

    def layout(self, facts: Mapping[str, Any]) -> StoreLayout:
        """Return the layout from {"sizes", "integrator"} of the facts."""
        from afterslip.physics.viscoelastic.store import Sizes, layout_of

        return layout_of(Sizes(**facts["sizes"]), facts["integrator"])

    def solved(
        self, stated: Mapping[str, Any], greens: xr.Dataset | None
    ) -> list[tuple[str, str]]:
        """Return the integrator, errors and number of solves, as far as known."""
        found = dict(stated)
        if greens is not None:
            for name in ("residual", "time_error"):
                if name not in found and name in greens:
                    found[name] = float(greens[name].max())
            found.setdefault("integrator", greens.attrs.get("integrator"))
        solves = found.get("solves")
        shares = (found.get("space_error") or {}).items()
        rows = {
            "Integrator": found.get("integrator"),
            "Largest relative residual of a solve": _small(found.get("residual")),
            "Estimated error of the curve in time": _small(found.get("time_error")),
            "Estimated error of the mesh": ", ".join(
                f"{part} {value:.1%}" for part, value in shares
            ),
            "Linear solves": f"{solves:,}" if solves else None,
        }
        return [(name, value) for name, value in rows.items() if value]

    def reader(self, dataset: xr.Dataset) -> CurveReader:
        """Return what evaluates curves."""
        from afterslip.physics.viscoelastic.reader import CurveReader

        return CurveReader(dataset)


def _small(value: float | None) -> str | None:
    return None if value is None else power_of_ten(value)
