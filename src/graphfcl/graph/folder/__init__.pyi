"""The public names of ``graphfcl.graph.folder``: type checkers and the package itself read this list."""

from graphfcl.graph.folder.building import (
    build_folder as build_folder,
    write_folder as write_folder,
)
from graphfcl.graph.folder.manifest import is_graph_folder as is_graph_folder
from graphfcl.graph.folder.reader import GraphFolder as GraphFolder
from graphfcl.graph.folder.rows import Neighbours as Neighbours

__all__: list[str]
