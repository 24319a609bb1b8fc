"""Graphs on the disk: a folder of raw files that is built in bounded memory and read in parts."""

from typing import TYPE_CHECKING

from graphfcl.lazy_names import lazy_names

if TYPE_CHECKING:
    from graphfcl.graph.folder.building import build_folder, write_folder
    from graphfcl.graph.folder.reader import GraphFolder, is_graph_folder
    from graphfcl.graph.folder.rows import Neighbours

_PLACES = {
    "GraphFolder": "reader",
    "Neighbours": "rows",
    "build_folder": "building",
    "is_graph_folder": "reader",
    "write_folder": "building",
}

__all__ = ["GraphFolder", "Neighbours", "build_folder", "is_graph_folder", "write_folder"]

__getattr__ = lazy_names(__name__, _PLACES)
