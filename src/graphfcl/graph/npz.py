"""The sparse graph ``.npz`` layout: two CSR matrices in parts (``adj_*``, ``attr_*``), labels and names.

A dense feature matrix is stored as one array, ``attr_matrix``. Pickled objects are never loaded.
"""

import zipfile
import zlib
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from graphfcl.errors import InputError
from graphfcl.graph.build import build_graph
from graphfcl.graph.graph import Graph, TextSettings
from graphfcl.graph.ids import pack_texts, unpack_texts
from graphfcl.runtime.files import write_durably

FIXED_WIDTH = 2**26  # ids or names that would need more bytes as fixed-width NumPy texts are written packed


def read_arrays(path: str | Path, *, but: Collection[str] = ()) -> dict[str, np.ndarray]:
    """Read all arrays of an ``.npz`` file except ``but``; pickles and damaged files raise an InputError."""
    try:
        archive = np.load(path, allow_pickle=False)
        if isinstance(archive, np.ndarray):
            raise InputError(f"{path} is a single array, not an .npz archive: save it with numpy.savez.")
        with archive:
            return {name: _read_array(path, archive, name) for name in archive.files if name not in but}
    except FileNotFoundError as error:
        raise InputError(f"{path} does not exist: check the path, or `graphfcl data list` for known names.") from error
    except (zipfile.BadZipFile, EOFError, NotImplementedError) as error:
        raise InputError(f"{path} is truncated or damaged: copy or download it again.") from error
    except InputError:
        raise
    except ValueError as error:  # numpy treats an unknown format as a pickle
        raise InputError(
            f"{path} is not an .npz archive or is a pickle, which is never loaded: save it again."
        ) from error
    except OSError as error:
        raise InputError(
            f"{path} cannot be read ({error.strerror or error}): check the file and its rights."
        ) from error


def _read_array(path: str | Path, archive: Any, name: str) -> np.ndarray:
    try:
        array = archive[name]
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        if isinstance(error, ValueError) and "pickle" in str(error).lower():
            raise InputError(
                f"{path} holds {name!r} as a pickled object, which is never loaded: save it as a plain array."
            ) from error
        raise InputError(f"{path} is truncated or damaged at {name!r}: copy or download it again.") from error
    if not isinstance(array, np.ndarray):
        raise InputError(f"{path} holds {name!r}, which is not an array: save it again with numpy.savez.")
    return array


def read_npz(path: str | Path, *, name: str | None = None) -> Graph:
    """Read a graph from an ``.npz`` file in the sparse graph layout.

    Args:
        path: File with the arrays ``adj_*``, ``attr_*`` or ``attr_matrix``, and ``labels``.
        name: Name of the graph. Default: the name of the file without ``.npz``.

    Returns:
        The graph.

    Raises:
        InputError: If the file does not exist, is damaged, holds pickles or has another layout.

    Examples:
        >>> from graphfcl import load_dataset, read_npz, write_npz
        >>> graph, _ = load_dataset("synthetic:nodes=200,edges=800,classes=6,features=30")
        >>> write_npz(graph, "small.npz")
        >>> read_npz("small.npz")
        Graph('small', 200 nodes, 800 edges, 30 features, 6 classes)
    """
    arrays = read_arrays(path)
    text = read_text_settings(arrays, path)
    adjacency = read_csr(arrays, "adj", path)
    if "adj_undirected" in arrays:  # each edge is stored once, as write_npz does
        adjacency = adjacency + adjacency.T
    graph = build_graph(
        adjacency,
        arrays["attr_matrix"] if "attr_matrix" in arrays else read_csr(arrays, "attr", path),
        arrays["labels"],
        class_names=arrays["class_names"].ravel().tolist() if "class_names" in arrays else None,
        node_ids=read_texts(arrays, "node_names", path),
        feature_names=read_texts(arrays, "attr_names", path),
        text=text,
        name=name or Path(path).stem,
        where=str(path),
    )
    return replace(graph, column_min_nodes=read_column_min_nodes(arrays, path))


