"""The tables that a learner's latest scores rest on."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from graphfcl.methods.blocks.stored_table import remove_table

NAME = re.compile(r"[a-z0-9-]+-[0-9a-f]{16}")  # of a table's folder, and of nothing outside the work folder


class LastTables:
    """Removes the tables of scores when those of the next ones are complete, so that a run keeps one session on disk.

    Only what this learner was asked for is removed. A copy of the learner begins with none; a run that goes on after
    it was stopped says which there were (:meth:`recall`).
    """

    def __init__(self) -> None:
        self.names: tuple[str, ...] = ()

    def recall(self, names: Iterable[str]) -> None:
        """What ``names`` was in the process that a run goes on from; what is no name of a table is passed over."""
        self.names = tuple(name for name in names if NAME.fullmatch(name))

    def replace_by(self, folders: Sequence[Path]) -> None:
        """Remove the last tables that are not among these, which are complete. All lie in one work folder."""
        kept = tuple(folder.name for folder in folders)
        for name in set(self.names) - set(kept) if folders else ():
            remove_table(folders[0].parent / name)
        self.names = kept
