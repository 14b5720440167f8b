"""Elastic waves after fault slip: series through seconds and minutes."""

from afterslip.physics.waves.definition import Waves

physics = Waves()

__all__ = ["physics"]
