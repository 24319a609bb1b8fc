"""What graph folders are built from, besides graphs in memory: files that are read in blocks."""

from typing import TYPE_CHECKING

from graphfcl.lazy_names import lazy_names

if TYPE_CHECKING:
    from graphfcl.graph.folder.sources.npz import npz_source
    from graphfcl.graph.folder.sources.ogb import ogb_source, raw_folder
    from graphfcl.graph.folder.sources.tables import tables_source

_PLACES = {"npz_source": "npz", "ogb_source": "ogb", "raw_folder": "ogb", "tables_source": "tables"}

__all__ = ["npz_source", "ogb_source", "raw_folder", "tables_source"]

__getattr__ = lazy_names(__name__, _PLACES)
