"""Reddit posts by community, in two published versions with different graphs. Do not compare results between them.

``reddit`` is GraphSAGE's version, which the HAG-Meta paper uses (11.6 million edges): ``reddit-G.json`` (node-link JSON
whose links are pairs of positions in its node list), ``reddit-feats.npy``, ``reddit-id_map.json`` and
``reddit-class_map.json``. ``reddit-dgl`` is the larger version that PyG and DGL load (57 million edges):
``reddit_data.npz`` and ``reddit_graph.npz``.
"""

import json
import mmap
import re
from pathlib import Path
from typing import Any

import numpy as np

from graphfcl.datasets.dataset import Dataset
from graphfcl.errors import InputError
from graphfcl.graph import UNKNOWN, Graph, build_graph
from graphfcl.graph.build import adjacency_from_edges
from graphfcl.graph.npz import read_arrays
from graphfcl.runtime.files import read_bytes
from graphfcl.stream import Protocol

PROTOCOL = Protocol(base=11, pseudo_novel=10, novel=20, way=2, shot=3, sessions=9)
LINK_KEYS = {b"source", b"target", b"test_removed", b"train_removed"}
CHUNK = 64 * 2**20
ONLY_DIGITS = bytes(byte if chr(byte).isdigit() else ord(" ") for byte in range(256))


def read_links(path: Path) -> tuple[np.ndarray, bytes]:
    """Return (links, 2) node positions of node-link JSON, and the JSON without its links.

    To read millions of links fast, each chunk is scanned for numbers: only ``source`` and ``target`` have digits.
    """
    damaged = InputError(f"{path} has no list 'links' or is cut short: download it again.")
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            start = content.find(b'"links"')
            opening = content.find(b"[", max(start, 0))
            closing = content.find(b"]", max(opening, 0))
            if min(start, opening, closing) < 0:
                raise damaged
            position, chunks = opening + 1, [np.zeros(0, dtype=np.int64)]
            while position < closing:
                end = content.find(b"}", min(position + CHUNK, closing), closing) + 1 or closing
                chunks.append(_numbers_of_links(content[position:end], path))
                position = end
            return np.concatenate(chunks).reshape(-1, 2), content[: opening + 1] + content[closing:]
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise damaged from error


def _numbers_of_links(links: bytes, path: Path) -> np.ndarray:
    if not links.strip():  # white space after the last link, which numpy would read as -1
        return np.zeros(0, dtype=np.int64)
    keys = set(re.findall(rb'"([^"]*)"', links[:100_000]))
    if not keys <= LINK_KEYS:
        unknown = sorted(keys - LINK_KEYS)[0].decode(errors="replace")
        raise InputError(f"{path}: a link has {unknown!r}; GraphSAGE's form has source and target as whole numbers.")
    if b"-" in links or b"." in links:
        raise InputError(f"{path}: a link leads to a node that is not a position in the list: download it again.")
    numbers = np.fromstring(links.translate(ONLY_DIGITS).decode("ascii"), dtype=np.int64, sep=" ")
    if numbers.size != 2 * links.count(b"{"):
        raise InputError(f"{path}: a link has no source or no target: download it again.")
    return numbers


def _json(path: Path, content: bytes | None = None) -> Any:
    raw = read_bytes(path, "the file") if content is None else content
    try:
        return json.loads(raw)
    except ValueError as error:
        raise InputError(f"{path} is not JSON or is cut short: download it again.") from error


def _whole_numbers(path: Path) -> dict[str, int]:
    """Read a JSON object whose values are integers."""
    content = _json(path)
    if not isinstance(content, dict):
        raise InputError(f"{path} is not a JSON object of node ids: download it again.")
    wrong = [value for value in content.values() if not isinstance(value, int)]
    if wrong and isinstance(wrong[0], list):
        raise InputError(f"{path} has lists of classes (multi-label); choose one class per node.")
    if wrong:
        raise InputError(f"{path}: the value {wrong[0]!r} is not a whole number: download it again.")
    return content


