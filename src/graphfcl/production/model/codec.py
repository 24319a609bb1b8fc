"""A model as seven trees of arrays and plain values, and back. Nothing is ever unpickled.

====================  ==========================================================================
nodes, edges          numbers, ids and edges of the graph
features              features of its nodes, and what turns them into those that a learner sees
network, knowledge    tensors of the learner that sessions leave as they are; all others, and its values
label_store                which node is labelled with which class
answers               configuration, class names and calibration: all that turns scores into answers
====================  ==========================================================================
"""

import math
import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from graphfcl.errors import GraphfclWarning, InputError
from graphfcl.graph.tables.columns import ReadColumns
from graphfcl.methods import Learner, LearnerState, Method, find_method, flat_settings
from graphfcl.production.answers.calibration import Calibration
from graphfcl.production.graph import stored_graph
from graphfcl.production.graph.place import FolderUse
from graphfcl.production.labels.label_store import LabelRole, LabelStore, read_statements, statements_column
from graphfcl.production.model.parts import Configuration, ModelParts
from graphfcl.production.store.block_arrays import BlockArrays
from graphfcl.production.store.damage import UNFIT, Damaged, first_line, need
from graphfcl.production.store.ids import read_ids, write_ids
from graphfcl.production.store.strict_json import whole_number
from graphfcl.production.store.tensors import read_tensors, write_tensors
from graphfcl.production.store.trees import Tree, TreeName, read_tree, remember_tree, write_once, write_tree

TREES = ("nodes", "edges", "features", "network", "knowledge", "label_store", "answers")
ROWS = 1 << 17  # bytes of a block of the label_store: a support more changes the last one
SAID = 1024  # labels whose statements lie in one block
LONGEST_NAME = 10_000  # letters of a class name


def encode(parts: ModelParts, arrays: BlockArrays) -> dict[str, TreeName]:
    """Write the trees of a model; what a manifest calls them."""
    label_store = parts.label_store
    state = parts.learner.state()
    lasting = {key for key in state.tensors if key.startswith(parts.learner.lasting_tensors)}
    network = write_tensors(arrays, {key: tensor for key, tensor in state.tensors.items() if key in lasting})
    knowledge = write_tensors(arrays, {key: tensor for key, tensor in state.tensors.items() if key not in lasting})
    return {
        **parts.graph.encode(arrays),
        "network": write_tree(arrays.objects, network),
        "knowledge": write_tree(
            arrays.objects, Tree(knowledge.arrays, {**knowledge.values, "learner": state.values})
        ),
        "label_store": write_once(
            arrays,
            label_store.nodes,
            (label_store.columns, label_store.parts, label_store.statements),
            lambda: _encode_label_store(label_store, arrays),
        ),
        "answers": write_tree(arrays.objects, Tree({}, _answers(parts))),
    }  # fmt: skip


def decode(
    trees: Mapping[str, TreeName],
    arrays: BlockArrays,
    *,
    device: str,
    use: FolderUse = FolderUse(),  # noqa: B008  # it is frozen
) -> ModelParts:
    """The reverse; raises :class:`Damaged` or :class:`InputError` before anything wrong is used.

    use: where the graph folder of a model on disk is.
    """
    graph = stored_graph(trees, arrays, Path(), use)
    answers = read_tree(arrays.objects, trees.get("answers"))
    names = decode_names(answers.values)
    need(named_twice(names) == answers.value("united"), "two of its classes have one name")
    configuration = decode_configuration(answers.values)
    learner = decode_learner(trees, arrays, configuration, graph.device(device))
    label_store = decode_label_store(trees, arrays, names)
    need(len(label_store.names) == len(learner.classes_), "its learner and its classes differ in number")
    need(bool(graph.contains(label_store.nodes).all()), "its label_store names a node that is not in its graph")
    return ModelParts(configuration, graph.read(), learner, label_store, decode_calibration(answers.values))


# Answers


