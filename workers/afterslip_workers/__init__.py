"""Execution beside the data: tasks, child processes, writing of results."""
