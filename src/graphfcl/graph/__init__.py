"""Graphs: what they are, what of them is visible, how they are read and written."""

from typing import TYPE_CHECKING

from graphfcl.lazy_names import lazy_names

if TYPE_CHECKING:
    from graphfcl.graph.any_graph import AnyGraph
    from graphfcl.graph.build import build_graph
    from graphfcl.graph.convert import from_pyg, from_scipy, to_pyg, to_scipy
    from graphfcl.graph.graph import UNKNOWN, Graph, TextSettings
    from graphfcl.graph.networks import from_networkx, to_networkx
    from graphfcl.graph.npz import read_npz, write_npz
    from graphfcl.graph.table_columns import TableColumns
    from graphfcl.graph.tables import from_frames, read_tables, write_tables
    from graphfcl.graph.text import TextWeights
    from graphfcl.graph.views import Features, FeatureView, KnownColumns, Standardisation
    from graphfcl.graph.visible import VisibleGraph, join_without_edges
    from graphfcl.graph.visible_nodes import VisibleNodes

# Where each name lives: ids are read without the sparse matrices of scipy.
_PLACES = {
    "AnyGraph": "any_graph",
    "build_graph": "build",
    "from_networkx": "networks",
    "from_pyg": "convert",
    "from_scipy": "convert",
    "to_networkx": "networks",
    "to_pyg": "convert",
    "to_scipy": "convert",
    "UNKNOWN": "graph",
    "Graph": "graph",
    "TextSettings": "graph",
    "read_npz": "npz",
    "write_npz": "npz",
    "TableColumns": "table_columns",
    "from_frames": "tables",
    "read_tables": "tables",
    "write_tables": "tables",
    "TextWeights": "text",
    "FeatureView": "views",
    "Features": "views",
    "KnownColumns": "views",
    "Standardisation": "views",
    "VisibleGraph": "visible",
    "VisibleNodes": "visible_nodes",
    "join_without_edges": "visible",
}

__all__ = [
    "UNKNOWN",
    "AnyGraph",
    "FeatureView",
    "Features",
    "Graph",
    "KnownColumns",
    "Standardisation",
    "TableColumns",
    "TextSettings",
    "TextWeights",
    "VisibleGraph",
    "VisibleNodes",
    "build_graph",
    "from_frames",
    "from_networkx",
    "from_pyg",
    "from_scipy",
    "join_without_edges",
    "read_npz",
    "read_tables",
    "to_networkx",
    "to_pyg",
    "to_scipy",
    "write_npz",
    "write_tables",
]

__getattr__ = lazy_names(__name__, _PLACES)
