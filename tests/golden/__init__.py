"""Numbers and texts that a change of the code's shape must not change; ``python -m tests.golden.record`` writes them."""
