"""Source of a graph folder from tables of any size (see :mod:`graphfcl.graph.tables`).

Arrow reads the files in blocks of rows, as in the in-memory reader. Both readers therefore accept the same tables and
name the same lines in messages. DuckDB stores the ids and joins the ends of edges to them; it uses the disk when its
memory limit is reached.
"""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import compute

from graphfcl.errors import InputError
from graphfcl.graph.folder.source import STEP, EdgeBlock, GraphSource, Spool, TextBlock, TextIds, of_files
from graphfcl.graph.graph import Features
from graphfcl.graph.ids import LISTED as LISTED_IDS
from graphfcl.graph.ids import NODE_ID, normal, same_ids
from graphfcl.graph.tables.columns import TableColumns
from graphfcl.graph.tables.edge_table import LISTED, TYPE_NAMES, EdgeColumns, UnknownEnds, several_types
from graphfcl.graph.tables.node_columns import NodeColumns
from graphfcl.graph.tables.node_table import NodeFeatures, read_node_table
from graphfcl.graph.tables.table import Table, TableFiles
from graphfcl.graph.tables.values import weights_of
from graphfcl.runtime.cores import usable_cores

NODE_BYTES = 28  # bytes per node whose id is not its row
LEAST_BYTES, OWN_BYTES = 32 << 20, 80 << 20  # DuckDB: smallest memory limit; bytes that it needs beyond its limit
MOST_THREADS, THREAD_BYTES = 4, 64 << 20  # DuckDB: threads; memory per thread (a join of two threads needs > 48 MB)


def tables_source(
    folder: str | Path | TableFiles, columns: TableColumns | None = None, *, name: str | None = None
) -> Callable[[Spool], GraphSource]:
    """Return a function that opens the graph in a folder of tables, or in tables of :func:`open_tables`.

    The function reads ids and labels. Features and edges are read later.
    """
    files = TableFiles.of(folder)
    return partial(_open, files, columns or files.columns, name or files.name)


def _open(files: TableFiles, columns: TableColumns, name: str, spool: Spool) -> GraphSource:
    nodes, edges = files.open(columns.notation)
    requested, ends = NodeColumns.check(nodes, columns), EdgeColumns.choose(edges, columns)
    ids = TableIds(nodes, requested.id, spool)
    table = read_node_table(nodes, requested, columns, nodes.blocks)
    names = table.features.names
    scan = EdgeScan(edges, ends, as_numbers=ids.are_numbers)
    return GraphSource(
        name=name,
        made_of=files.made_of,
        nodes_where=str(nodes.path),
        edges_where=str(edges.path),
        node_count=ids.count,
        labels=table.labels,
        features=lambda: _features(nodes, table.features),
        edges=lambda spool: ids.edges(scan, spool),
        fingerprint=of_files(*files.files),
        ids=ids.values(),
        feature_count=names.size,
        sparse_features=table.features.words is not None,
        weighted=ends.weighted,
        repeated=ends.repeated,
        feature_names=names,
        text=table.features.text_settings(columns.min_nodes),
        notes=table.notes,
        edge_notes=lambda: [ends.note(edges, scan.row_count, scan.unknown)],
        cleaned=ids.cleaned + table.labels.changed,
        node_bytes=NODE_BYTES,
        columns=table.read_columns(ends),
    )


def _features(nodes: Table, features: NodeFeatures) -> Iterator[Features]:
    # Without feature columns, read the ids to get the number of rows in each block.
    for block in nodes.blocks(list(features.columns.of_table) or [features.columns.id]):
        yield features.rows(block)