def read_column_min_nodes(arrays: dict[str, np.ndarray], path: str | Path) -> int:
    """Read the minimum number of nodes by which columns were selected; 1 if the file has none."""
    min_nodes = arrays.get("attr_min_nodes", np.array(1))
    if min_nodes.shape != () or min_nodes.dtype.kind not in "iu" or min_nodes < 1:
        raise InputError(f"{path}: 'attr_min_nodes' is not one whole number above 0: save the file again.")
    return int(min_nodes)


def read_text_settings(arrays: dict[str, np.ndarray], path: str | Path) -> TextSettings | None:
    """Read text settings, or None if features are not word counts; a file without labels raises an InputError."""
    if "labels" not in arrays:
        if "labels_data" in arrays:
            raise InputError(f"{path}: the labels are a matrix (multi-label); choose one class per node.")
        raise InputError(f"{path} has no array 'labels': it is not in the sparse graph layout (adj_*, attr_*, labels).")
    text = arrays.get("text_min_nodes")
    if text is not None and (text.shape != () or text.dtype.kind not in "iu"):
        raise InputError(f"{path}: 'text_min_nodes' is not one whole number: save the file again.")
    beside = arrays.get("text_beside", np.zeros(0, dtype=np.int64))
    if beside.ndim != 1 or beside.dtype.kind not in "iu" or (beside <= 0).any() or (beside.size and text is None):
        raise InputError(f"{path}: 'text_beside' does not hold widths of column groups: save the file again.")
    shape = arrays.get("attr_shape", np.zeros(0, dtype=np.int64)).ravel()
    if beside.size and (shape.size != 2 or beside.sum() > shape[1]):
        raise InputError(f"{path}: 'text_beside' has more columns than there are features: save the file again.")
    return None if text is None else TextSettings(int(text), tuple(beside.tolist()))


def read_texts(arrays: dict[str, np.ndarray], name: str, path: str | Path) -> np.ndarray | None:
    """Read ids or names, stored as one array or packed."""
    if f"{name}_text" not in arrays:
        return arrays.get(name)
    try:
        content, ends = arrays[f"{name}_text"].astype(np.uint8), arrays[f"{name}_ends"].astype(np.int64)
        starts = np.append(np.zeros(1, np.int64), ends)
        if (np.diff(starts) < 0).any() or starts[-1] != content.size:
            raise ValueError("the texts do not fit their lengths")
        return unpack_texts(content, starts)
    except (KeyError, ValueError) as error:
        raise InputError(f"{path}: the parts '{name}_*' do not fit together: save the file again.") from error


def _as_arrays(values: np.ndarray, name: str) -> dict[str, np.ndarray]:
    """Return arrays for ids or names; they are packed if fixed-width texts would be large."""
    if values.dtype != object:
        return {name: values}
    longest = max(map(len, values.tolist()), default=0)
    if 4 * longest * values.size <= FIXED_WIDTH:
        return {name: values.astype(str)}
    content, starts = pack_texts(values.tolist())
    return {f"{name}_text": content, f"{name}_ends": starts[1:]}


def csr_parts(arrays: Mapping[str, Any], prefix: str, path: str | Path) -> tuple[Any, Any, np.ndarray, tuple[int, int]]:
    """Check the parts of a CSR matrix and return indices, values (None if all are 1), int64 pointers and shape.

    Of indices and values only type and shape are checked, since they may be streams. :func:`refuse_columns` checks
    the indices.
    """
    missing = [part for part in ("indices", "indptr", "shape") if f"{prefix}_{part}" not in arrays]
    if missing:
        raise InputError(f"{path} has no array '{prefix}_{missing[0]}': it is not in the sparse graph layout.")
    indices, indptr, shape = (arrays[f"{prefix}_{part}"] for part in ("indices", "indptr", "shape"))
    data, shape = arrays.get(f"{prefix}_data"), tuple(shape.ravel().tolist())
    fits = (
        len(shape) == 2
        and all(isinstance(size, int) and size >= 0 for size in shape)
        and indptr.dtype.kind in "iu"
        and indices.dtype.kind in "iu"
        and indptr.shape == (shape[0] + 1,)
        and indptr[0] == 0
        and indices.shape == (indptr[-1],)
        and (data is None or (data.dtype.kind in "biuf" and data.shape == indices.shape))
        and bool((np.diff(indptr.astype(np.int64)) >= 0).all())
    )
    if not fits:
        raise InputError(f"{path}: the parts '{prefix}_*' do not fit together as a CSR matrix: save the file again.")
    return indices, data, indptr.astype(np.int64), shape


