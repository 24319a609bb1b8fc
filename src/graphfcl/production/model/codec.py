"""Encode a model as seven parts, each of JSON values and arrays, and decode them. Nothing is ever unpickled.

====================  ==========================================================================
nodes, edges          numbers, ids and edges of the graph
features              features of the nodes, and how they become the features that a learner sees
network, knowledge    tensors of the learner that sessions do not change; all others, and its values
label_store           labels of nodes
answers               configuration, class names and calibration, with which scores become answers
====================  ==========================================================================
"""

import math
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from graphfcl.errors import GraphfclWarning
from graphfcl.graph.tables.columns import ReadColumns
from graphfcl.methods import Learner, LearnerState, find_method, flat_settings
from graphfcl.production.answers.calibration import Calibration
from graphfcl.production.graph import encode_graph, stored_graph
from graphfcl.production.graph.place import AS_BEFORE, FolderUse
from graphfcl.production.labels.label_store import LabelRole, LabelStore
from graphfcl.production.labels.statements import read_statements, statements_column
from graphfcl.production.model.parts import Configuration, ModelParts
from graphfcl.production.store.checks import Damaged, need, need_usable, read_json, whole_number
from graphfcl.production.store.ids import id_arrays, read_ids
from graphfcl.production.store.parts import Part, PartSource
from graphfcl.runtime.files import canonical_json

if TYPE_CHECKING:
    import torch

PARTS = ("nodes", "edges", "features", "network", "knowledge", "label_store", "answers")
TENSOR_CHUNK = 1 << 18  # bytes; small, because a new class changes the last rows of some tensors
LABEL_CHUNK = 1 << 17  # bytes; small, because a new support changes the last chunk
LONGEST_NAME = 10_000  # characters of a class name
PLAIN = ("method", "way", "shot", "seed", "max_loss", "standardise")  # fields of a configuration that JSON can hold

ReadPart = Callable[[str], Part]


def encode(parts: ModelParts) -> dict[str, PartSource]:
    """Return the parts of a model by name."""
    store, state = parts.label_store, parts.learner.state()
    lasting = {key for key in state.tensors if key.startswith(parts.learner.lasting_tensors)}
    network = {key: tensor for key, tensor in state.tensors.items() if key in lasting}
    knowledge = {key: tensor for key, tensor in state.tensors.items() if key not in lasting}
    return {
        **encode_graph(parts.graph),
        "network": PartSource(lambda: _encode_tensors(network)),
        "knowledge": PartSource(lambda: _encode_tensors(knowledge, learner=state.values)),
        "label_store": label_source(store),
        "answers": PartSource(lambda: Part(_answers(parts))),
    }


def encode_in_memory(parts: ModelParts) -> dict[str, Part]:
    """Return the parts of a model as they would be read from a folder."""
    made = {name: source.make() for name, source in encode(parts).items()}
    return {name: replace(part, values=read_json(canonical_json(part.values))) for name, part in made.items()}


def decode(part: ReadPart, *, device: str, use: FolderUse = AS_BEFORE) -> ModelParts:
    """Decode a model; raises :class:`Damaged` or :class:`InputError` before anything invalid is used.

    ``use``: where the graph folder of a model on disk is.
    """
    graph = stored_graph(part, Path(), use)
    configuration, calibration, names = decode_answers(part)
    learner = decode_learner(part, configuration, graph.device(device))
    label_store = decode_label_store(part, names, graph.contains)
    need(len(label_store.names) == len(learner.classes_), "its learner and its classes differ in number")
    return ModelParts(configuration, graph.read(), learner, label_store, calibration)


# Answers


def decode_answers(part: ReadPart) -> tuple[Configuration, Calibration, LabelStore]:
    """Return configuration, calibration, and a label store with the names of the classes but without labelled nodes."""
    values = part("answers").values
    names = _decode_names(values)
    need(_named_twice(names) == values.get("united"), "two of its classes have the same name")
    configuration = _decode_configuration(values)
    with need_usable("its calibration cannot be used"):  # it is tried once
        calibration = Calibration.from_json(values["calibration"])
        need(
            bool(np.isfinite(calibration.unknown_scores(np.zeros(1))).all()),
            "its calibration gives values that are not finite",
        )
    return configuration, calibration, replace(names, fold=configuration.fold)


def _answers(parts: ModelParts) -> dict[str, Any]:
    configuration, label_store = parts.configuration, parts.label_store
    source = find_method(configuration.method).source
    return {
        **{name: getattr(configuration, name) for name in PLAIN},
        # Source of a method from outside graphfcl, for messages to a reader who lacks it; it is never imported.
        **({"source": source} if source else {}),
        "settings": parts.learner.settings_as_json(),
        **({} if configuration.columns is None else {"columns": configuration.columns.as_json()}),
        "classes": list(label_store.names),
        **({"integer_classes": True} if label_store.integers else {}),
        "united": _named_twice(label_store),
        "many": label_store.session_zero_columns,
        "calibration": parts.calibration.as_json(),
    }


def _decode_configuration(values: dict[str, Any]) -> Configuration:
    """Return the parameters that the user chose before the model was fitted."""
    source = str(values.get("source", ""))
    method = find_method(str(values.get("method")), source)
    if method.source != source:
        warnings.warn(
            f"the model was saved by other code of {method.name} ({source or 'graphfcl'}; here {method.source}): its "
            "answers may differ.",
            GraphfclWarning,
            2,
        )
    max_loss: Any = values.get("max_loss")
    standardise: Any = values.get("standardise")
    need(isinstance(max_loss, int | float) and max_loss > -math.inf, "its max_loss is not a number")
    need(isinstance(standardise, bool), "its standardise is neither true nor false")
    need(isinstance(values.get("settings"), dict), "it has no settings")
    with need_usable("its settings cannot be read"):
        settings = flat_settings(values["settings"])
    with need_usable("its names of table columns cannot be read"):
        columns = ReadColumns.from_json(values["columns"]) if "columns" in values else None
    return Configuration(
        method=method.name,
        settings=settings,
        way=whole_number(values.get("way"), "way", 1, 2**31),
        shot=whole_number(values.get("shot"), "shot", 1, 2**31),
        seed=whole_number(values.get("seed"), "seed", 0, 2**63),
        max_loss=min(max_loss, 1.0),  # a loss is at most 1
        standardise=standardise,
        columns=columns,
    )


