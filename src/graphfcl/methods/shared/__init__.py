"""Building blocks of learners: each part owns its state, and no part depends on a learner class."""
