"""The loop that reads database and placement, asks the engine, and acts."""
