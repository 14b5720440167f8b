"""What workers write: durable files, manifests, and their promotion."""
