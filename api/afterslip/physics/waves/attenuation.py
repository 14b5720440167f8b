"""Attenuation in a spec of waves: quality factors of layers, and where they hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainSerializer

from afterslip.errors import Problem
from afterslip.schemas.base import Schema, refusal
from afterslip.schemas.earth import Layer
from afterslip.schemas.values import Within

# highest over lowest frequency that eight Zener bodies carry within 2 %
MOST_RATIO = 300.0
# of Qp at most, times (vp/vs)^2 Qs: beyond it pressure alone would gain energy
BULK = 0.75

Frequency = Annotated[float, Within("Hz", above=0, most=1000)]
Quality = Annotated[float, Within("", least=10, most=1e5)]


def _band(value: Any) -> Any:
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise refusal("must be two frequencies", "write [lowest, highest] in Hz")
    low, high = (Within("Hz", above=0, most=1000).parse(item) for item in value)
    if not low < high <= MOST_RATIO * low * (1 + 1e-9):
        raise refusal(
            f"must grow, by a factor of at most {MOST_RATIO:g}",
            "write [lowest, highest] in Hz",
        )
    return (low, high)


Band = Annotated[
    tuple[float, float],
    BeforeValidator(_band),
    PlainSerializer(list, return_type=list[float]),
]


class WaveLayer(Layer):
    """A layer that may attenuate waves."""

    qp: Quality | None = Field(default=None, description="quality factor of P waves")
    qs: Quality | None = Field(default=None, description="quality factor of S waves")


class Attenuation(Schema):
    """Where the quality factors of layers hold."""

    band: Band = Field(description="[lowest, highest] frequency of constant Q, Hz")
    reference: Frequency | None = Field(
        default=None,
        description="Hz, of vp and vs; the middle of the band if not given",
    )

    @property
    def at(self) -> float:
        """Frequency at which vp and vs hold, Hz."""
        return float(self.reference or (self.band[0] * self.band[1]) ** 0.5)

    def problems(self) -> Iterator[Problem]:
        """Keep the reference where Q is what is given."""
        low, high = self.band
        if self.reference is not None and not low <= self.reference <= high:
            text = f"is outside the band, {low:g} to {high:g} Hz"
            yield Problem("reference", self.reference, text, "leave it out")


def layer_problems(
    layers: Sequence[WaveLayer], attenuates: bool
) -> Iterator[tuple[str, Problem]]:
    """Yield path and problem of the quality factors of layers."""
    for index, layer in enumerate(layers):
        path = f"model.layers[{index}]"
        for key in ("qp", "qs"):
            value = getattr(layer, key)
            if attenuates and value is None:
                text = "is missing, and waves.attenuation is given"
                yield path, Problem(key, None, text, "quality factors are needed")
            elif value is not None and not attenuates:
                hint = (
                    "write waves.attenuation: {band: [lowest, highest]}, or remove it"
                )
                yield path, Problem(key, value, "needs waves.attenuation", hint)
        if not attenuates or layer.qp is None or layer.qs is None:
            continue
        most = BULK * (layer.vp / layer.vs) ** 2 * layer.qs
        if layer.qp > most * (1 + 1e-9):
            text = f"is above {most:.4g}: changes of volume would gain energy"
            hint = "that is 3/4 (vp/vs)^2 qs; make qp lower or qs higher"
            yield path, Problem("qp", layer.qp, text, hint)
