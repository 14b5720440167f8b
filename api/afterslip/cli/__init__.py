"""The command ``afterslip``."""
