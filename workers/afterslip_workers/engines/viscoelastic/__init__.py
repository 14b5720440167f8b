"""Viscoelastic Green's functions: spec to model, unit sources, settings, solving."""
