"""From observations to rows, and from a solution to a result file."""
