"""Storage of values and arrays in an SQLite file: documents, chunks by checksum, arrays in chunks. Does not need torch.

Nothing here depends on what a model is.
"""
