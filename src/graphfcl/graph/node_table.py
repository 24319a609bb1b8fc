"""Labels, features and notes of a table of nodes, by one plan for both readers, in memory and in blocks."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from graphfcl.errors import InputError, quoted
from graphfcl.graph.column_names import SOURCE_NAMES, TARGET_NAMES, WEIGHT_NAMES, ReadColumns, TableColumns
from graphfcl.graph.graph import UNKNOWN
from graphfcl.graph.label_coder import LabelCoder
from graphfcl.graph.labels import CleanLabels, bare_name
from graphfcl.graph.node_columns import RequestedColumns
from graphfcl.graph.node_features import Blocks, NodeFeatures
from graphfcl.graph.node_scan import scan_nodes
from graphfcl.graph.table import Table

TYPE_NAMES = ("type", "relation", "edge_type")


@dataclass(frozen=True)
class EdgeColumns:
    """The columns of a table of edges that are read."""

    source: str
    target: str
    weight: str | None

    @classmethod
    def choose(cls, edges: Table, columns: TableColumns) -> "EdgeColumns":
        return cls(
            edges.choose(columns.source, SOURCE_NAMES, "edge sources"),
            edges.choose(columns.target, TARGET_NAMES, "edge targets"),
            edges.find(columns.weight, WEIGHT_NAMES, "weights"),
        )

    @classmethod
    def usual(cls) -> "EdgeColumns":
        """What columns are called where no table of edges was read."""
        return cls(SOURCE_NAMES[0], TARGET_NAMES[0], None)

    def others(self, edges: Table) -> list[str]:
        return [column for column in edges.columns if column not in (self.source, self.target, self.weight)]

    def note(self, edges: Table) -> list[str]:
        """What is said of columns that say nothing."""
        other = self.others(edges)
        return [f"{edges.path.name}: the columns {', '.join(other)} were not used."] if other else []


@dataclass(frozen=True, eq=False)
class NodeTable:
    """What a table of nodes holds besides ids. notes: which columns were used, and warnings.

    missing: labels that mean unknown; None: the usual ones.
    """

    labels: CleanLabels
    features: NodeFeatures
    notes: tuple[str, ...]
    missing: tuple[str, ...] | None = None

    def read_columns(self, ends: EdgeColumns) -> ReadColumns:
        """What later tables of the same form are read by."""
        plan = self.features.columns
        vectors = (*plan.vectors, *(path.stem for path in plan.files))
        return ReadColumns(
            plan.id,
            plan.label,
            ends.source,
            ends.target,
            ends.weight,
            text=plan.text,
            dates=plan.dates,
            categories=plan.categories,
            vectors=vectors,
            missing=self.missing,
            unused=tuple(name for name, _ in plan.left_out),
        )


def read_node_table(nodes: Table, asked: RequestedColumns, columns: TableColumns, blocks: Blocks) -> NodeTable:
    """Reads labels, then looks at all other columns once, and plans."""
    labels = _labels(nodes, asked.label, blocks, columns)
    others = [column for column in nodes.columns if column not in (asked.id, asked.label)]
    facts = scan_nodes(blocks(others) if others else iter(()), nodes, asked, _bare_numbers(labels))
    plan = asked.plan(nodes, facts.columns)
    features = NodeFeatures.of(plan, facts, nodes, blocks, labels.numbers.size)
    notes = (plan.note(nodes), *facts.warnings(plan.of_table))
    return NodeTable(labels, features, notes, columns.names("missing"))


def _bare_numbers(labels: CleanLabels) -> np.ndarray:
    """(n,) class numbers in which names that differ only by case or accents are one class.

    What gives labels away gives them away whatever their spelling.
    """
    place_of: dict[str, int] = {}
    places = [place_of.setdefault(bare_name(name), len(place_of)) for name in labels.names]
    return np.array([*places, UNKNOWN], dtype=np.int64)[labels.numbers]


def _labels(nodes: Table, column: str, blocks: Blocks, columns: TableColumns) -> CleanLabels:
    coder, read_numbers = LabelCoder(), False
    for block in blocks([column]):
        read_numbers = not block.says_text(column)
        found = block.different_labels(column)
        if isinstance(found, tuple):
            coder.add(*found)
        else:
            coder.add_numbers(found)
    return coder.finish(str(nodes.path), nodes.place, columns.names("missing"), read_numbers=read_numbers)


def several_types(path: Path, column: str) -> InputError:
    """A column names more than one type of edges."""
    return InputError(
        f"{path}: column {column!r} names several types of edges; heterogeneous graphs are not supported: keep one "
        "type, or drop the column to treat all alike."
    )


def unknown_end(edges: Table, row: int, node: Any) -> InputError:
    """An edge leads to a node that has no row."""
    return InputError(
        f"{edges.path}, {edges.line(row)}: the edge leads to node {quoted(node)}, which is not among the nodes: add "
        "the node or drop the edge."
    )