class TableIds:
    """Ids of a table of nodes in DuckDB, all different: integers if Parquet declares them so, else cleaned texts.

    Attributes:
        count: Number of nodes.
        cleaned: Number of ids that were cleaned.
        are_numbers: Whether all ids are whole numbers.
    """

    def __init__(self, nodes: Table, column: str, spool: Spool) -> None:
        try:
            import duckdb
        except ImportError as error:
            raise InputError(
                "importing tables needs DuckDB: install it with `pip install 'graphfcl[duckdb]'`."
            ) from error
        settings: dict[str, Any] = {
            "temp_directory": str(spool.folder),
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            # The table of nodes is the smaller side of every join, but DuckDB does not know the number of edges.
            "disabled_optimizers": "join_order,build_side_probe_side",
        }
        self._database = duckdb.connect(config=settings)
        self._database.execute("SET enable_external_access = false; SET enable_progress_bar = false")
        self._limit(spool.memory)
        kind = nodes.schema.field(column).type
        self._stored_as = "VARCHAR" if nodes.is_csv or not pa.types.is_signed_integer(kind) else "BIGINT"
        self.are_numbers, self.count, self.cleaned = True, 0, 0
        try:
            with one_sentence():
                self._load(nodes, column)
        except InputError:
            for _ in nodes.blocks(nodes.columns):  # report an unreadable row first, as the in-memory reader does
                pass
            raise

    def _load(self, nodes: Table, column: str) -> None:
        """Read all ids. Errors are reported in the order in which the in-memory reader reports them."""
        self._database.execute(f"CREATE TABLE nodes (row BIGINT, id {self._stored_as})")
        fault: InputError | None = None
        for block in nodes.blocks([column]):
            ids = block.whole_numbers(column) if self._stored_as == "BIGINT" else None
            if ids is None:
                ids = block.text(column, "a node id")
            if self._stored_as == "VARCHAR" and not _is_clean(ids):
                texts = block.texts(column, "a node id").tolist()
                try:
                    cleaned = NODE_ID.clean_all(texts, block.place)
                except InputError as error:
                    cleaned, fault = texts, fault or error
                self.cleaned += sum(before != after for before, after in zip(texts, cleaned, strict=True))
                ids = pa.array(cleaned, pa.string())
            rows = np.arange(self.count, self.count + block.row_count)
            self._database.register("block", pa.table({"row": rows, "id": ids}))
            self._database.execute("INSERT INTO nodes SELECT * FROM block")
            self.count += block.row_count
            self.are_numbers = not block.says_text(column)
        if fault is not None:
            raise fault
        if self._value("SELECT count(DISTINCT id) FROM nodes") < self.count:
            self._refuse_same_id(nodes, column)
        if self._stored_as == "VARCHAR":
            # A text is a whole number if it is the usual spelling of an int64.
            whole = "coalesce(TRY_CAST(id AS BIGINT)::VARCHAR = id, false)"
            self.are_numbers &= self._value(f"SELECT coalesce(bool_and({whole}), true) FROM nodes")

    def _limit(self, memory: int) -> None:
        memory = max(LEAST_BYTES, memory - OWN_BYTES)
        threads = max(1, min(MOST_THREADS, usable_cores(), memory // THREAD_BYTES))
        self._database.execute(f"SET memory_limit = '{memory}B'; SET threads = {threads}")

    def _value(self, query: str) -> Any:
        return self._database.execute(query).fetchall()[0][0]

    def _refuse_same_id(self, nodes: Table, column: str) -> None:
        """Raise an InputError for ids that are equal after cleaning."""
        duplicates = self._database.execute(
            "SELECT id::VARCHAR, min(row, 2) AS rows, count(*) OVER () FROM nodes GROUP BY id HAVING count(*) > 1 "
            f"ORDER BY rows[2] LIMIT {LISTED_IDS}"
        ).fetchall()
        cleaned = {row: text for text, rows, _ in duplicates for row in rows}
        texts = {
            row: block.texts(column, None)[row - block.first]
            for block in nodes.blocks([column])
            for row in cleaned
            if block.first <= row < block.first + block.row_count
        }
        pairs = [(first, second) for _, (first, second), _ in duplicates]
        raise same_ids(duplicates[0][2], pairs, cleaned.__getitem__, texts.__getitem__, nodes.place)

    def values(self) -> np.ndarray | TextIds | None:
        """Return the ids in the form of :class:`GraphSource`."""
        if not self.are_numbers:
            return self._texts
        numbers = self._database.sql("SELECT id::BIGINT FROM nodes").to_arrow_table().column(0).to_numpy()
        return None if np.array_equal(numbers, np.arange(numbers.size)) else numbers

    def _texts(self) -> Iterator[TextBlock]:
        for batch in self._database.sql("SELECT id FROM nodes").to_arrow_reader(STEP):
            _, offsets, content = batch.column(0).cast(pa.large_string()).buffers()
            starts = np.frombuffer(offsets, np.int64, batch.num_rows + 1)
            yield TextBlock(np.frombuffer(content, np.uint8, int(starts[-1])), starts)

    def edges(self, scan: "EdgeScan", spool: Spool) -> Iterator[EdgeBlock]:
        """Yield the edges between rows of nodes, in any order, or in order if ``repeated`` is ``last``."""
        self._limit(NODE_BYTES * self.count + spool.memory)
        ends = scan.ends
        self._database.register("edges", pa.RecordBatchReader.from_batches(scan.schema, scan.batches()))
        joined = (
            "WITH ids AS NOT MATERIALIZED "
            f"(SELECT row, id::{'BIGINT' if scan.as_numbers else 'VARCHAR'} AS id FROM nodes) "
            "SELECT e.row, weight, s.row, t.row, CASE WHEN s.row IS NULL THEN source::VARCHAR END, "
            "CASE WHEN t.row IS NULL THEN target::VARCHAR END "
            "FROM edges e LEFT JOIN ids s ON source = s.id LEFT JOIN ids t ON target = t.id"
            + (" ORDER BY e.row" if ends.repeated == "last" else "")
        )
        with one_sentence():
            for batch in self._database.sql(joined).to_arrow_reader(STEP):
                numbers, weights = (column.to_numpy(zero_copy_only=False) for column in batch.columns[:2])
                rows = [self._rows(batch.column(end + 2), batch.column(end + 4)) for end in range(2)]
                kept = scan.without_unknown(numbers, rows, batch.columns[4:])
                if kept is not None:
                    rows, weights = [end[kept] for end in rows], weights[kept]
                if not scan.faults:
                    yield EdgeBlock(0, rows[0], rows[1], None if ends.weight is None else weights)
        self._database.close()
        scan.refuse_faults()

    def _rows(self, joined: Any, texts: Any) -> np.ndarray:
        """Return (m,) rows of nodes, -1 where there is none; ``texts`` are ids without an exact match."""
        rows = joined.fill_null(-1).to_numpy()
        places = np.flatnonzero(texts.is_valid().to_numpy(zero_copy_only=False))
        if places.size:
            cleaned = pa.array([normal(text) for text in texts.take(places).to_pylist()], pa.string())
            database = self._database.cursor()  # a second cursor, because the join is still running
            database.register("cleaned", pa.table({"place": places, "id": cleaned}))
            query = "SELECT place, row FROM cleaned JOIN nodes ON cleaned.id = nodes.id::VARCHAR"
            matches = database.sql(query).fetchnumpy()
            rows = rows.copy()
            rows[matches["place"]] = matches["row"]
        return rows


class EdgeScan:
    """Reads a table of edges for a join, and keeps the first error of each kind.

    DuckDB calls :meth:`batches`, which therefore must not raise.

    Attributes:
        faults: First error of each kind. Kinds are numbered in the order in which the in-memory reader checks them.
        as_numbers: Whether ids of nodes and both ends are integers. Otherwise ends are joined as texts.
        row_count: Number of rows that were read.
        unknown: Edges with an end that is not among the nodes.
    """

    UNREADABLE, TYPES, MISSING, UNKNOWN, WEIGHTS = 0, 1, (2, 3), 4, 5  # missing: source, target

    def __init__(self, edges: Table, ends: EdgeColumns, *, as_numbers: bool) -> None:
        self.ends, self.row_count, self.unknown = ends, 0, UnknownEnds()
        self._edges = edges
        types = [edges.schema.field(end).type for end in (ends.source, ends.target)]
        self.as_numbers = as_numbers and not edges.is_csv and all(map(pa.types.is_signed_integer, types))
        id_type = pa.int64() if self.as_numbers else pa.string()
        self.faults: dict[int, InputError] = {}
        self.schema = pa.schema(
            [("row", pa.int64()), ("source", id_type), ("target", id_type), ("weight", pa.float32())]
        )

    def batches(self) -> Iterator[Any]:
        """Yield (row, source, target, weight) of all edges, with null where a value is missing or wrong."""
        edges, ends = self._edges, self.ends
        kinds: dict[str, set[str]] = {name: set() for name in ends.others(edges) if name.lower() in TYPE_NAMES}
        columns = [ends.source, ends.target, *kinds, *([] if ends.weight is None else [ends.weight])]
        try:
            for block in edges.blocks(columns):
                for column, values in kinds.items():
                    values.update(block.text(column, None).unique().to_pylist())
                    if len(values) > 1:
                        self.faults.setdefault(self.TYPES, several_types(edges.path, column))
                rows = pa.array(np.arange(block.first, block.first + block.row_count))
                source, target, weights = self._ids(block, 0), self._ids(block, 1), self._weights(block)
                self.row_count += block.row_count
                yield from pa.table([rows, source, target, weights], schema=self.schema).to_batches()
        except InputError as error:
            self.faults.setdefault(self.UNREADABLE, error)

    def _ids(self, block: Table, end: int) -> Any:
        column = (self.ends.source, self.ends.target)[end]
        try:
            numbers = block.whole_numbers(column) if self.as_numbers else None
            if numbers is not None:
                return pa.array(numbers)
            texts = block.text(column, "a node id")
            try:
                texts.validate(full=not block.is_csv)  # Arrow itself checks UTF-8 only in CSV files
            except pa.ArrowInvalid:
                block.texts(column, "a node id")  # raises an error that names the row
            return texts
        except InputError as error:
            self.faults.setdefault(self.MISSING[end], error)
            return pa.nulls(block.row_count, self.schema.field("source").type)

    def _weights(self, block: Table) -> Any:
        if self.ends.weight is not None:
            try:
                return pa.array(weights_of(block, self.ends.weight))
            except InputError as error:
                self.faults.setdefault(self.WEIGHTS, error)
        return pa.nulls(block.row_count, pa.float32())

    def without_unknown(self, numbers: np.ndarray, rows: list[np.ndarray], texts: list[Any]) -> np.ndarray | None:
        """Return the positions of edges with two known ends; None if all have them.

        Args:
            numbers: Rows of the edges in the table.
            rows: Rows of both ends, -1 where there is no node.
            texts: Ids of unknown ends, null elsewhere.
        """
        is_unknown = [
            (end < 0) & ids.is_valid().to_numpy(zero_copy_only=False) for end, ids in zip(rows, texts, strict=True)
        ]
        wrong = np.flatnonzero(is_unknown[0] | is_unknown[1])
        if not wrong.size:
            return None
        first = wrong[np.argsort(numbers[wrong])[:LISTED]]
        self.unknown.add(numbers[first], [texts[0 if is_unknown[0][at] else 1][int(at)].as_py() for at in first])
        self.unknown.count += wrong.size - first.size
        return np.delete(np.arange(numbers.size), wrong)

    def refuse_faults(self) -> None:
        if self.unknown.count and self.ends.unknown_ends == "refuse":
            self.faults[self.UNKNOWN] = self.unknown.refuse(self._edges, self.row_count)
        for kind in sorted(self.faults):
            raise self.faults[kind]


def _is_clean(texts: Any) -> bool:
    """Tell quickly that no text needs cleaning: all are ASCII without control characters and outer spaces."""
    short = (compute.max(compute.binary_length(texts)).as_py() or 0) <= NODE_ID.longest
    return short and compute.all(compute.match_substring_regex(texts, r"^[!-~]([ -~]*[!-~])?$"), min_count=0).as_py()


@contextmanager
def one_sentence() -> Iterator[None]:
    """Turn errors of DuckDB into the errors that other parts of an import raise."""
    import duckdb

    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise InputError(
            "the ids do not fit into --memory and the free space of the disk: give more memory or free some space."
        ) from error
    except duckdb.IOException as error:
        codes = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        code = next((code for code in codes if os.strerror(code) in str(error)), errno.EIO)
        raise OSError(code, os.strerror(code)) from error
