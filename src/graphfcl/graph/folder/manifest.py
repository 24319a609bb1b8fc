"""The manifest of a graph folder: its metadata and the checksums of its files."""

import json
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from graphfcl.errors import InputError
from graphfcl.graph.folder.blocks import DIGEST, FileEntry
from graphfcl.graph.ids import whole_number
from graphfcl.graph.tables.columns import ReadColumns
from graphfcl.runtime.files import canonical_json, read_bytes, sha256_of, write_bytes

MANIFEST = "manifest.json"
FORMAT, VERSION = "graphfcl graph folder", 2
ID_KINDS = ("range", "numbers", "texts")
DTYPES = ("<i8", "<i4", "<u8", "<f4", "|u1")

INDPTR, INDICES, WEIGHTS = "edges.indptr", "edges.indices", "edges.weights"
ROWS = "features.rows"
FEATURE_INDPTR, FEATURE_INDICES, FEATURE_VALUES = "features.indptr", "features.indices", "features.values"
LABELS = "labels"
IDS, ID_TEXT, ID_STARTS, ID_KEYS, ID_ORDER = "ids", "ids.text", "ids.starts", "ids.keys", "ids.order"
NAME_TEXT, NAME_STARTS = "feature_names.text", "feature_names.starts"
ORDER_KEY = "order.key"
KEY_BYTES = 32
ALWAYS = (INDPTR, INDICES, LABELS)  # files of every graph folder, which identify a folder with a damaged manifest


@dataclass(frozen=True)
class Manifest:
    """Metadata of a graph folder. Fields that are not listed here are as in :class:`graphfcl.graph.Graph`.

    Args:
        nodes: Number of nodes.
        edges: Number of undirected edges.
        features: Number of feature columns.
        ids: Kind of the ids, one of ``ID_KINDS``.
        hash_seed: Seed of the hash by which ids in text form are found.
        feature_names: Whether the features have names.
        min_nodes: As in :class:`TextSettings`, if features are word counts.
        source: What the folder was imported from.
        files: Entry of each file.
        beside: As in :class:`TextSettings`.
    """

    name: str
    nodes: int
    edges: int
    features: int
    weighted: bool
    sparse_features: bool
    class_names: tuple[str, ...]
    ids: str
    hash_seed: int
    feature_names: bool
    min_nodes: int | None
    source: str
    notes: tuple[str, ...]
    cleaned: int
    files: dict[str, FileEntry]
    beside: tuple[int, ...] = ()
    columns: dict[str, Any] | None = None
    integer_classes: bool = False
    column_min_nodes: int = 1

    @property
    def byte_count(self) -> int:
        """Bytes of all files except the manifest."""
        return sum(entry.byte_count for entry in self.files.values())

    @cached_property
    def digest(self) -> str:
        """SHA-256 of counts, class names and checksums. The name of the graph and its source are not part of it."""
        values = _as_json(self)
        for name in ("name", "source", "notes", "cleaned", "columns", "integer_classes"):
            values.pop(name, None)
        return sha256_of(canonical_json(values))

    def expected_files(self) -> dict[str, tuple[str, int | None]]:
        """Return type and number of items of each required file; None if the number depends on the content."""
        nodes, row = self.nodes, row_type(self.nodes)
        expected: dict[str, tuple[str, int | None]] = {
            INDPTR: ("<i8", nodes + 1),
            INDICES: (row, 2 * self.edges),
            LABELS: ("<i4", nodes),
            ORDER_KEY: ("|u1", KEY_BYTES),
        }
        if self.weighted:
            expected[WEIGHTS] = ("<f4", 2 * self.edges)
        if self.sparse_features:
            expected |= {
                FEATURE_INDPTR: ("<i8", nodes + 1),
                FEATURE_INDICES: ("<i4", None),
                FEATURE_VALUES: ("<f4", None),
            }
        else:
            expected[ROWS] = ("<f4", nodes * self.features)
        if self.ids == "numbers":
            expected |= {IDS: ("<i8", nodes), ID_KEYS: ("<i8", nodes), ID_ORDER: (row, nodes)}
        if self.ids == "texts":
            expected |= {ID_TEXT: ("|u1", None), ID_STARTS: ("<i8", nodes + 1)}
            expected |= {ID_KEYS: ("<u8", nodes), ID_ORDER: (row, nodes)}
        if self.feature_names:
            expected |= {NAME_TEXT: ("|u1", None), NAME_STARTS: ("<i8", self.features + 1)}
        return expected


