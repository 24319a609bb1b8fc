"""The columns of a table of edges, and notes and errors about its rows, for both readers (in memory and in blocks)."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from graphfcl.errors import InputError, counted, quoted
from graphfcl.graph.tables.columns import SOURCE_NAMES, TARGET_NAMES, WEIGHT_NAMES, TableColumns
from graphfcl.graph.tables.table import Table

TYPE_NAMES = ("type", "relation", "edge_type")
LISTED = 5  # edges with unknown ends that a message lists


@dataclass(frozen=True)
class EdgeColumns:
    """The columns of a table of edges that are read; fields are as in :class:`TableColumns`."""

    source: str = SOURCE_NAMES[0]
    target: str = TARGET_NAMES[0]
    weight: str | None = None
    repeated: str = "max"
    unknown_ends: str = "refuse"

    @classmethod
    def choose(cls, edges: Table, columns: TableColumns) -> "EdgeColumns":
        source = edges.choose(columns.source, SOURCE_NAMES, "edge sources")
        target = edges.choose(columns.target, TARGET_NAMES, "edge targets")
        weight = edges.find(columns.weight, WEIGHT_NAMES, "weights")
        if columns.repeated == "count":
            if columns.weight is not None:
                raise InputError("repeated=count counts rows and reads no weights: leave weight= or repeated= out.")
            weight = None
        return cls(source, target, weight, columns.repeated, columns.unknown_ends)

    @property
    def weighted(self) -> bool:
        """Whether edges have weights."""
        return self.weight is not None or self.repeated in ("sum", "count")

    def others(self, edges: Table) -> list[str]:
        return [column for column in edges.columns if column not in (self.source, self.target, self.weight)]

    def note(self, edges: Table, rows: int, unknown: "UnknownEnds") -> str:
        """Return a note on the number of rows, skipped rows and unused columns."""
        skipped = f"; {unknown.count:,} skipped {unknown.listed(edges)}" if unknown.count else ""
        other = self.others(edges)
        unused = f"; not used: {', '.join(other)}" if other else ""
        return f"{edges.path.name}: {counted(rows, 'row')}{skipped}{unused}."


@dataclass
class UnknownEnds:
    """Edges with an end that is not among the nodes: their number, and row and id of the first ones."""

    count: int = 0
    first: list[tuple[int, str]] = field(default_factory=list)

    def add(self, rows: np.ndarray, ids: Iterable[str]) -> None:
        """Add edges in any order, by their rows in the table and the id of the unknown end (of two, the source)."""
        self.count += rows.size
        self.first = sorted([*self.first, *zip(rows.tolist(), ids, strict=True)])[:LISTED]

    def listed(self, edges: Table) -> str:
        more = [f"{self.count - LISTED:,} more"] if self.count > LISTED else []
        return f"with an end that is not among the nodes ({', '.join([*self._first(edges), *more])})"

    def _first(self, edges: Table) -> list[str]:
        lines = edges.lines([row for row, _ in self.first])
        return [f"{line} {quoted(node)}" for line, (_, node) in zip(lines, self.first, strict=True)]

    def refuse(self, edges: Table, rows: int) -> InputError:
        """Make the error for these edges; ``rows`` is the number of rows of the table."""
        if self.count == rows > LISTED:
            return InputError(
                f"{edges.path}: no edge joins two nodes ({', '.join(self._first(edges))}): check that the table of "
                "nodes has rows, and that both tables write ids alike."
            )
        return InputError(
            f"{edges.path}: {counted(self.count, 'edge')} {self.listed(edges)}: add the nodes, or leave such edges out "
            "with unknown_ends=skip."
        )


def several_types(path: Path, column: str) -> InputError:
    """Make the error for a column with more than one type of edges."""
    return InputError(
        f"{path}: column {column!r} names several types of edges; heterogeneous graphs are not supported: keep one "
        "type, or drop the column to treat all alike."
    )
