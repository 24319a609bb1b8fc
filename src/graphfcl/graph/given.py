"""What somebody hands in where a graph is needed."""

import sys
from pathlib import Path

import numpy as np
from scipy import sparse

from graphfcl.errors import InputError
from graphfcl.graph.any_graph import AnyGraph
from graphfcl.graph.build import warn_of_others
from graphfcl.graph.convert import from_pyg
from graphfcl.graph.folder.reader import GraphFolder
from graphfcl.graph.folder_graph import FolderGraph
from graphfcl.graph.frames import is_frame, library_of
from graphfcl.graph.graph import Graph
from graphfcl.graph.networks import from_networkx


def is_graph(given: object) -> bool:
    """Whether something is a graph of this package, in memory or on the disk."""
    return isinstance(given, Graph | FolderGraph)


def as_graph(given: object, who: str) -> AnyGraph:
    """A graph as it is; PyG data and networkx graphs with their usual names as one; anything else is an error.

    who: what needs it, for the message.
    """
    if isinstance(given, Graph | FolderGraph):
        return given
    # Whoever hands in such an object has imported its library.
    pyg, networkx = sys.modules.get("torch_geometric.data"), sys.modules.get("networkx")
    if pyg is not None and isinstance(given, pyg.Data | pyg.HeteroData):
        return _made(from_pyg(given))
    if networkx is not None and isinstance(given, networkx.Graph):
        return _made(from_networkx(given))
    library, kind = library_of(given), type(given).__name__
    said = kind if library == "builtins" else f"{kind} of {library}"
    is_dataset = pyg is not None and isinstance(given, pyg.Dataset)
    hint = "give one graph of it, such as dataset[0]" if is_dataset else _hint(given)
    raise InputError(f"{who} needs a graph, and got {said}: {hint}.")


def _made(graph: Graph) -> Graph:
    """A graph that nobody sees, nor its notes."""
    warn_of_others(graph.notes)
    return graph


def _hint(given: object) -> str:
    """How to make a graph of something."""
    if isinstance(given, tuple) and given and isinstance(given[0], Graph):
        return "load_dataset returns the graph and a protocol, give the first of them"
    if is_frame(given):
        return "from_frames(nodes, edges) makes one of the tables of nodes and edges"
    if sparse.issparse(given) or isinstance(given, np.ndarray):
        return "from_scipy(adjacency, features, labels) makes one"
    if isinstance(given, str | Path):
        return "load_dataset(name) reads one by its name or its path"
    if isinstance(given, GraphFolder):
        return "FolderGraph(folder, means) makes one that stays on the disk"
    return "from_frames, from_pyg, from_networkx, from_scipy and load_dataset make one"
