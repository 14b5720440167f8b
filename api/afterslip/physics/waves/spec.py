"""The campaign of waves: what all campaigns have, frequencies, durations, sides."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from afterslip.errors import Problem
from afterslip.physics.waves.attenuation import (
    Attenuation,
    Frequency,
    WaveLayer,
    layer_problems,
)
from afterslip.schemas.base import Schema
from afterslip.schemas.campaign import Campaign
from afterslip.schemas.earth import Boundary, Gravity, Material, Mesh, MeshSize, Model
from afterslip.schemas.fault import Fault, Sources
from afterslip.schemas.values import Count, Duration, FileRef, Within
from afterslip_common import source_time
from afterslip_common.source_time import SourceTime as Function
from afterslip_common.terms import GROUP_SIZE

# the orthogonal element is worse than the trilinear one above this vp/vs
MOST_VP_VS = 2.1
# what a source-time function may have beyond twice the frequency, over what it has at 0
MOST_BEYOND = 0.1
MOST_SAMPLES = 100_000
# samples in a period of the highest frequency
_LEAST_SAMPLES = 2.5

# the keys that a kind needs; it has no others
_KEYS = {
    "smooth_step": ("rise",),
    "brune": ("corner",),
    "yoffe": ("rise", "acceleration"),
    "file": ("file",),
}


class SourceTime(Schema):
    """How slip grows from 0 to 1."""

    kind: Literal["smooth_step", "brune", "yoffe", "file"] = Field(
        description="smooth_step, brune, yoffe (regularised) or file"
    )
    rise: Duration | None = Field(
        default=None, description="of smooth_step and yoffe, e.g. 2 s"
    )
    corner: Frequency | None = Field(default=None, description="of brune, Hz")
    acceleration: Duration | None = Field(
        default=None, description="of yoffe: time to the largest slip rate"
    )
    file: FileRef | None = Field(
        default=None, description="table of time_s and share, from 0 0 to ... 1"
    )

    def problems(self) -> Iterator[Problem]:
        """Each kind has its own keys."""
        needed = _KEYS[self.kind]
        for key in ("rise", "corner", "acceleration", "file"):
            value = getattr(self, key)
            if key in needed and value is None:
                yield Problem(key, None, "is missing", f"{self.kind} needs it")
            elif key not in needed and value is not None:
                text = getattr(value, "text", value)
                yield Problem(key, text, f"does not belong to {self.kind}", "remove it")
            elif isinstance(value, Duration) and value <= 0.0:
                yield Problem(key, value.text, "must be more than zero")

    @property
    def function(self) -> Function | None:
        """The function; None where a file has it."""
        if self.kind == "smooth_step" and self.rise:
            return source_time.smooth_step(float(self.rise))
        if self.kind == "brune" and self.corner:
            return source_time.brune(1.0 / (2.0 * 3.141592653589793 * self.corner))
        if self.kind == "yoffe" and self.rise and self.acceleration:
            return source_time.yoffe(float(self.rise), float(self.acceleration))
        return None


class Absorbing(Schema):
    """What happens at the sides and the bottom."""

    kind: Literal["spring_dashpot", "sponge", "free"] = Field(
        default="spring_dashpot",
        description="spring_dashpot holds static offsets too; sponge is for waves "
        "shorter than it",
    )
    cells: Annotated[int, Count(2, 200)] | None = Field(
        default=None, description="voxels of a sponge, 10 if not given"
    )

    def problems(self) -> Iterator[Problem]:
        """Only a sponge has a width."""
        if self.cells is not None and self.kind != "sponge":
            yield Problem("cells", self.cells, "belongs to kind: sponge", "remove it")

    @property
    def width(self) -> int:
        """Voxels of the sponge."""
        return (self.cells or 10) if self.kind == "sponge" else 0


class Surface(Schema):
    """Series everywhere on the ground."""

    spacing: Annotated[float, Within("km", above=0, most=1000)] = Field(
        description="distance of the points, km; at least 6 in the shortest wavelength"
    )


class WaveSettings(Schema):
    """What waves are followed, and how."""

    frequency: Frequency = Field(description="highest frequency resolved, Hz")
    points_per_wavelength: Annotated[float, Within("", least=5, most=60)] = Field(
        default=15.0, description="voxels in the shortest S wave; 15: 0.5 % of speed"
    )
    duration: Duration = Field(description="end of the series, e.g. 120 s")
    sampling: Duration = Field(description="of the series, e.g. 0.4 s")
    step: Duration | None = Field(
        default=None, description="of the solver, at most; stable if not given"
    )
    source_time: SourceTime = Field(description="{kind: smooth_step, rise: 2 s}")
    absorbing: Absorbing = Field(default=Absorbing(), description="{kind, cells}")
    scheme: Literal["selective", "orthogonal", "trilinear"] = Field(
        default="selective", description="the element; see the table of dispersion"
    )
    precision: Literal["fp32", "fp64", "int8"] = Field(
        default="fp32", description="fp32, fp64, or int8: tensor cores, in FP64"
    )
    digits: Annotated[int, Count(3, 7)] | None = Field(
        default=None, description="of int8, base 256; 7, which carry FP64, if not given"
    )
    attenuation: Attenuation | None = Field(
        default=None, description="{band}: constant Q there; layers then have qp, qs"
    )
    surface: Surface | None = Field(
        default=None, description="{spacing}: the whole ground; else stations alone"
    )
    solve: Literal["auto", "sources", "receivers"] = Field(
        default="auto",
        description="receivers: by reciprocity; auto: by fewer runs",
    )
    backend: Literal["auto", "cpu", "gpu"] = Field(
        default="auto", description="auto: a GPU where there is one"
    )
    gpus: Annotated[int, Count(1, 16)] = Field(
        default=1, description="GPUs of one machine that share the voxels of each group"
    )

    def problems(self) -> Iterator[Problem]:
        """Require samples that carry the frequency, and a source below it."""
        yield from self._of_precision()
        if self.gpus > 1 and self.backend == "cpu":
            text = "cannot be shared by several GPUs"
            yield Problem("backend", self.backend, text, "set gpus: 1")
        if self.solve == "receivers" and self.surface is not None:
            text = "records stations alone, and surface is given"
            hint = "write waves.solve: sources, or remove surface"
            yield Problem("solve", self.solve, text, hint)
        finest = 1.0 / (_LEAST_SAMPLES * self.frequency)
        if not 0.0 < self.sampling <= finest * (1 + 1e-9):
            yield Problem(
                "sampling",
                self.sampling.text,
                f"must be above 0 and at most {finest:.4g} s for {self.frequency:g} Hz",
                "that is 2.5 samples in a period",
            )
            return
        count = float(self.duration) / float(self.sampling)
        if not 1.0 <= count <= MOST_SAMPLES:
            text = f"makes {count:.0f} samples, and 1 to {MOST_SAMPLES:,} are allowed"
            yield Problem("duration", self.duration.text, text)
        if self.step is not None and self.step <= 0.0:
            yield Problem("step", self.step.text, "must be more than zero")
        function = self.source_time.function
        if function is not None:
            yield from too_fast(function, self.frequency)
            if function.end > self.duration:
                yield Problem(
                    "duration",
                    self.duration.text,
                    f"ends before the source, which takes {function.end:.4g} s",
                )

    def _of_precision(self) -> Iterator[Problem]:
        if self.precision != "int8":
            if self.digits is not None:
                hint = "remove it"
                yield Problem("digits", self.digits, "belongs to precision: int8", hint)
            return
        if self.scheme != "orthogonal":
            text = f"is of the orthogonal element, and scheme is {self.scheme}"
            hint = "write waves.scheme: orthogonal"
            yield Problem("precision", self.precision, text, hint)
        if self.attenuation is not None:
            text = "has no attenuation"
            hint = "write waves.precision: fp32 or fp64"
            yield Problem("precision", self.precision, text, hint)


def too_fast(function: Function, frequency: float) -> Iterator[Problem]:
    """Say whether a source-time function has what the voxels do not carry."""
    beyond = function.beyond(2.0 * frequency)
    if beyond > MOST_BEYOND:
        yield Problem(
            "source_time",
            None,
            f"has {100 * beyond:.0f} % of its amplitude beyond {2 * frequency:g} Hz, "
            f"twice of frequency, and {100 * MOST_BEYOND:.0f} % are allowed",
            "make it longer, or frequency higher",
        )


# stands where viscoelastic models say how they are meshed
_VOXELS = Mesh(size=MeshSize(fault=1.0, far=1.0))


class WaveModel(Model):
    """A model that is cut into voxels: it has no mesh and nothing that creeps."""

    implied: ClassVar[dict[str, Any]] = {"mesh": _VOXELS}

    layers: list[WaveLayer] = Field(  # type: ignore[assignment]
        min_length=1, max_length=1000, description="materials by depth, from the top"
    )
    faults: list[Fault] = Field(default=[], max_length=100, description="the faults")
    mesh: Mesh = Field(default=_VOXELS, exclude=True, description="none: voxels")

    def problems(self) -> Iterator[Problem]:
        """Refuse what only slow deformation has."""
        yield from super().problems()
        if self.domain is None:
            yield Problem("domain", None, "is missing", "waves need it")
        if self.mesh != _VOXELS:
            text = "is not for waves: voxels follow from waves.frequency"
            yield Problem("mesh", None, text, "remove it")
        if self.boundary != Boundary():
            text = "is not for waves: see waves.absorbing"
            yield Problem("boundary", None, text, "remove it")
        if self.frame.shape != "flat":
            text = "is not for waves, whose voxels are flat"
            yield Problem("frame.shape", self.frame.shape, text, "remove it")
        if self.gravity != Gravity():
            yield Problem("gravity", None, "is not for waves", "remove it")
        for path, item in self.materials():
            if item.rheology is not None:
                text = "is not for waves, whose seconds are elastic"
                yield Problem(f"{path}.rheology", None, text, "remove it")

    def materials(self) -> Iterator[tuple[str, Material]]:
        """Yield path and material of layers and bodies."""
        for index, layer in enumerate(self.layers):
            yield f"layers[{index}]", layer
        for index, body in enumerate(self.bodies):
            yield f"bodies[{index}]", body


class WaveCampaign(Campaign):
    """A model, unit sources in it, and how long their waves are followed."""

    physics: Literal["waves"] = Field(description="what is solved: elastic waves")
    model: WaveModel = Field(description="geometry and materials")
    # of one fault
    sources: Sources = Field(description="{fault, along_strike, down_dip}")
    waves: WaveSettings = Field(description="frequency, duration, sides, ...")

    @property
    def end(self) -> Duration:
        """End of the series."""
        return self.waves.duration

    def problems(self) -> Iterator[Problem]:
        """Refuse what waves do not offer, or could not carry."""
        yield from super().problems()
        if self.stations is None and self.waves.surface is None:
            text = "is missing: nothing would be recorded"
            hint = "name a file of stations, or give waves.surface"
            yield Problem("stations", None, text, hint)
        yield from fitting(self.model, self.waves)

    def runs(self, stations: int) -> dict[str, int]:
        """Return how many runs of four lanes each way to solve takes.

        Parameters
        ----------
        stations : their number.
        """
        lanes = {"sources": self.sources.count, "receivers": 3 * stations}
        return {way: -(-count // GROUP_SIZE) for way, count in lanes.items()}

    def way(self, stations: int) -> str:
        """Return "receivers" or "sources", whichever is asked for or takes less."""
        if self.waves.solve != "auto":
            return self.waves.solve
        runs = self.runs(stations)
        less = self.waves.surface is None and runs["receivers"] < runs["sources"]
        return "receivers" if less else "sources"


def fitting(model: WaveModel, waves: WaveSettings) -> Iterator[Problem]:
    """Say where materials do not go with attenuation or with the element."""
    for path, problem in layer_problems(model.layers, waves.attenuation is not None):
        yield problem.under(path)
    if waves.attenuation is not None:
        for key in ("bodies", "grid"):
            if getattr(model, key):
                text = "has no quality factors, and waves.attenuation is given"
                yield Problem(f"model.{key}", None, text, "remove one of them")
    if waves.scheme != "orthogonal":
        return
    for path, item in model.materials():
        ratio = item.vp / item.vs
        if ratio > MOST_VP_VS:
            yield Problem(
                f"model.{path}.vs",
                item.vs,
                f"makes vp/vs {ratio:.2f}, and the orthogonal element is worse "
                f"than others above {MOST_VP_VS:g}",
                "write waves.scheme: selective",
            )