def refuse_columns(indices: np.ndarray, count: int, prefix: str, path: str | Path) -> None:
    """Raise an InputError if column indices are outside the matrix; scipy would read beyond its arrays."""
    if indices.size and not 0 <= int(indices.min()) <= int(indices.max()) < count:
        bad = int(indices.max()) if int(indices.max()) >= count else int(indices.min())
        what = "an edge leads to node" if prefix == "adj" else "a feature has column"
        raise InputError(f"{path}: {what} {bad}, but '{prefix}_shape' says there are {count}: save the file again.")


def read_csr(arrays: Mapping[str, np.ndarray], prefix: str, path: str | Path) -> sparse.csr_array:
    """Read a CSR matrix from its parts, which are checked first."""
    indices, data, indptr, shape = csr_parts(arrays, prefix, path)
    refuse_columns(indices, shape[1], prefix, path)
    return sparse.csr_array((np.ones(indices.size, np.float32) if data is None else data, indices, indptr), shape=shape)


def write_npz(graph: Graph, path: str | Path) -> None:
    """Write a graph to an ``.npz`` file in the sparse graph layout.

    Each edge is stored once, from the smaller node number to the larger. The file appears only when it is complete.

    Args:
        graph: The graph.
        path: File to write. An existing file is replaced.

    Raises:
        InputError: If the file cannot be written.

    Examples:
        >>> from graphfcl import load_dataset, read_npz, write_npz
        >>> graph, _ = load_dataset("synthetic:nodes=200,edges=800,classes=6,features=30")
        >>> write_npz(graph, "small.npz")
        >>> read_npz("small.npz").sha256 == graph.sha256
        True
    """
    upper = sparse.triu(graph.adjacency, k=1, format="csr")
    arrays: dict[str, np.ndarray] = {
        "adj_indices": upper.indices,
        "adj_indptr": upper.indptr,
        "adj_shape": np.array(upper.shape),
        "adj_undirected": np.array(True),
        "labels": graph.labels,
        "class_names": np.array(graph.class_labels, dtype=np.int64 if graph.integer_classes else str),
        **_as_arrays(graph.node_ids, "node_names"),
    }
    if graph.weighted:
        arrays["adj_data"] = upper.data
    if sparse.issparse(graph.features):
        features = graph.features
        arrays |= {
            "attr_indices": features.indices,
            "attr_indptr": features.indptr,
            "attr_shape": np.array(features.shape),
        }
        if (features.data != 1).any():
            arrays["attr_data"] = features.data
    else:
        arrays["attr_matrix"] = graph.features
    if graph.feature_names is not None:
        arrays |= _as_arrays(graph.feature_names, "attr_names")
    if graph.column_min_nodes > 1:
        arrays["attr_min_nodes"] = np.array(graph.column_min_nodes)
    if graph.text is not None:
        arrays["text_min_nodes"] = np.array(graph.text.min_nodes)
        if graph.text.beside:
            arrays["text_beside"] = np.array(graph.text.beside, dtype=np.int64)
    write_durably(
        path,
        lambda file: np.savez_compressed(file, allow_pickle=False, **{k: _slim(v) for k, v in arrays.items()}),
    )


def _slim(array: np.ndarray) -> np.ndarray:
    """Store integers in the smallest type that holds them."""
    if array.dtype.kind not in "iu" or not array.size:
        return array
    kind = np.promote_types(np.min_scalar_type(int(array.min())), np.min_scalar_type(int(array.max())))
    # int8 and uint64 have no common integer type: numpy then returns a float type.
    return array if kind.kind == "f" else array.astype(kind)
