"""The model: frame, domain, materials, mesh, boundary."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    BeforeValidator,
    Field,
    PlainSerializer,
    StrictBool,
    model_validator,
)

from afterslip.errors import Problem
from afterslip.schemas.base import Schema, refusal
from afterslip.schemas.fault import Fault
from afterslip.schemas.rheology import Rheology
from afterslip.schemas.values import Count, FileRef, Name, Within

# km, of a box on the sphere: from the origin to a corner, nearly to the other side of
# the Earth (20015 km), and down, nearly to its centre; elements there are very narrow
FARTHEST_ARC, DEEPEST = 16000.0, 6000.0
# bulk modulus stays positive: vp^2 > 4/3 vs^2
LARGEST_VS = 3.0**0.5 / 2.0


def _speed_hint(value: float) -> str:
    return f"this looks like m/s: write {value / 1000:g}" if value >= 100 else ""


def _density_hint(value: float) -> str:
    return f"this looks like g/cm3: write {value * 1000:g}" if value < 30 else ""


Speed = Annotated[float, Within("km/s", least=0.05, most=20, hint=_speed_hint)]
Density = Annotated[float, Within("kg/m3", least=500, most=20000, hint=_density_hint)]
Depth = Annotated[float, Within("km", above=0, most=6371)]


class Frame(Schema):
    """Where the origin of the model is on the Earth."""

    # a spec that leaves it out has the digest that it had before there was a choice
    implied: ClassVar[dict[str, Any]] = {"shape": "flat"}

    kind: Literal["geographic", "local"] = Field(
        description="geographic: files give lon, lat; local: files give x_km, y_km"
    )
    lon0: Annotated[float, Within("deg", least=-180, most=360)] | None = Field(
        default=None, description="longitude of the origin, degrees east"
    )
    lat0: Annotated[float, Within("deg", least=-90, most=90)] | None = Field(
        default=None, description="latitude of the origin, degrees north"
    )
    shape: Literal["flat", "sphere"] = Field(
        default="flat", description="of the Earth; sphere: radius 6371 km"
    )

    def problems(self) -> Iterator[Problem]:
        """Geographic needs an origin, local has none."""
        for key in ("lon0", "lat0"):
            value = getattr(self, key)
            if self.kind == "geographic" and value is None:
                yield Problem(key, None, "is missing", "a geographic frame needs it")
            if self.kind == "local" and value is not None:
                yield Problem(key, value, "belongs to a geographic frame", "remove it")
        if self.kind == "local" and self.shape == "sphere":
            hint = "write {kind: geographic, lon0, lat0, shape: sphere}"
            yield Problem("shape", "sphere", "needs a geographic frame", hint)


def _interval(value: Any) -> Any:
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise refusal("must be two numbers", "write [from, to] in km")
    low, high = (Within("km", least=-20000, most=20000).parse(item) for item in value)
    if low >= high:
        raise refusal("must grow", f"write [{high:g}, {low:g}]" if low > high else "")
    return (low, high)


Interval = Annotated[
    tuple[float, float],
    BeforeValidator(_interval),
    PlainSerializer(list, return_type=list[float]),
]


class Domain(Schema):
    """The box that is modelled."""

    x: Interval = Field(description="[west, east] of the origin, km")
    y: Interval = Field(description="[south, north] of the origin, km")
    depth: Depth = Field(description="depth of the bottom, km")


def _rheology(value: Any) -> Any:
    if value is None or value == "elastic" or value == {"elastic": None}:
        return None
    if isinstance(value, str):
        raise refusal(
            "must be elastic, {maxwell: {viscosity}} or {burgers: {...}}",
            "write {maxwell: {viscosity: 1.0e19}}" if "maxw" in value.lower() else "",
        )
    return value


class Material(Schema):
    """Elastic constants and rheology of a body."""

    vp: Speed = Field(description="speed of P waves, km/s")
    vs: Speed = Field(description="speed of S waves, km/s")
    rho: Density = Field(description="density, kg/m3")
    rheology: Annotated[Rheology | None, BeforeValidator(_rheology)] = Field(
        default=None, description="elastic, {maxwell: {viscosity}} or {burgers: {...}}"
    )

    def problems(self) -> Iterator[Problem]:
        """Refuse a bulk modulus of zero or less."""
        if self.vs >= LARGEST_VS * self.vp:
            yield Problem(
                "vs",
                self.vs,
                "must be below vp/1.155",
                f"vp is {self.vp:g}, so below {LARGEST_VS * self.vp:.4g} km/s",
            )


class Layer(Material):
    """A material from the layer above down to a depth."""

    name: Name = Field(description="name of the layer")
    bottom: Depth = Field(description="depth of its bottom, km")


class Body(Material):
    """A material below a surface that overrides the layers, e.g. a slab."""

    name: Name = Field(description="name of the body")
    below: FileRef = Field(description="file of the points of its top surface")
    thickness: Depth = Field(
        description="thickness, at right angles to its top surface, km"
    )


class Grid(Schema):
    """A grid of properties that overrides layers where it has values."""

    file: FileRef = Field(description="NetCDF with vp, vs, rho and maybe viscosity")


class MeshSize(Schema):
    """Lengths of edges."""

    # a spec that leaves it out has the digest that it had before there was a choice
    implied: ClassVar[dict[str, Any]] = {"growth": 0.35, "ends": 1.0}

    fault: Annotated[float, Within("km", above=0, most=1000)] = Field(
        description="length of edges on the faults, km"
    )
    far: Annotated[float, Within("km", above=0, most=5000)] = Field(
        description="length of edges far from them, km"
    )
    growth: Annotated[float, Within("", least=0.05, most=2)] = Field(
        default=0.35,
        description="growth of that length per length of distance from a fault",
    )
    ends: Annotated[float, Within("", least=0.05, most=1)] = Field(
        default=1.0,
        description="edges where slip ends at or near the ground, over those on faults",
    )

    def problems(self) -> Iterator[Problem]:
        """Sizes grow away from the fault."""
        if self.far < self.fault:
            yield Problem("far", self.far, "must be at least mesh.size.fault")


def _percent_hint(value: float) -> str:
    return f"this looks like a share: write {100 * value:g} %" if value < 0.05 else ""


class Mesh(Schema):
    """A mesh to build, or to import."""

    size: MeshSize | None = Field(
        default=None, description="{fault, far} in km, growth, ends"
    )
    accuracy: (
        Annotated[float, Within("%", least=0.05, most=20, hint=_percent_hint)] | None
    ) = Field(
        default=None, description="error allowed, e.g. 1 %; sizes are then chosen"
    )
    fit: Annotated[float, Within("km", least=0.001, most=100)] | None = Field(
        default=None, description="largest misfit (RMS) of surfaces to their points"
    )
    refine: Annotated[int, Count(0, 5)] = Field(
        default=0, description="uniform refinements; each makes 8 times more elements"
    )
    file: FileRef | None = Field(
        default=None, description="a mesh with physical groups named as layers, faults"
    )

    def problems(self) -> Iterator[Problem]:
        """One way to have a mesh."""
        if sum(way is not None for way in (self.size, self.accuracy, self.file)) != 1:
            yield Problem("", None, "must have one of size, accuracy, file")
        elif self.accuracy is not None and self.refine:
            message = "belongs to mesh.size: with accuracy it is chosen"
            yield Problem("refine", self.refine, message, "remove it")
        if self.file is not None and self.fit is not None:
            message = "belongs to meshes that are built"
            yield Problem("fit", self.fit, message, "remove it")


class Boundary(Schema):
    """What holds the box."""

    sides: Literal["roller", "fixed"] = Field(
        default="roller", description="roller: only the normal motion is zero"
    )
    bottom: Literal["roller", "fixed"] = Field(
        default="roller", description="as sides; where it is left out, the same"
    )

    @model_validator(mode="before")
    @classmethod
    def _bottom_as_sides(cls, given: Any) -> Any:
        """Hold a bottom that is left out as the sides are.

        Rollers all around are planes of symmetry, whose images are known; a bottom that
        is held between rollers changes more, by all that was measured.
        """
        if isinstance(given, dict) and "sides" in given:
            return {"bottom": given["sides"]} | given
        return given


class Gravity(Schema):
    """Gravity's effect on the motion."""

    restoring: StrictBool = Field(
        default=False, description="isostatic restoring force on density jumps"
    )


