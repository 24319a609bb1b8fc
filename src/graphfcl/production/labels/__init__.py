"""Labels of a model: which node has which class, from whom, and the history of changes."""