def row_type(count: int) -> str:
    """Return the integer type for row numbers below ``count``, 4 bytes if that is enough."""
    return "<i4" if count < 2**31 else "<i8"


def is_graph_folder(path: str | Path) -> bool:
    """Tell by its manifest or files whether a path is a graph folder, complete or damaged."""
    try:
        with open(Path(path) / MANIFEST, "rb") as file:
            if FORMAT.encode() in file.read(256):
                return True
    except OSError:
        pass
    return all((Path(path) / name).is_file() for name in ALWAYS)


def _as_json(manifest: Manifest) -> dict[str, Any]:
    """Return values for JSON, without optional fields at their default."""
    values = asdict(manifest)
    optional = ("beside", "columns", "integer_classes")
    if manifest.column_min_nodes == 1:
        del values["column_min_nodes"]
    return {name: value for name, value in values.items() if value or name not in optional}


def write_manifest(folder: Path, manifest: Manifest) -> None:
    values = {"format": FORMAT, "version": VERSION, **_as_json(manifest)}
    values["checksum"] = sha256_of(canonical_json(values))
    write_bytes(folder / MANIFEST, json.dumps(values, indent=1).encode())


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a folder; an InputError if it is missing, changed or of another version."""
    path = folder / MANIFEST
    content = read_bytes(path, "the manifest")
    try:
        values = json.loads(content)
        if not isinstance(values, dict) or values.pop("format", None) != FORMAT:
            raise InputError(f"{path} is not the manifest of a graph folder: name a folder that `data import` made.")
        version = values.pop("version", None)
        if version != VERSION:
            raise InputError(
                f"{path} has version {version!r} of the format, this program reads {VERSION}: import the graph again."
            )
        checksum = values.pop("checksum", None)
        if checksum != sha256_of(canonical_json({"format": FORMAT, "version": version, **values})):
            raise InputError(f"{path} was changed (it has another checksum): copy it again or import the graph again.")
        return _checked(values)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} is damaged: copy it again or import the graph again.") from error


def _checked(values: dict[str, Any]) -> Manifest:
    """Make a manifest from values; a ValueError, TypeError or KeyError if they are inconsistent."""
    entries = values.pop("files")
    _need(isinstance(entries, dict))
    files = {name: _entry(entry) for name, entry in entries.items()}
    for name in ("class_names", "notes"):
        _need(isinstance(values[name], list) and all(isinstance(text, str) for text in values[name]))
        values[name] = tuple(values[name])
    groups = values.pop("beside", [])
    _need(isinstance(groups, list) and all(type(width) is int and width > 0 for width in groups))
    manifest = Manifest(**values, files=files, beside=tuple(groups))
    _need(not groups or (manifest.min_nodes is not None and sum(groups) <= manifest.features))
    _need(manifest.columns is None or bool(ReadColumns.from_json(manifest.columns)))
    for count in (manifest.nodes, manifest.edges, manifest.features, manifest.cleaned, manifest.hash_seed):
        _need(type(count) is int and 0 <= count < 2**62)
    _need(manifest.min_nodes is None or (type(manifest.min_nodes) is int and manifest.min_nodes >= 0))
    _need(type(manifest.column_min_nodes) is int and 1 <= manifest.column_min_nodes < 2**62)
    for truth in (manifest.weighted, manifest.sparse_features, manifest.feature_names, manifest.integer_classes):
        _need(type(truth) is bool)
    _need(not manifest.integer_classes or all(whole_number(name) is not None for name in manifest.class_names))
    _need(manifest.ids in ID_KINDS and isinstance(manifest.name, str) and isinstance(manifest.source, str))
    for name, (dtype, items) in manifest.expected_files().items():
        _need(files[name].dtype == dtype and (items is None or files[name].items == items))
    _need(files.keys() == manifest.expected_files().keys())
    return manifest


def _entry(values: dict[str, Any]) -> FileEntry:
    entry = FileEntry(values["dtype"], values["items"], values["block"], tuple(values["checksums"]))
    _need(entry.dtype in DTYPES and type(entry.items) is int and 0 <= entry.items < 2**62)
    _need(type(entry.block) is int and entry.block > 0 and entry.block % 8 == 0)
    _need(len(entry.checksums) == -(-entry.byte_count // entry.block))
    _need(all(isinstance(text, str) and len(text) == 2 * DIGEST for text in entry.checksums))
    return entry


def _need(holds: bool) -> None:
    if not holds:
        raise ValueError("the manifest is inconsistent")