def _decode_names(values: dict[str, Any]) -> LabelStore:
    """Return a label store with the names of the classes but without labelled nodes."""
    names = values.get("classes")
    if not isinstance(names, list) or not all(name is None or isinstance(name, str) for name in names):
        raise Damaged("it has no list of classes")
    need(all(name is None or 0 < len(name) <= LONGEST_NAME for name in names), "a class has an invalid name")
    need(any(name is not None for name in names), "it has no class")
    many = whole_number(values.get("many"), "the number of classes of session 0", 0, len(names))
    integers = values.get("integer_classes", False)
    need(isinstance(integers, bool), "its integer_classes is neither true nor false")
    none = np.zeros(0, np.int64)
    return LabelStore(none, none, none.astype(np.int8), tuple(names), many, integers=integers)


def _named_twice(label_store: LabelStore) -> list[int]:
    """Return columns that share their name with another column, because their classes were united."""
    counts = Counter(label_store.names)
    return [column for column, name in enumerate(label_store.names) if name is not None and counts[name] > 1]


# Learner


def _encode_tensors(tensors: "dict[str, torch.Tensor]", **values: Any) -> Part:
    """Make an array of each tensor; bfloat16, which NumPy lacks, is stored as int16 with the same bits."""
    import torch

    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    brain = sorted(name for name, tensor in plain.items() if tensor.dtype == torch.bfloat16)
    arrays = {name: (plain[name].view(torch.int16) if name in brain else plain[name]).numpy() for name in sorted(plain)}
    return Part({"bfloat16": brain, **values}, arrays, chunk=TENSOR_CHUNK)


def _decode_tensors(part: Part) -> "dict[str, torch.Tensor]":
    import torch

    brain = part.value("bfloat16")
    need(isinstance(brain, list) and all(name in part.arrays for name in brain), "it has a tensor of an unknown type")
    tensors = {name: torch.from_numpy(array) for name, array in part.all_arrays().items()}
    need(all(tensors[name].dtype == torch.int16 for name in brain), "it has a tensor of an unknown type")
    return tensors | {name: tensors[name].view(torch.bfloat16) for name in brain}


def decode_learner(part: ReadPart, configuration: Configuration, device: str) -> Learner:
    """Decode the learner."""
    network, knowledge = part("network"), part("knowledge")
    state = LearnerState({**_decode_tensors(network), **_decode_tensors(knowledge)}, knowledge.value("learner"))
    with need_usable("its parts do not fit together"):
        method = find_method(configuration.method)
        learner = method.make(dict(configuration.settings), seed=configuration.seed, device=device)
        learner.load_state(state)
        loaded = _kinds(learner.state())
    need(loaded == _kinds(state), "its learner has other tensors than its method needs")
    return learner


def _kinds(state: LearnerState) -> dict[str, tuple[Any, ...]]:
    """Return the type and shape of every tensor."""
    return {name: (tensor.dtype, tensor.shape) for name, tensor in state.tensors.items()}


# Labels


def label_source(store: LabelStore) -> PartSource:
    """Make the part ``label_store``."""
    return PartSource(lambda: encode_labels(store), (store.nodes, store.columns, store.parts, store.statements))


def encode_labels(store: LabelStore) -> Part:
    """Encode labelled nodes, and the statements about each label as JSON."""
    arrays = {"nodes": store.nodes, "columns": store.columns.astype(np.int32), "parts": store.parts.astype(np.int8)}
    if store.statements:
        arrays |= id_arrays([text or "" for text in statements_column(store.statements, store.nodes)], "said")
    return Part({}, arrays, chunk=LABEL_CHUNK)


def decode_label_store(part: ReadPart, names: LabelStore, contains: Callable[[np.ndarray], np.ndarray]) -> LabelStore:
    """Decode the label store. ``names``: label store with the class names. ``contains``: whether nodes exist in the
    graph.
    """
    stored = part("label_store")
    nodes, columns, parts = (stored.array(name) for name in ("nodes", "columns", "parts"))
    kinds = (nodes.dtype, columns.dtype, parts.dtype)
    need(kinds == (np.int64, np.int32, np.int8) and nodes.ndim == 1, "its label_store has arrays of a wrong type")
    need(nodes.shape == columns.shape == parts.shape, "the columns of its label_store differ in length")
    fits = (columns >= 0) & (columns < len(names.names)) & np.isin(parts, [int(role) for role in LabelRole])
    need(bool(fits.all()), "its label_store names a class or a role that does not exist")
    need(np.unique(nodes).size == nodes.size, "its label_store names a node twice")
    need(bool(contains(nodes).all()), "its label_store names a node that is not in its graph")
    store = replace(names, nodes=nodes, columns=columns.astype(np.int64), parts=parts)
    if "said.lengths" not in stored.arrays:
        return store
    texts = read_ids(stored, "said")
    need(len(texts) == nodes.size, "its label_store and who gave its labels differ in number")
    with need_usable("who gave its labels cannot be read"):
        return replace(store, statements=read_statements([str(text) or None for text in texts], nodes))
