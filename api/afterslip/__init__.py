"""Green's functions of viscoelastic earthquake deformation, and slip from them."""

__version__ = "0.1.0"
