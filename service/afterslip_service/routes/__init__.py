"""HTTP: one noun a file."""
