"""What several rooms share; it needs NumPy alone, but for logs and traces."""
