"""Labels of a model (the class of each node and who gave it), and the history of changes."""
