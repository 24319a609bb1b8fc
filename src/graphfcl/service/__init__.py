"""A model over HTTP: answers from snapshots, one writer, versions of the folder as the only truth.

It needs the extra ``serve``; importing graphfcl does not import this package.
"""