class Model(Schema):
    """Geometry, materials and mesh."""

    frame: Frame = Field(
        default=Frame(kind="local"), description="{kind: geographic, lon0, lat0}"
    )
    domain: Domain | None = Field(
        default=None, description="{x: [from, to], y: [from, to], depth} in km"
    )
    layers: list[Layer] = Field(
        min_length=1, max_length=1000, description="materials by depth, from the top"
    )
    bodies: list[Body] = Field(
        default=[], max_length=100, description="materials that override the layers"
    )
    grid: Grid | None = Field(default=None, description="{file} of properties")
    topography: FileRef | None = Field(
        default=None, description="file of the height of the ground"
    )
    faults: list[Fault] = Field(min_length=1, max_length=100, description="the faults")
    mesh: Mesh = Field(description="{accuracy}, {size, refine} or {file}")
    boundary: Boundary = Field(default=Boundary(), description="{sides, bottom}")
    gravity: Gravity = Field(default=Gravity(), description="{restoring}")

    def problems(self) -> Iterator[Problem]:
        """Names, order of the layers, faults inside the box."""
        yield from _layer_order(self.layers, self.domain.depth if self.domain else 0.0)
        if self.domain is None and self.mesh.file is not None:
            yield Problem("domain", None, "is missing", "an imported mesh needs it")
        if self.gravity.restoring:
            yield from _density_order(self.layers)
        materials: list[tuple[str, str]] = [
            *((f"layers[{i}]", layer.name) for i, layer in enumerate(self.layers)),
            *((f"bodies[{i}]", body.name) for i, body in enumerate(self.bodies)),
        ]
        yield from unique_names(materials)
        yield from unique_names(
            [(f"faults[{i}]", fault.name) for i, fault in enumerate(self.faults)]
        )
        if self.frame.shape == "sphere" and self.domain is None:
            hint = "write {x: [from, to], y: [from, to], depth} in km"
            text = "is missing: a box on a sphere is not chosen by itself"
            yield Problem("domain", None, text, hint)
        elif self.frame.shape == "sphere" and self.domain is not None:
            yield from _fits_sphere(self.domain, self.boundary)
        for i, fault in enumerate(self.faults):
            plane = fault.plane
            if plane and plane.geographic and self.frame.kind != "geographic":
                hint = "use frame: {kind: geographic, lon0, lat0}, or x and y in km"
                message = "needs a geographic frame"
                yield Problem(f"faults[{i}].plane.lon", plane.lon, message, hint)