def read_graphsage(folder: Path, stem: str, name: str) -> Graph:
    """Read the graph in GraphSAGE's four files. A node with features that is not in the graph has no edges."""
    graph_file, feature_file = folder / f"{stem}-G.json", folder / f"{stem}-feats.npy"
    map_file, class_file = folder / f"{stem}-id_map.json", folder / f"{stem}-class_map.json"
    id_map, class_map = _whole_numbers(map_file), _whole_numbers(class_file)
    try:
        features = np.load(feature_file, allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise InputError(f"{feature_file} is truncated, pickled or not a .npy file: download it again.") from error
    if features.ndim != 2:
        raise InputError(f"{feature_file} has shape {features.shape}; it must have one row per node.")
    links, rest = read_links(graph_file)
    try:
        positions = [str(node["id"]) for node in _json(graph_file, rest)["nodes"]]
    except (KeyError, TypeError) as error:
        raise InputError(f"{graph_file} has no list 'nodes' with an 'id' each: download it again.") from error
    if links.size and links.max() >= len(positions):
        raise InputError(f"{graph_file}: a link leads to node {links.max()}, but there are {len(positions)} nodes.")
    count = features.shape[0]
    rows = np.fromiter(id_map.values(), dtype=np.int64, count=len(id_map))
    if rows.size and not 0 <= rows.min() <= rows.max() < count:
        raise InputError(f"{map_file}: a node has row {rows.max()}, but {feature_file.name} has {count} rows.")
    if np.unique(rows).size != rows.size:
        raise InputError(f"{map_file}: two nodes have the same row: download it again.")
    classes = [class_map.get(node, UNKNOWN) for node in id_map]
    ids = np.array([f"row-{row}" for row in range(count)], dtype=object)
    labels = np.full(count, UNKNOWN, dtype=np.int64)
    ids[rows], labels[rows] = list(id_map), classes
    row_of_position = np.array([id_map.get(node, -1) for node in positions], dtype=np.int64)
    ends = row_of_position[links]
    ends = ends[(ends >= 0).all(axis=1)]
    adjacency, notes = adjacency_from_edges(ends[:, 0], ends[:, 1], None, count, str(graph_file))
    return build_graph(adjacency, features, labels, node_ids=ids, name=name, where=str(feature_file), notes=notes)


def _load_dgl(folder: Path, _: dict[str, str]) -> Graph:
    data_file, graph_file = (folder / name for name in REDDIT_DGL.files)
    data, links = read_arrays(data_file), read_arrays(graph_file)
    needed = (data_file, data, ("feature", "label")), (graph_file, links, ("row", "col", "shape"))
    for path, arrays, keys in needed:
        missing = [key for key in keys if key not in arrays]
        if missing:
            raise InputError(f"{path} has no array {missing[0]!r}; it needs {', '.join(keys)}: download it again.")
    row, column, shape = links["row"], links["col"], links["shape"]
    if any(part.ndim != 1 or part.dtype.kind not in "iu" for part in (row, column, shape)) or row.size != column.size:
        raise InputError(f"{graph_file}: 'row', 'col' and 'shape' do not fit together: download it again.")
    adjacency = adjacency_from_edges(row, column, None, int(shape[0]), str(graph_file))[0]
    ids, where = data.get("node_ids"), str(data_file)
    return build_graph(adjacency, data["feature"], data["label"], node_ids=ids, name=REDDIT_DGL.name, where=where)


REDDIT = Dataset(
    "reddit",
    "Reddit posts by community, linked by common commenters (GraphSAGE's form)",
    lambda folder, _: read_graphsage(folder, "reddit", "reddit"),
    "the GraphSAGE project page (reddit.zip)",
    PROTOCOL,
    ("reddit-G.json", "reddit-feats.npy", "reddit-id_map.json", "reddit-class_map.json"),
)
REDDIT_DGL = Dataset(
    "reddit-dgl",
    "Reddit posts by community, the larger graph that PyG and DGL load",
    _load_dgl,
    "the DGL data sets (reddit.zip), also downloaded by torch_geometric.datasets.Reddit",
    PROTOCOL,
    ("reddit_data.npz", "reddit_graph.npz"),
    note="A different graph from 'reddit': results on the two cannot be compared.",
)
