"""What the client's room and the solver's both need; NumPy and the standard library."""
