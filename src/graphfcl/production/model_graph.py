"""The graph that a model lives on: in memory, or a graph folder that stays on the disk."""

from typing import TypeAlias

from graphfcl.production.folder_model_graph import FolderModelGraph
from graphfcl.production.growing_graph import GrowingGraph

ModelGraph: TypeAlias = GrowingGraph | FolderModelGraph
