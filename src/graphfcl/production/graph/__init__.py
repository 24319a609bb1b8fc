"""The graph of a model, in memory or in a graph folder on disk, behind one protocol.

=========================  ==========================================================================
:class:`ModelGraph`        what the rest of ``production`` knows of it (``contract.py``)
:class:`GrowingGraph`      in memory; ``growing_codec.py`` stores it in versions
:class:`FolderModelGraph`  on disk; ``folder_codec.py`` stores what differs from its graph folder
=========================  ==========================================================================
"""

from typing import TYPE_CHECKING, Any

from graphfcl.production.graph.contract import ModelGraph, NodeIndex, StoredGraph

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from graphfcl.production.graph.place import FolderUse
    from graphfcl.production.store.parts import Part, PartSource

__all__ = ["ModelGraph", "NodeIndex", "StoredGraph", "kind_of", "stored_graph"]


def kind_of(graph: Any) -> "type[ModelGraph]":
    """The class of the model's graph that a graph to fit on becomes."""
    from graphfcl.graph.folder import GraphFolder

    if isinstance(graph, GraphFolder):
        from graphfcl.production.graph.folder_model_graph import FolderModelGraph

        return FolderModelGraph
    from graphfcl.production.graph.growing_graph import GrowingGraph

    return GrowingGraph


def stored_graph(
    part: "Callable[[str], Part]",
    folder: "Path",
    use: "FolderUse",
    remember: "Callable[[Mapping[str, PartSource]], None]" = lambda _: None,
) -> StoredGraph:
    """The graph of a version, of which only the values of its nodes are read.

    part: reads a part by name. folder: of the model. use: where its graph folder is and what may be used to compute on
    it, if it has one. remember: told how a graph in memory that was read is stored.
    """
    if "graph" in part("nodes").values:
        from graphfcl.production.graph.folder_codec import StoredFolderGraph

        return StoredFolderGraph(part, _folder_graph, folder, use)
    from graphfcl.production.graph.growing_codec import StoredGrowingGraph

    return StoredGrowingGraph(part, _growing_graph, remember)


def _growing_graph(*fields: Any, **named: Any) -> ModelGraph:
    from graphfcl.production.graph.growing_graph import GrowingGraph  # stored answers are read without scipy

    return GrowingGraph(*fields, **named)


def _folder_graph(*fields: Any) -> ModelGraph:
    from graphfcl.production.graph.folder_model_graph import FolderModelGraph

    return FolderModelGraph(*fields)
