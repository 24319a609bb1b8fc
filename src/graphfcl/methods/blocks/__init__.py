"""What methods compute of a graph folder: column phases and row phases over files, in bounded memory.

Read in this order: ``tile_files`` (one file), ``tables`` (an n × D array in such files), ``work_folder`` (where they
lie, and under which keys), ``source`` (a visible graph as tasks open it), ``column_phases`` (hops and smoothing: a map
over columns), ``row_phases`` (a map over row blocks, and sums in a fixed order), ``folder_inputs`` (what a learner has
of all that), ``last_tables`` (what is removed when the next session is complete).
"""
