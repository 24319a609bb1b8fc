"""A graph in memory → a graph folder."""

from pathlib import Path

from graphfcl.graph.folder.building import LEAST_ROOM, LIBRARIES, build_folder
from graphfcl.graph.folder.reader import GraphFolder
from graphfcl.graph.folder.source import of_graph
from graphfcl.graph.graph import Graph

NODE_BYTES = 64


def write_folder(graph: Graph, out: str | Path) -> GraphFolder:
    """Write a graph folder. Besides the graph it takes about 64 bytes a node."""
    memory = LIBRARIES + 4 * LEAST_ROOM + NODE_BYTES * graph.node_count
    return build_folder(of_graph(graph), out, memory=memory)
