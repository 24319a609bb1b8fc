"""A model as a handful of files and some JSON values, and back. Nothing is ever unpickled.

Tensors that rarely change have a file of their own, so that a version shares it with the versions before it.
"""

import io
import warnings
from typing import Any

import numpy as np
from scipy import sparse

from graphfcl.errors import GraphfclWarning, InputError
from graphfcl.graph import Standardisation, TextWeights
from graphfcl.graph.ids import as_arrow, pack, unpack
from graphfcl.methods import LearnerState, Method, find_method, flat_settings
from graphfcl.production.calibration import Calibration
from graphfcl.production.growing_graph import GrowingGraph
from graphfcl.production.label_table import read_statements, statements_column
from graphfcl.production.ledger import LabelRole, Ledger
from graphfcl.production.model_parts import Configuration, ModelParts

Files = dict[str, bytes]
FILES = {
    "nodes": "npz",
    "edges": "npz",
    "features": "npz",
    "network": "safetensors",
    "knowledge": "safetensors",
    "ledger": "parquet",
}


class Damaged(ValueError):
    """The content of a file does not fit together; says which and how."""


def encode(parts: ModelParts) -> tuple[Files, dict[str, Any]]:
    """The files of a model by name, and everything else as JSON values."""
    from safetensors.torch import save

    configuration, graph, ledger = parts.configuration, parts.graph, parts.ledger
    state = parts.learner.state()
    tensors = {name: tensor.contiguous() for name, tensor in state.tensors.items()}
    network = {name: tensor for name, tensor in tensors.items() if name.startswith(parts.learner.lasting_tensors)}
    files = {
        "nodes": _npz(numbers=graph.numbers, next_number=np.array(graph.next_number), **pack(graph.ids)),
        "edges": _encode_edges(graph),
        "features": _encode_features(graph),
        "network": save(network),
        "knowledge": save({name: tensor for name, tensor in tensors.items() if name not in network}),
        "ledger": _encode_ledger(ledger, graph),
    }
    values = {
        "method": configuration.method,
        **_origin(configuration.method),
        "settings": parts.learner.settings_as_json(),
        "way": configuration.way,
        "shot": configuration.shot,
        "seed": configuration.seed,
        "max_loss": configuration.max_loss,
        "standardise": configuration.standardise,
        "learner": state.values,
        "classes": list(ledger.names),
        "many": ledger.session_zero_columns,
        "calibration": parts.calibration.as_json(),
    }
    return files, values


