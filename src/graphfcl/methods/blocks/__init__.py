"""Tables of all nodes of a visible graph, in memory or on disk, behind one interface.

``interface`` defines what tables do. ``opening`` chooses the implementation: ``resident`` (tensors on a device) or
``folder_tables`` (files, in bounded memory). To understand graphs on disk, read the modules in this order:

1. ``tile_files``: one file;
2. ``stored_table``: an n × D array in such files;
3. ``work_folder``: the folder of these files, and their keys;
4. ``source``: a visible graph as worker tasks open it;
5. ``column_phases``: hops and smoothing, computed column by column;
6. ``row_tasks``: functions of chunks of rows, and sums in a fixed order;
7. ``damaged_files``: recomputation after a file was damaged.
"""

from graphfcl.runtime.lazy_names import names_of_stub

__all__, __getattr__, __dir__ = names_of_stub(__name__, __file__)
