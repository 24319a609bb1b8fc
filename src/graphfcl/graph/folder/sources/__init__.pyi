"""The public names of ``graphfcl.graph.folder.sources``: type checkers and the package itself read this list."""

from graphfcl.graph.folder.sources.npz import npz_source as npz_source
from graphfcl.graph.folder.sources.ogb import (
    ogb_source as ogb_source,
    raw_folder as raw_folder,
)
from graphfcl.graph.folder.sources.tables import tables_source as tables_source

__all__: list[str]
