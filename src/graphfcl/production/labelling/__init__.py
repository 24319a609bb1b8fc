"""Which nodes to label next: suggestions and groups of unknown nodes."""
