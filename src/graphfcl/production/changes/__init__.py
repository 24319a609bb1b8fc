"""Changes of a model: new labels, classes, nodes and edges."""
