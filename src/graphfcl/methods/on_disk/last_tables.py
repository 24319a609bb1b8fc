"""The tables that a learner's latest scores rest on."""

from graphfcl.methods.on_disk.tables import Table


class LastTables:
    """Removes the tables of scores when those of the next ones are complete, so that a run keeps one session on disk.

    Only what this learner was asked for is removed. A copy of the learner begins with none.
    """

    def __init__(self) -> None:
        self._tables: tuple[Table, ...] = ()

    def replace_by(self, *tables: Table) -> None:
        """Remove the last ones that are not among these, which are complete."""
        kept = {table.folder for table in tables}
        for table in self._tables:
            if table.folder not in kept:
                table.remove()
        self._tables = tables
