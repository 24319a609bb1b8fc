"""The public names of ``graphfcl.graph``: type checkers and the package itself read this list."""

from graphfcl.graph.interfaces import AnyGraph as AnyGraph
from graphfcl.graph.build import build_graph as build_graph
from graphfcl.graph.tables.columns import TableColumns as TableColumns
from graphfcl.graph.convert import (
    from_edge_index as from_edge_index,
    from_pyg as from_pyg,
    from_scipy as from_scipy,
    to_pyg as to_pyg,
    to_scipy as to_scipy,
)
from graphfcl.graph.graph import (
    Graph as Graph,
    TextSettings as TextSettings,
    UNKNOWN as UNKNOWN,
)
from graphfcl.graph.networks import from_networkx as from_networkx, to_networkx as to_networkx
from graphfcl.graph.npz import (
    read_npz as read_npz,
    write_npz as write_npz,
)
from graphfcl.graph.tables.table import TableFiles as TableFiles
from graphfcl.graph.tables.queries import (
    open_tables as open_tables,
    read_queries as read_queries,
    read_query as read_query,
)
from graphfcl.graph.tables.reader import (
    from_frames as from_frames,
    read_tables as read_tables,
    write_tables as write_tables,
)
from graphfcl.graph.views import TextWeights as TextWeights
from graphfcl.graph.views import (
    FeatureView as FeatureView,
    Features as Features,
    KnownColumns as KnownColumns,
    Standardisation as Standardisation,
)
from graphfcl.graph.visible import (
    VisibleGraph as VisibleGraph,
    join_without_edges as join_without_edges,
)
from graphfcl.graph.interfaces import VisibleNodes as VisibleNodes

__all__: list[str]
