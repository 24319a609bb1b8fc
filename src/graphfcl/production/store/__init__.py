"""How arrays and values lie in a folder: objects by checksum, arrays in blocks, trees, manifests, locks, the cache.

Nothing here knows what a model is. Nothing needs torch, except where tensors are turned into arrays and back.
"""
