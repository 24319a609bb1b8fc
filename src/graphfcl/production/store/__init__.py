"""How values and arrays lie in an SQLite file: documents, chunks by checksum, arrays in chunks. Needs no torch.

Nothing here knows what a model is.
"""
