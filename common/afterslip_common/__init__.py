"""What several packages share; it needs NumPy alone, but for logs and traces."""