def _fits_sphere(domain: Domain, boundary: Boundary) -> Iterator[Problem]:
    """Refuse a box that meets itself or folds when it is wrapped around the sphere."""
    for key in ("sides", "bottom"):
        if getattr(boundary, key) == "roller":
            message = "needs a flat wall, and those of frame.shape: sphere are curved"
            yield Problem(f"boundary.{key}", "roller", message, f"write {key}: fixed")
    corner = math.hypot(
        *(max(abs(low), abs(high)) for low, high in (domain.x, domain.y))
    )
    if corner > FARTHEST_ARC:
        yield Problem(
            "domain",
            None,
            f"reaches {corner:.0f} km from the origin, and at most {FARTHEST_ARC:g} km "
            "with frame.shape: sphere",
            "make x and y smaller",
        )
    if domain.depth > DEEPEST:
        message = f"must be at most {DEEPEST:g} km with frame.shape: sphere"
        yield Problem("domain.depth", domain.depth, message)


def _layer_order(layers: list[Layer], depth: float) -> Iterator[Problem]:
    for index, (upper, lower) in enumerate(pairwise(layers)):
        if lower.bottom <= upper.bottom:
            yield Problem(
                f"layers[{index + 1}].bottom",
                lower.bottom,
                f"must be below the layer above, which ends at {upper.bottom:g} km",
                "order layers from the top",
            )
    deepest = max(layer.bottom for layer in layers)
    if deepest < depth:
        yield Problem(
            f"layers[{len(layers) - 1}].bottom",
            layers[-1].bottom,
            f"must reach the depth of the domain, {depth:g} km",
        )


def _density_order(layers: list[Layer]) -> Iterator[Problem]:
    """Heavy above light rock is not stable once its weight acts."""
    for index, (upper, lower) in enumerate(pairwise(layers)):
        if lower.rho < upper.rho:
            yield Problem(
                f"layers[{index + 1}].rho",
                lower.rho,
                "must not be below that of the layer above with gravity.restoring",
                f"write {upper.rho:g} or more",
            )


def unique_names(named: Iterable[tuple[str, str]]) -> Iterator[Problem]:
    """Say which names of (path, name) are used twice."""
    used: dict[str, str] = {}
    for path, name in named:
        if name in used:
            yield Problem(f"{path}.name", name, f"is the name of {used[name]} already")
        used.setdefault(name, path)
