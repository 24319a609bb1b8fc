"""Reading folders of format 1: six files of npz, safetensors and Parquet, and everything else as JSON values.

Such a folder is never written any more. A file that would become much larger than it is, is refused before that.
"""

import io
import math
import zipfile
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from graphfcl.errors import InputError
from graphfcl.methods import Learner, LearnerState
from graphfcl.production.codec import checked_ledger, learner_of
from graphfcl.production.graph_codec import adjacency_of, check_features, checked_nodes, csr_of, ids_in_memory
from graphfcl.production.ledger import LabelRole, Ledger
from graphfcl.production.model_parts import Configuration
from graphfcl.production.storage.damage import Damaged, first_line, need
from graphfcl.production.view_codec import checked_views

if TYPE_CHECKING:
    from scipy import sparse

    from graphfcl.production.growing_graph import GrowingGraph

FILES = {
    "nodes": "npz",
    "edges": "npz",
    "features": "npz",
    "network": "safetensors",
    "knowledge": "safetensors",
    "ledger": "parquet",
}
FREE = 1 << 26  # bytes that any file may become
SPREAD = 100  # times its size that a larger one may become
ARRAY_TYPES = "biufU"

ReadFile = Callable[[str], bytes]


def decode_graph(read: ReadFile) -> "GrowingGraph":
    """The graph. read: the content of a file by its name, ``nodes`` and so on."""
    from graphfcl.production.growing_graph import GrowingGraph

    try:
        nodes, edges, features = (_read_npz(read(name)) for name in ("nodes", "edges", "features"))
        numbers, next_number = nodes["numbers"], int(nodes["next_number"])
        ids = checked_nodes(numbers, next_number, _own_ids(nodes["ids"]))
        half = _csr(edges, edges.get("weights"), (numbers.size, numbers.size), "edges")
        return GrowingGraph(numbers, next_number, ids, adjacency_of(half), **_features(features, numbers.size))
    except (Damaged, InputError):
        raise
    except Exception as error:  # whatever the readers of zip and npy make of such content
        raise Damaged(f"its graph cannot be read ({first_line(error)})") from error


def decode_learner(read: ReadFile, values: Any, configuration: Configuration, device: str) -> Learner:
    """The learner."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        tensors = {**load(read("network")), **load(read("knowledge"))}
    except SafetensorError as error:
        raise Damaged(f"its tensors cannot be read ({first_line(error)})") from error
    return learner_of(configuration, LearnerState(tensors, values), device)


def decode_ledger(read: ReadFile, names: Ledger, most: int) -> Ledger:
    """The ledger. most: labelled nodes that there can be."""
    from pyarrow import parquet

    kinds = {part.name.lower(): int(part) for part in LabelRole}
    try:
        file = parquet.ParquetFile(io.BytesIO(read("ledger")))
        need(file.metadata.num_rows <= most, "its ledger has more rows than the graph has nodes")
        table = file.read(columns=["number", "column", "part"])
        parts = np.array([kinds[part] for part in table["part"].to_pylist()], dtype=np.int8)
        nodes, columns = (table[name].to_numpy().astype(np.int64) for name in ("number", "column"))
    except (Damaged, InputError):
        raise
    except Exception as error:  # of Arrow
        raise Damaged("its ledger is no table") from error
    return checked_ledger(nodes, columns, parts, names)


def _own_ids(ids: np.ndarray) -> np.ndarray:
    return ids if ids.dtype == np.int64 else ids_in_memory(ids.tolist())


def _csr(
    arrays: dict[str, np.ndarray], data: np.ndarray | None, shape: tuple[int, int], what: str
) -> "sparse.csr_array":
    indptr, indices = arrays["indptr"], arrays["indices"]
    need(indptr.shape == (shape[0] + 1,) and indptr.dtype.kind == "i", f"its {what} do not fit its nodes")
    need(indptr[0] == 0, f"its {what} do not begin at 0")
    values = np.ones(indices.size, np.float32) if data is None else data
    return csr_of(np.diff(indptr), indices, values, shape, what)


def _features(arrays: dict[str, np.ndarray], count: int) -> dict[str, Any]:
    shape = tuple(int(axis) for axis in arrays["shape"].tolist())
    need(len(shape) == 2 and shape[0] == count and shape[1] >= 0, "its nodes and their features differ in number")
    rows = arrays.get("dense")
    if rows is None:
        ordered = _csr_in_order(arrays, shape[1])
        rows = _csr({"indptr": ordered.indptr, "indices": ordered.indices}, ordered.data, (count, shape[1]), "features")
    there = {"text_columns": "text.columns", "text_weights": "text.weights", "means": "means"}
    there["deviations"] = "deviations"
    stored = {new: arrays[old] for old, new in there.items() if old in arrays}
    names = arrays.get("names")
    check_features(rows, (count, shape[1]), names)
    text, standardisation = checked_views(stored, shape[1], dense=isinstance(rows, np.ndarray))
    return {"features": rows, "feature_names": names, "text_weights": text, "standardisation": standardisation}


def _csr_in_order(arrays: dict[str, np.ndarray], width: int) -> "sparse.csr_array":
    """Format 1 kept columns of a row in the order in which they came."""
    from scipy import sparse

    indptr, indices, data = arrays["indptr"], arrays["indices"], arrays["data"]
    need(indptr.ndim == indices.ndim == data.ndim == 1 and indptr.dtype.kind == indices.dtype.kind == "i",
         "its features are of an unknown type")  # fmt: skip
    need(indptr.size > 0 and indptr[0] == 0 and indptr[-1] == indices.size == data.size and
         bool((np.diff(indptr) >= 0).all()), "its features differ in number")  # fmt: skip
    need(indices.size == 0 or (indices.min() >= 0 and indices.max() < width), "its features lead out of their matrix")
    found = sparse.csr_array((data, indices, indptr), shape=(indptr.size - 1, width))
    found.sort_indices()
    return found


def _read_npz(content: bytes) -> dict[str, np.ndarray]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = archive.infolist()
        total = sum(member.file_size for member in members)
        need(total <= FREE + SPREAD * len(content), "one of its files becomes far larger than it is")
        kinds = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
        need(all(member.compress_type in kinds for member in members), "one of its files is packed in another way")
        return {member.filename.removesuffix(".npy"): _read_npy(archive.read(member)) for member in members}


def _read_npy(content: bytes) -> np.ndarray:
    """An array whose header is held to what follows it."""
    file = io.BytesIO(content)
    version = np.lib.format.read_magic(file)
    read_header: Any = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }.get(version)
    need(read_header is not None, "an array of it has an unknown format")
    shape, fortran, dtype = read_header(file)
    need(dtype.kind in ARRAY_TYPES and not fortran, "an array of it has an unknown type")
    need(math.prod(shape) * dtype.itemsize == len(content) - file.tell(), "an array of it is not as long as it says")
    return np.frombuffer(content, dtype=dtype, offset=file.tell()).reshape(shape).copy()