def _answers(parts: ModelParts) -> dict[str, Any]:
    configuration, label_store = parts.configuration, parts.label_store
    source = find_method(configuration.method).source
    return {
        "method": configuration.method,
        # Where a method from outside comes from, so that a reader who lacks it can be told; it is never imported.
        **({"source": source} if source else {}),
        "settings": parts.learner.settings_as_json(),
        "way": configuration.way,
        "shot": configuration.shot,
        "seed": configuration.seed,
        "max_loss": configuration.max_loss,
        "standardise": configuration.standardise,
        **({} if configuration.columns is None else {"columns": configuration.columns.as_json()}),
        "classes": list(label_store.names),
        **({"integer_classes": True} if label_store.integers else {}),
        "united": named_twice(label_store),
        "many": label_store.session_zero_columns,
        "calibration": parts.calibration.as_json(),
    }


def decode_configuration(values: dict[str, Any]) -> Configuration:
    """What the user chose before the model was fitted."""
    method = find_method(str(values.get("method")), str(values.get("source", "")))
    _warn_of_other_code(method, str(values.get("source", "")))
    max_loss: Any = values.get("max_loss")
    standardise: Any = values.get("standardise")
    need(isinstance(max_loss, int | float) and max_loss > -math.inf, "its max_loss is no number")
    need(isinstance(standardise, bool), "its standardise is neither true nor false")
    need(isinstance(values.get("settings"), dict), "it has no settings")
    try:
        settings = flat_settings(values["settings"])
    except InputError:
        raise
    except UNFIT as error:
        raise Damaged(f"its settings cannot be read ({first_line(error)})") from error
    try:
        columns = ReadColumns.from_json(values["columns"]) if "columns" in values else None
    except ValueError as error:
        raise Damaged("its columns of tables have no names") from error
    return Configuration(
        method=method.name,
        settings=settings,
        way=whole_number(values.get("way"), "way", 1, 2**31),
        shot=whole_number(values.get("shot"), "shot", 1, 2**31),
        seed=whole_number(values.get("seed"), "seed", 0, 2**63),
        max_loss=min(max_loss, 1.0),  # nothing can lose more
        standardise=standardise,
        columns=columns,
    )


def decode_names(values: dict[str, Any]) -> LabelStore:
    """The catalogue of classes: a label_store without its labelled nodes."""
    names = values.get("classes")
    if not isinstance(names, list) or not all(name is None or isinstance(name, str) for name in names):
        raise Damaged("it has no list of classes")
    need(all(name is None or 0 < len(name) <= LONGEST_NAME for name in names), "a class has no name that can be")
    need(any(name is not None for name in names), "it has no class")
    many = whole_number(values.get("many"), "the number of classes of session 0", 0, len(names))
    integers = values.get("integer_classes", False)
    need(isinstance(integers, bool), "its integer_classes is neither true nor false")
    return LabelStore(
        nodes=np.zeros(0, np.int64),
        columns=np.zeros(0, np.int64),
        parts=np.zeros(0, np.int8),
        names=tuple(names),
        session_zero_columns=many,
        integers=integers,
    )


def named_twice(label_store: LabelStore) -> list[int]:
    """Columns that share their name with another: those of classes that were merged without learning them again."""
    counts = Counter(label_store.names)
    return [column for column, name in enumerate(label_store.names) if name is not None and counts[name] > 1]


def decode_calibration(values: dict[str, Any]) -> Calibration:
    """How scores become answers, tried once."""
    try:
        found = Calibration.from_json(values["calibration"])
        need(bool(np.isfinite(found.unknown_scores(np.zeros(1))).all()), "its calibration gives no numbers")
    except Damaged:
        raise
    except UNFIT as error:
        raise Damaged(f"its calibration cannot be used ({first_line(error)})") from error
    return found


def _warn_of_other_code(method: Method, source: str) -> None:
    if method.source != source:
        warnings.warn(
            f"the model was saved by other code of {method.name} ({source or 'graphfcl'}; here {method.source}): it "
            "may answer otherwise than it did.",
            GraphfclWarning,
            2,
        )


