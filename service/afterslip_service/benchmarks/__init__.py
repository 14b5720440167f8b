"""Measurements of the whole service."""
