"""What every route shares: middleware, bodies, problems, OpenAPI, pages, events."""
