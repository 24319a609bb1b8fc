"""The public names of ``graphfcl.methods.blocks``: type checkers and the package itself read this list."""

from graphfcl.methods.blocks.interface import (
    MemoryNeed as MemoryNeed,
    NodeTables as NodeTables,
    RowBlock as RowBlock,
    Table as Table,
    UNLABELLED as UNLABELLED,
)
from graphfcl.methods.blocks.opening import open_tables as open_tables

__all__: list[str]
