"""Amazon-Clothing and DBLP in their original files, as published with GPN (Ding et al., CIKM 2020).

``X_network`` has one tab-separated edge per line, in both directions. ``X_train.mat`` and ``X_test.mat`` are MATLAB 5
files with ``Index`` (1 × n node numbers), ``Label`` (n × 1) and ``Attributes`` (n × d, sparse). The number of nodes is
the largest node number + 1. A node in neither ``.mat`` file has no label and no features.
"""

import zlib
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from graphfcl.datasets.dataset import Dataset
from graphfcl.errors import InputError
from graphfcl.graph import Graph, build_graph
from graphfcl.graph.build import adjacency_from_edges
from graphfcl.stream import Protocol

SOURCE = "the public repository kaize0409/GPN_Graph-Few-shot (folder few_shot_data)"


def read_network(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Read the two ends of all edges."""
    import pyarrow as pa
    from pyarrow import csv

    kinds = {"source": pa.int64(), "target": pa.int64()}
    try:
        table = csv.read_csv(
            path,
            read_options=csv.ReadOptions(column_names=list(kinds)),
            parse_options=csv.ParseOptions(delimiter="\t"),
            convert_options=csv.ConvertOptions(column_types=kinds),
        )
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise InputError(
            f"{path} is not a list of tab-separated node numbers ({reason}): download it again."
        ) from error
    if table["source"].null_count or table["target"].null_count:
        raise InputError(f"{path} has a line with only one node number: download it again.")
    return table["source"].to_numpy(), table["target"].to_numpy()


def read_mat(path: Path) -> tuple[np.ndarray, np.ndarray, sparse.csr_array]:
    """Read node numbers (n,), labels (n,) and attributes (n, d)."""
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    try:
        content: dict[str, Any] = loadmat(path)
    except (
        MatReadError,
        ValueError,
        TypeError,
        LookupError,
        EOFError,
        OSError,
        zlib.error,
        NotImplementedError,
    ) as error:
        raise InputError(f"{path} is truncated or not a MATLAB 5 file: download it again.") from error
    missing = [key for key in ("Index", "Label", "Attributes") if key not in content]
    if missing:
        variables = ", ".join(sorted(key for key in content if not key.startswith("__"))) or "nothing"
        raise InputError(
            f"{path} has no variable {missing[0]!r} (it has {variables}): it needs Index, Label, Attributes."
        )
    try:
        numbers = np.asarray(content["Index"]).ravel()
        index = numbers.astype(np.int64)
        whole = np.array_equal(index, numbers)
        labels = np.asarray(content["Label"]).astype(np.float64)
        if sparse.issparse(content["Attributes"]):
            content["Attributes"].check_format()  # with damaged indices scipy would read beyond its arrays
        attributes = sparse.csr_array(content["Attributes"], dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise InputError(f"{path}: Index, Label and Attributes do not all hold numbers: download it again.") from error
    if not whole:
        raise InputError(f"{path}: a node number in Index is not whole: download it again.")
    if labels.size != index.size or attributes.shape[0] != index.size:
        raise InputError(
            f"{path}: Index has {index.size} nodes, Label {labels.size} and Attributes {attributes.shape[0]} rows; all "
            "three must agree: download it again."
        )
    if not np.isfinite(attributes.data).all():
        raise InputError(f"{path}: Attributes hold a NaN or infinite number: download it again.")
    return index, labels.ravel(), attributes


def read_gpn(network: Path, matrices: list[Path], name: str, *, only_labelled: bool = False) -> Graph:
    """Read the graph of a network file and its ``.mat`` files, or only labelled nodes and the edges among them."""
    source, target = read_network(network)
    parts = [read_mat(path) for path in matrices]
    index = np.concatenate([part[0] for part in parts])
    count = int(max(source.max(initial=-1), target.max(initial=-1), index.max(initial=-1))) + 1
    if index.size and (index.min() < 0 or np.unique(index).size != index.size):
        raise InputError(f"{matrices[-1]}: a node number is negative or occurs twice in Index: download it again.")
    widths = {part[2].shape[1] for part in parts}
    if len(widths) > 1:
        raise InputError(
            f"{matrices[0]} and {matrices[1]} have different numbers of attributes: they do not belong together."
        )
    order = np.argsort(index)
    rows = sparse.vstack([part[2] for part in parts], format="csr")[order]
    labels = np.full(count, -1.0)
    labels[index] = np.concatenate([part[1] for part in parts])
    placed = np.zeros(count + 1, dtype=np.int64)
    placed[index[order] + 1] = np.diff(rows.indptr)
    features = sparse.csr_array((rows.data, rows.indices, np.cumsum(placed)), shape=(count, rows.shape[1]))
    adjacency, notes = adjacency_from_edges(source, target, None, count, str(network))
    ids = np.arange(count)
    if only_labelled:
        ids = index[order]
        adjacency, features, labels = adjacency[ids][:, ids], features[ids], labels[ids]
    where = " and ".join(str(path) for path in matrices)
    return build_graph(adjacency, features, labels, node_ids=ids, name=name, where=where, notes=notes)


def _dataset(name: str, title: str, stem: str, protocol: Protocol, note: str = "") -> Dataset:
    network, *matrices = files = (f"{stem}_network", f"{stem}_train.mat", f"{stem}_test.mat")

    def load(folder: Path, _: dict[str, str]) -> Graph:
        return read_gpn(folder / network, [folder / matrix for matrix in matrices], name)

    return Dataset(name, title, load, SOURCE, protocol, files, note)


def _load_clothing_20(folder: Path, _: dict[str, str]) -> Graph:
    network, matrix = (folder / name for name in AMAZON_CLOTHING_20.files)
    return read_gpn(network, [matrix], AMAZON_CLOTHING_20.name, only_labelled=True)


AMAZON_CLOTHING = _dataset(
    "amazon-clothing",
    "Amazon products of Clothing, Shoes and Jewelry, also viewed together",
    "Amazon_clothing",
    Protocol(base=20, pseudo_novel=30, novel=27, way=3, shot=5, sessions=9),
    note="With Amazon_clothing_test.mat alone, amazon-clothing-20 offers its 20 classes.",
)
DBLP = _dataset(
    "dblp",
    "DBLP papers by venue, linked by citations",
    "dblp",
    Protocol(base=37, pseudo_novel=50, novel=50, way=5, shot=5, sessions=9),
)
AMAZON_CLOTHING_20 = Dataset(
    "amazon-clothing-20",
    "the 20 classes of Amazon-Clothing's test file: its labelled nodes and the edges among them",
    _load_clothing_20,
    SOURCE,
    Protocol(base=5, pseudo_novel=6, novel=9, way=3, shot=5),
    ("Amazon_clothing_network", "Amazon_clothing_test.mat"),
    note="A part of the paper's dataset: results on it cannot be compared with the paper's.",
)
