"""Whether slip that is allowed can have a known moment, before anything is solved."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from afterslip.errors import Problem
from afterslip.schemas.campaign import Campaign
from afterslip.schemas.constraints import Constraint, limits_of
from afterslip.schemas.inversion import Inversion
from afterslip.units import KM
from afterslip_common.terms import SLIP_COMPONENTS, SlipComponent

# B-splines of height one sum to 1.5 along each side; the rest is the mesh's
SLACK = 2.3
ERRORS = 3.0


def moment_problems(spec: Campaign, request: Inversion) -> Iterator[Problem]:
    """Refuse a moment beyond what sign, bounds and rake allow on the whole fault.

    The size of a fault is known here where it is a plane and its materials are in the
    spec; elsewhere only a fault that cannot slip along the rake at all is refused.
    """
    moment = request.moment
    if moment is None:
        return
    own = {item.fault: item for item in request.constraints}
    most = 0.0
    for fault, components in spec.components_of_faults.items():
        item = own.get(fault, own.get(None))
        slip = _most_along(request, item, components, math.radians(moment.rake))
        if slip > 0.0:
            most += SLACK * slip * _size(spec, fault)
    wanted = 10.0 ** (1.5 * moment.magnitude + 9.1)
    # the least that the data of the moment allow may be below zero
    if most == 0.0 or most < wanted * (
        1.0 - ERRORS * 1.5 * math.log(10.0) * moment.error
    ):
        reached = "no slip along it is allowed"
        if most > 0.0:
            reached = f"at most Mw {2 / 3 * (math.log10(most) - 9.1):.2f} is allowed"
        yield Problem(
            "moment",
            f"Mw {moment.magnitude:g} along rake {moment.rake:g}",
            f"is beyond sign, bounds and rake: {reached}",
            "widen them, or turn the rake",
        )


def _most_along(
    request: Inversion,
    item: Constraint | None,
    components: Sequence[SlipComponent],
    rake: float,
) -> float:
    """Largest slip along a rake, m, that a fault may have; infinite without bounds."""
    if item is not None and item.rake:
        shares = [math.cos(math.radians(own) - rake) for own in item.rake]
        return max(_times(share, 0.0, item.most or math.inf) for share in shares)
    way = dict(zip(SLIP_COMPONENTS, (math.cos(rake), math.sin(rake)), strict=True))
    return sum(
        _times(way[component], *limits_of(item, component, request.sign.get(component)))
        for component in components
    )


def _times(share: float, low: float, high: float) -> float:
    """Largest product of a share with what lies between limits."""
    if abs(share) < 1e-9:
        return 0.0
    return max(share * low, share * high)


def _size(spec: Campaign, name: str) -> float:
    """Area of a plane times the largest rigidity of the model, N; infinite else."""
    (fault,) = (fault for fault in spec.model.faults if fault.name == name)
    if fault.plane is None or spec.model.grid is not None:
        return math.inf
    materials = [*spec.model.layers, *spec.model.bodies]
    rigidity = max(body.rho * (body.vs * KM) ** 2 for body in materials)
    return fault.plane.length * fault.plane.width * KM**2 * rigidity
