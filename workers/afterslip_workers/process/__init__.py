"""The computing processes: started, watched, ended; their results delivered."""
