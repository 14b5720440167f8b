"""What a client sees of each kind of physics: its spec, its store, its evaluation."""
