"""Tables of all nodes of a visible graph, in memory or on disk, behind one interface.

``interface`` says what tables do; ``opening`` picks the implementation: ``resident`` (tensors on a device) or
``folder_tables`` (files, in bounded memory). Of a graph on disk, read further in this order: ``tile_files`` (one file),
``stored_table`` (an n × D array in such files), ``work_folder`` (where they lie, and under which keys), ``source`` (a
visible graph as tasks open it), ``column_phases`` (hops and smoothing: a map over columns; degrees and factors),
``row_tasks`` (tables, maps over row blocks, and sums in a fixed order), ``damaged_files`` (what is computed again).
"""

from graphfcl.runtime.lazy_names import names_of_stub

__all__, __getattr__, __dir__ = names_of_stub(__name__, __file__)
