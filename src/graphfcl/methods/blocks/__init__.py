"""Tables of all nodes of a visible graph, in memory or on disk, behind one interface.

``interface`` says what tables do; ``opening`` picks the implementation: ``resident`` (tensors on a device) or
``folder_tables`` (files, in bounded memory). Of a graph on disk, read further in this order: ``tile_files`` (one file),
``stored_table`` (an n × D array in such files), ``work_folder`` (where they lie, and under which keys), ``source`` (a
visible graph as tasks open it), ``column_phases`` (hops and smoothing: a map over columns), ``row_tasks`` (a map over
row blocks, and sums in a fixed order), ``folder_rows`` (degrees and factors), ``last_tables`` (what is removed when the
next session is complete).
"""

from typing import TYPE_CHECKING

from graphfcl.lazy_names import lazy_names

if TYPE_CHECKING:  # stored answers of a model are read without torch
    from graphfcl.methods.blocks.interface import UNLABELLED, Held, NodeTables, RowBlock, Table
    from graphfcl.methods.blocks.opening import open_tables

__all__ = ["UNLABELLED", "Held", "NodeTables", "RowBlock", "Table", "open_tables"]

_INTERFACE = dict.fromkeys(("UNLABELLED", "Held", "NodeTables", "RowBlock", "Table"), "interface")
__getattr__ = lazy_names(__name__, {"open_tables": "opening", **_INTERFACE})
