"""One kind of work a file; each runs inside the child process."""
