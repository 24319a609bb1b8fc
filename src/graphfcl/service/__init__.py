"""A model over HTTP: snapshots answer reads, one writer makes changes, the versions in the folder are the only state.

It needs the extra ``serve``; importing graphfcl does not import this package.
"""
