"""Numbers and texts that a change of shape must not change; ``python -m tests.golden.record`` writes them."""
