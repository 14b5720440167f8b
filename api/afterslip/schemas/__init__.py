"""What users write: models of the specs, one noun a file."""
