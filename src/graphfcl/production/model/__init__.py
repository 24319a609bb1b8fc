"""A model: its parts and state, training, and its versions on disk."""
