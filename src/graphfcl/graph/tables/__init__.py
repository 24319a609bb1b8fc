"""Tables of nodes and edges: files and DataFrames, their columns, and the features made of them."""