# Learner, label_store


def decode_learner(
    trees: Mapping[str, TreeName], arrays: BlockArrays, configuration: Configuration, device: str
) -> Learner:
    """The learner."""
    network, knowledge = (read_tree(arrays.objects, trees.get(name)) for name in ("network", "knowledge"))
    state = LearnerState(
        {**read_tensors(arrays, network), **read_tensors(arrays, knowledge)}, knowledge.value("learner")
    )
    learner = learner_of(configuration, state, device)
    need(_kinds(learner.state()) == _kinds(state), "its learner has other tensors than it should have")
    return learner


def _kinds(state: LearnerState) -> dict[str, tuple[Any, ...]]:
    """Type and shape of every tensor."""
    return {name: (tensor.dtype, tensor.shape) for name, tensor in state.tensors.items()}


def learner_of(configuration: Configuration, state: LearnerState, device: str) -> Learner:
    """A learner that was saved; one whose state does not fit it is damaged."""
    try:
        method = find_method(configuration.method)
        learner = method.make(dict(configuration.settings), seed=configuration.seed, device=device)
        learner.load_state(state)
    except InputError:
        raise
    except UNFIT as error:
        raise Damaged(f"its parts do not fit together ({first_line(error)})") from error
    return learner


def _encode_label_store(label_store: LabelStore, arrays: BlockArrays) -> Tree:
    columns = label_store.columns.astype(np.int32)
    stored = {"nodes": label_store.nodes, "columns": columns, "parts": label_store.parts.astype(np.int8)}
    found = {name: arrays.write(array, block=ROWS) for name, array in stored.items()}
    if label_store.statements:  # who said so and when, of each node as JSON, or nothing
        texts = [text or "" for text in statements_column(label_store)]
        cuts = np.arange(SAID, len(texts), SAID)
        found |= {f"said.{key}": index for key, index in write_ids(arrays, texts, cuts).items()}
    return Tree(found)


def decode_label_store(trees: Mapping[str, TreeName], arrays: BlockArrays, names: LabelStore) -> LabelStore:
    """The label_store, with the catalogue of its classes given."""
    tree = read_tree(arrays.objects, trees.get("label_store"))
    nodes, columns, parts = (arrays.read(tree.index(name)) for name in ("nodes", "columns", "parts"))
    need(
        nodes.dtype == np.int64 and columns.dtype == np.int32 and parts.dtype == np.int8, "its label_store is no table"
    )
    label_store = checked_label_store(nodes, columns.astype(np.int64), parts, names)
    said = {key.removeprefix("said."): index for key, index in tree.arrays.items() if key.startswith("said.")}
    if said:
        texts = read_ids(arrays, said)
        need(len(texts) == nodes.size, "its label_store and who gave its labels differ in number")
        try:
            label_store = replace(label_store, statements=read_statements([str(text) or None for text in texts], nodes))
        except UNFIT as error:
            raise Damaged(f"who gave its labels cannot be read ({first_line(error)})") from error
    known = (label_store.columns, label_store.parts, label_store.statements)
    remember_tree(arrays, label_store.nodes, known, trees["label_store"], tree)
    return label_store


def checked_label_store(nodes: np.ndarray, columns: np.ndarray, parts: np.ndarray, names: LabelStore) -> LabelStore:
    """A label_store of these labelled nodes."""
    need(
        nodes.ndim == 1 and nodes.shape == columns.shape == parts.shape,
        "the columns of its label_store differ in length",
    )
    known = (columns >= 0) & (columns < len(names.names)) & np.isin(parts, [int(role) for role in LabelRole])
    need(bool(known.all()), "its label_store names a class that is not there")
    need(np.unique(nodes).size == nodes.size, "its label_store names a node twice")
    return replace(names, nodes=nodes, columns=columns, parts=parts)
