"""The graph of a model, in memory or in a graph folder on disk, behind one protocol.

=========================  ==========================================================================
:class:`ModelGraph`        the protocol (``contract.py``)
:class:`GrowingGraph`      in memory; ``growing_codec.py`` stores it in versions
:class:`FolderModelGraph`  on disk; ``folder_codec.py`` stores its differences from its graph folder
=========================  ==========================================================================
"""

from typing import TYPE_CHECKING

from graphfcl.production.graph.contract import ModelGraph, NodeIndex, StoredGraph

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from graphfcl.graph.interfaces import AnyGraph
    from graphfcl.production.graph.place import FolderUse
    from graphfcl.production.store.parts import Part, PartSource

__all__ = ["ModelGraph", "NodeIndex", "StoredGraph", "encode_graph", "kind_of", "stored_graph"]


def kind_of(graph: "AnyGraph") -> "type[ModelGraph]":
    """Return the class of a model's graph that is fitted to ``graph``."""
    from graphfcl.graph.folder import GraphFolder

    if isinstance(graph, GraphFolder):
        from graphfcl.production.graph.folder_model_graph import FolderModelGraph

        return FolderModelGraph
    from graphfcl.production.graph.growing_graph import GrowingGraph

    return GrowingGraph


def encode_graph(graph: ModelGraph) -> "dict[str, PartSource]":
    """Return the parts ``nodes``, ``edges`` and ``features`` of a version."""
    from graphfcl.production.graph import folder_codec, growing_codec
    from graphfcl.production.graph.growing_graph import GrowingGraph

    if isinstance(graph, GrowingGraph):
        return growing_codec.encode_graph(graph)
    return folder_codec.encode_graph(graph)  # type: ignore[arg-type]  # there is one other kind


def stored_graph(
    part: "Callable[[str], Part]",
    folder: "Path",
    use: "FolderUse",
    remember: "Callable[[Mapping[str, PartSource]], None]" = lambda _: None,
) -> StoredGraph:
    """Open the graph of a version; only the values of its nodes are read.

    Args:
        part: Reads a part by name.
        folder: Folder of the model.
        use: Changes to where the graph folder is and to the resources that may be used.
        remember: Receives how a graph in memory is stored, after it was read.
    """
    if "graph" in part("nodes").values:
        from graphfcl.production.graph.folder_codec import StoredFolderGraph

        return StoredFolderGraph(part, folder, use)
    from graphfcl.production.graph.growing_codec import StoredGrowingGraph

    return StoredGrowingGraph(part, remember)
