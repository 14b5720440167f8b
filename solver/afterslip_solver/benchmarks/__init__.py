"""Measurements of the solver.

Each module has ``records(model, slip, settings, backend) -> list[Record]``: figures
of one run on a model, with the slip of four unit sources (fault name → (n_fault_node,
3, 4) m), the settings of the curve and the backend's name ("cpu", "gpu", "auto").
"""
