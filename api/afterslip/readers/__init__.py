"""Readers of the files that users write; bytes in, arrays in SI out."""
