"""Memory and decisions: API, database, dispatcher, placement, dashboard."""
