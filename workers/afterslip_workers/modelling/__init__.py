"""From a spec to what the solver takes."""