def decode(files: Files, values: dict[str, Any], *, device: str) -> ModelParts:
    """The reverse; raises :class:`Damaged` or :class:`InputError` before anything wrong is used."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        method = find_method(str(values["method"]), str(values.get("source", "")))
        _warn_of_other_code(method, str(values.get("source", "")))
        configuration = Configuration(
            method=method.name,
            settings={**method.learner.earlier_settings, **flat_settings(values["settings"])},
            way=values["way"],
            shot=values["shot"],
            seed=values["seed"],
            max_loss=values["max_loss"],
            standardise=values.get("standardise", False),  # a model may be older than the setting
        )
        graph = _decode_graph(files)
        learner = method.make(dict(configuration.settings), seed=configuration.seed, device=device)
        learner.load_state(LearnerState({**load(files["network"]), **load(files["knowledge"])}, values["learner"]))
        ledger = _decode_ledger(files["ledger"], tuple(values["classes"]), values["many"])
        calibration = Calibration.from_json(values["calibration"])
    except InputError:
        raise
    except (SafetensorError, KeyError, TypeError, ValueError, RuntimeError, OSError) as error:
        raise Damaged(f"its parts do not fit together ({_first_line(error)})") from error
    if len(ledger.names) != len(learner.classes_) or not np.isin(ledger.nodes, graph.numbers).all():
        raise Damaged("its ledger does not fit its learner and its graph")
    return ModelParts(configuration, graph, learner, ledger, calibration)


def _origin(method: str) -> dict[str, str]:
    """Where a method from outside comes from, so that a reader who lacks it can be told; it is never imported."""
    source = find_method(method).source
    return {"source": source} if source else {}


def _warn_of_other_code(method: Method, source: str) -> None:
    if method.source != source:
        warnings.warn(
            f"the model was saved by other code of {method.name} ({source or 'graphfcl'}; here {method.source}): it "
            "may answer otherwise than it did.",
            GraphfclWarning,
            2,
        )


def _first_line(error: BaseException) -> str:
    return str(error).strip().splitlines()[0][:120] if str(error).strip() else type(error).__name__


def _npz(**arrays: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def _read_npz(content: bytes) -> dict[str, np.ndarray]:
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def _encode_edges(graph: GrowingGraph) -> bytes:
    """Each edge once, from the smaller row to the larger."""
    upper = sparse.triu(graph.adjacency, k=1, format="csr")
    weights = {} if (upper.data == 1).all() else {"weights": upper.data}
    return _npz(indptr=upper.indptr, indices=upper.indices, **weights)


def _encode_features(graph: GrowingGraph) -> bytes:
    arrays: dict[str, np.ndarray] = {"shape": np.array(graph.features.shape)}
    if isinstance(graph.features, np.ndarray):
        arrays["dense"] = graph.features
    else:
        for part in ("indptr", "indices", "data"):
            arrays[part] = getattr(graph.features, part)
    if graph.feature_names is not None:
        arrays |= {f"names_{key}": array for key, array in pack(graph.feature_names).items()}
    if graph.text_weights is not None:
        arrays["text_columns"] = graph.text_weights.columns
        arrays["text_weights"] = graph.text_weights.inverse_document_frequency
    if graph.standardisation is not None:
        arrays["means"] = graph.standardisation.mean
        arrays["deviations"] = graph.standardisation.deviation
    return _npz(**arrays)


def _decode_graph(files: Files) -> GrowingGraph:
    nodes, edges, features = (_read_npz(files[name]) for name in ("nodes", "edges", "features"))
    count = nodes["numbers"].size
    indices = edges["indices"]
    weights = edges.get("weights", np.ones(indices.size, dtype=np.float32))
    upper = sparse.csr_array((weights, indices, edges["indptr"]), shape=(count, count))
    adjacency = sparse.csr_array(upper + upper.T)
    adjacency.sort_indices()
    if "dense" in features:
        rows: Any = features["dense"]
    else:
        parts = (features["data"], features["indices"], features["indptr"])
        rows = sparse.csr_array(parts, shape=tuple(features["shape"].tolist()))
    ids = unpack(nodes)
    if rows.shape[0] != count or ids.size != count:
        raise Damaged("its nodes and their features differ in number")
    text = None
    if "text_columns" in features:
        text = TextWeights(features["text_columns"], features["text_weights"])
    standardisation = None
    if "means" in features:
        standardisation = Standardisation(features["means"], features["deviations"])
        if not rows.shape[1] == standardisation.mean.size == standardisation.deviation.size:
            raise Damaged("its features and their means differ in number")
    return GrowingGraph(
        numbers=nodes["numbers"],
        next_number=int(nodes["next_number"]),
        ids=ids,
        adjacency=adjacency,
        features=rows,
        feature_names=_feature_names(features),
        text_weights=text,
        standardisation=standardisation,
    )


def _feature_names(features: dict[str, np.ndarray]) -> np.ndarray | None:
    """Packed, or as an array of NumPy's texts, or none."""
    if "names_text" in features:
        return unpack({key: features[f"names_{key}"] for key in ("text", "ends")})
    return unpack({"ids": features["names"]}) if "names" in features else None


def _encode_ledger(ledger: Ledger, graph: GrowingGraph) -> bytes:
    """A table that a person can open: node, class, part; and the numbers a learner speaks of."""
    import pyarrow as pa
    from pyarrow import parquet

    names = [ledger.names[column] for column in ledger.columns.tolist()]
    said = {"statements": pa.array(statements_column(ledger), pa.string())} if ledger.statements else {}
    table = pa.table(
        {
            "node": as_arrow(graph.ids[graph.visible.rows(ledger.nodes)]),
            "class": pa.array(names, pa.string()),
            "part": pa.array([LabelRole(part).name.lower() for part in ledger.parts.tolist()], pa.string()),
            "number": pa.array(ledger.nodes),
            "column": pa.array(ledger.columns),
            **said,
        }
    )
    buffer = io.BytesIO()
    parquet.write_table(table, buffer, compression="zstd")
    return buffer.getvalue()


def _decode_ledger(content: bytes, names: tuple[str | None, ...], session_zero_columns: int) -> Ledger:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        table = parquet.read_table(io.BytesIO(content))
        kinds = {part.name.lower(): int(part) for part in LabelRole}
        parts = np.array([kinds[part] for part in table["part"].to_pylist()], dtype=np.int8)
        nodes, columns = (table[name].to_numpy().astype(np.int64) for name in ("number", "column"))
        said = table["statements"].to_pylist() if "statements" in table.column_names else [None] * nodes.size
    except pa.ArrowException as error:
        raise Damaged("its ledger is no table") from error
    if columns.size and not 0 <= columns.min() <= columns.max() < len(names):
        raise Damaged("its ledger names a class that is not there")
    return Ledger(nodes, columns, parts, names, session_zero_columns, read_statements(said, nodes))
