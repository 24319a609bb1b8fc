"""Column phases and row phases over files."""
