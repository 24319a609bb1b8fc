"""Generated parts of README and the docs."""
