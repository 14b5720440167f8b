"""Quasi-static deformation of an elastic and viscoelastic crust after fault slip."""

from afterslip.physics.viscoelastic.definition import Viscoelastic

physics = Viscoelastic()

__all__ = ["physics"]
