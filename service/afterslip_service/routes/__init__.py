"""The API: one noun a file; what all of them share is in ``http``."""
