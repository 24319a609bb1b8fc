"""Parts that learners have: each owns its state, and none knows a learner's class."""
