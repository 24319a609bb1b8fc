"""Write streams as arrays for other code: one ``.npz`` file with the graph, its labels, and the role of each node.

The graph's arrays have the names of the widespread sparse graph layout (``adj_*``, ``attr_*``, ``labels``). All arrays
refer to the graph after the last session, and nodes are given by their rows in it.
"""

import json
from pathlib import Path

import numpy as np
from scipy import sparse

from graphfcl.runtime.files import write_durably
from graphfcl.stream.saved import stream_hash
from graphfcl.stream.split import Role
from graphfcl.stream.stream import Stream

PARTS = {  # name of the array → role of its nodes
    "train": Role.TRAIN,
    "validation": Role.VALIDATION,
    "test": Role.TEST,
    "supports": Role.SUPPORT,
    "pool": Role.POOL,
}
KINDS = ("base", "pseudo-novel", "novel")  # kinds of classes by the numbers in ``class_kind``


def save_arrays(stream: Stream, path: str | Path) -> None:
    """Write a stream as arrays that can be read without graphfcl. They include labels of test nodes.

    A graph on disk is loaded into memory. The file has these arrays:

    - ``adj_data``, ``adj_indices``, ``adj_indptr``, ``adj_shape``: (n, n) adjacency matrix in CSR form.
    - ``attr_data``, ``attr_indices``, ``attr_indptr``, ``attr_shape``, or ``attr_matrix``: (n, d) features as learners
      see them after the last session, in CSR form or dense.
    - ``labels``: (n,) column of each node's class; −1 for unused classes.
    - ``class_names``: (C,) names of the classes.
    - ``class_session``: (C,) session in which each class arrives; 0 for base and pseudo-novel classes.
    - ``class_kind``: (C,) 0 for base, 1 for pseudo-novel, 2 for novel classes.
    - ``train``, ``validation``, ``test``, ``supports``, ``pool``: rows of the nodes with this role, sorted by session,
      class and row.
    - ``node_ids``: (n,) the user's ids as texts.
    - ``stream``: JSON text with the graph's name and SHA-256, the seed, the protocol and the stream's hash.
    """
    visible = stream.evaluation_graph(len(stream)).loaded()
    labels, split = stream.columns_of(visible.nodes), stream.split
    roles = split.roles[stream.node_of_number[visible.nodes]]
    novel = split.base_count + split.pseudo_novel_count
    columns = np.arange(len(stream.classes))
    about = {
        "graph": stream.graph.name,
        "graph_sha256": stream.graph.sha256,
        "seed": stream.seed,
        "protocol": stream.protocol.as_json(),
        "hash": stream_hash(stream),
    }

    def rows_of(part: Role) -> np.ndarray:
        rows = np.flatnonzero(roles == part)
        return rows[np.lexsort((rows, labels[rows], stream.session_of_class[labels[rows]]))]

    arrays = {
        **_csr("adj", sparse.csr_array(visible.adjacency)),
        **_features(visible.features),
        "labels": labels,
        "class_names": np.array([str(name) for name in stream.classes]),
        "class_session": np.asarray(stream.session_of_class, dtype=np.int64),
        "class_kind": np.where(columns < split.base_count, 0, np.where(columns < novel, 1, 2)),
        **{name: rows_of(part) for name, part in PARTS.items()},
        "node_ids": np.asarray(stream.graph.node_ids[stream.node_of_number[visible.nodes]]).astype(str),
        "stream": np.array(json.dumps(about)),
    }
    write_durably(path, lambda file: np.savez_compressed(file, allow_pickle=False, **arrays))


def _features(features: np.ndarray | sparse.csr_array) -> dict[str, np.ndarray]:
    return _csr("attr", sparse.csr_array(features)) if sparse.issparse(features) else {"attr_matrix": features}


def _csr(name: str, matrix: sparse.csr_array) -> dict[str, np.ndarray]:
    return {
        f"{name}_data": matrix.data,
        f"{name}_indices": matrix.indices,
        f"{name}_indptr": matrix.indptr,
        f"{name}_shape": np.array(matrix.shape),
    }
