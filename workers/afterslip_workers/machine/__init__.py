"""The machine under a worker: its device, its memory and what is cached on it."""
