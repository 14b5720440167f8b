"""What a worker does for each kind of physics."""
