"""Folders from a stranger, with right checksums: one sentence each, exit code 2, bounded memory and time."""

import json
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from graphfcl import GraphClassifier, InputError, ModelFolder
from tests.cli.command import assert_one_sentence, graphfcl_inside
from tests.production.crafting import CraftedFolder, refused

Change = Callable[[CraftedFolder], Any]


def set_in(values: Any, place: str, value: Any) -> None:
    *outer, last = place.split(".")
    for key in outer:
        values = values[key]
    values[last] = value


def _set(tree: str, place: str, value: Any) -> Change:
    return lambda folder: folder.change_part(tree, lambda found: set_in(found, place, value))


def _array(tree: str, array: str, change: Callable[[np.ndarray], np.ndarray]) -> Change:
    return lambda folder: folder.change_array(tree, array, change)


def _with(place: int, value: float) -> Callable[[np.ndarray], np.ndarray]:
    def change(array: np.ndarray) -> np.ndarray:
        array.reshape(-1)[place] = value
        return array

    return change


def _swapped(array: np.ndarray) -> np.ndarray:
    array[[0, 1]] = array[[1, 0]]
    return array


def _data(folder: CraftedFolder, value: float) -> None:
    count = folder.part("features")["arrays"]["columns"]["shape"][0]
    folder.set_array("features", "data", np.full(count, value, np.float32))


ARRAYS: dict[str, Change] = {
    "an edge to a node that is not there": _array("edges", "others", _with(3, 10**6)),
    "an edge to a negative node": _array("edges", "others", _with(3, -4)),
    "an edge of a node with itself": _array("edges", "others", lambda a: np.full_like(a, 499)),
    "an edge twice": _array("edges", "others", lambda a: np.sort(np.where(np.arange(a.size) == 1, a[0], a))),
    "rows that are too long": _array("edges", "counts", _with(7, 10**6)),
    "rows of a negative length": _array("edges", "counts", lambda a: _with(8, a[8] + 9)(_with(7, a[7] - 9)(a))),
    "a row too few": _array("edges", "counts", lambda a: a[:-1]),
    "edges of another type": _array("edges", "others", lambda a: a.astype(np.float64)),
    "a column of features that is not there": _array("features", "columns", _with(0, 10**6)),
    "a feature that is infinite": lambda f: _data(f, np.inf),
    "a feature that is no number": lambda f: _data(f, np.nan),
    "features in another order": _array("features", "columns", _swapped),
    "numbers that do not ascend": _array("nodes", "numbers", _swapped),
    "a number that was never given": _array("nodes", "numbers", _with(-1, 10**9)),
    "a node too few": _array("nodes", "numbers", lambda a: a[:-1]),
    "an id twice": _array("nodes", "ids", _with(1, 0)),
    "a labelled node that is not there": _array("label_store", "nodes", _with(0, 10**6)),
    "a labelled node twice": _array("label_store", "nodes", lambda a: _with(0, a[1])(a)),
    "a label of no class": _array("label_store", "columns", _with(0, 99)),
    "a label of no role": _array("label_store", "parts", _with(0, 9)),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_that_do_not_fit(crafted: CraftedFolder, name: str) -> None:
    ARRAYS[name](crafted)
    with pytest.raises(InputError) as caught:
        GraphClassifier.load(crafted.folder).parts().read()
    assert "is damaged, " in str(caught.value)
    with pytest.raises(InputError), ModelFolder(crafted.folder).editing():
        raise AssertionError("it was opened to be changed")


def _drop(tree: str, place: str, key: str) -> Change:
    def change(found: Any) -> None:
        for each in place.split("."):
            found = found[each]
        del found[key]

    return lambda folder: folder.change_part(tree, change)


VALUES: dict[str, tuple[Change, str]] = {
    "temperature 0": (_set("answers", "values.calibration.temperature", 0), "temperature"),
    "a negative temperature": (_set("answers", "values.calibration.temperature", -1.0), "temperature"),
    "a temperature in words": (_set("answers", "values.calibration.temperature", "hot"), "calibration"),
    "no calibration": (_set("answers", "values.calibration", None), "calibration"),
    "two classes of one name": (lambda f: f.change_part("answers", _same_names), "same name"),
    "a class without a name": (_set("answers", "values.classes", [""]), "name"),
    "no classes": (_set("answers", "values.classes", []), "class"),
    "a million hops": (_set("knowledge", "values.learner.hop", [2.0, 10**6, 0.7, 3, 0.0]), "hops"),
    "an infinite number of nodes": (_set("nodes", "values.next_number", 2**80), "number"),
    "a network for a billion features": (
        _set("knowledge", "values.learner.sizes", {"features": 10**9, "base": 4, "many": 8, "way": 2, "shot": 5}),
        "do not fit",
    ),
    "a shape of a trillion": (_set("features", "arrays.counts.shape", [10**12]), "shape"),
    "a chunk of a trillion": (lambda f: f.change_part("features", _trillion), "length of a chunk"),
    "a tensor of a trillion": (lambda f: f.change_part("network", _huge_tensor), "shape"),
    "no list of lengths": (_set("edges", "arrays.others.items", 7), "shape"),
    "no list of chunks": (_set("edges", "arrays.others.chunks", 7), "chunks"),
    "a chunk that is no checksum": (_set("edges", "arrays.others.chunks", "../../lock"), "chunks"),
    "a chunk that is not there": (_set("edges", "arrays.others.chunks", "0" * 64), "missing"),
    "an array of Python objects": (_set("edges", "arrays.others.dtype", "|O"), "type"),
    "an unknown method": (_set("answers", "values.method", "nonsense"), "nonsense"),
    "no list of types": (_set("network", "values.bfloat16", 7), "type"),
    "no basis": (_drop("network", "arrays", "frame.basis"), "parts do not fit together"),
    "no scales of the basis": (_drop("network", "arrays", "frame.basis.scales"), "parts do not fit together"),
    "a tensor in another type": (_set("network", "values.bfloat16", ["frame.basis"]), "type"),
    "a tensor that is not the learner's": (lambda f: f.change_part("network", _stray_tensor), "tensors"),
    "a part without arrays": (lambda f: f.write_part("edges", b"{}"), "description of a part"),
    "a part that is a list": (lambda f: f.write_part("edges", b"[]"), "description of a part"),
    "Infinity": (lambda f: f.write_part("edges", b'{"arrays":{},"values":{"x":Infinity}}'), "Infinity"),
    "a number beyond all": (lambda f: f.write_part("edges", b'{"arrays":{},"values":{"x":1e999}}'), "not finite"),
    "NaN": (lambda f: f.write_part("answers", b'{"arrays":{},"values":{"way":NaN}}'), "NaN"),
    "deep nesting": (lambda f: f.write_part("answers", b"[" * 100_000 + b"]" * 100_000), "deeply"),
    "a list of a million lists": (lambda f: f.write_part("edges", b"[" + b"[]," * 7_000_000 + b"[]]"), "too long"),
    "nesting": (lambda f: f.write_part("answers", b'{"values":' + b"[" * 99 + b"]" * 99 + b"}"), "deeply"),
}  # fmt: skip


def _same_names(part: dict[str, Any]) -> None:
    part["values"]["classes"][1] = part["values"]["classes"][0]


def _trillion(part: dict[str, Any]) -> None:
    part["arrays"]["counts"] |= {"shape": [10**12], "items": [10**12]}


def _stray_tensor(part: dict[str, Any]) -> None:
    part["arrays"]["stray"] = next(iter(part["arrays"].values()))


def _huge_tensor(part: dict[str, Any]) -> None:
    next(iter(part["arrays"].values()))["shape"] = [10**6, 10**6]


@pytest.mark.parametrize("name", VALUES)
def test_values_that_cannot_be(crafted: CraftedFolder, name: str) -> None:
    change, word = VALUES[name]
    change(crafted)
    refused(crafted, word)


def test_an_array_that_becomes_far_larger_than_the_file(crafted: CraftedFolder) -> None:
    zeros = bytes(1 << 23)
    name = crafted.put(zeros)

    def bomb(part: dict[str, Any]) -> None:
        part["arrays"]["others"] = {
            "dtype": "|i1",
            "shape": [1 << 33],
            "items": [1 << 23] * 1024,
            "chunks": name * 1024,
        }

    crafted.change_part("edges", bomb)
    refused(crafted, "repeats itself")
    crafted.change_part("edges", lambda part: part["arrays"]["others"].update(items=[1 << 23], shape=[1 << 23]))
    crafted.change_part("edges", lambda part: part["arrays"]["others"].update(chunks=name))
    for instead in (zeros[:-1], zlib.compress(zeros[:-1], 9), zlib.compress(bytes(1 << 29), 1), b"nonsense"):
        crafted.put(zeros, instead=instead)
        refused(crafted, "damaged")


@pytest.mark.parametrize("key", ["version", "parts", "values", "past", "changes"])
def test_a_page_without_a_key(crafted: CraftedFolder, key: str) -> None:
    crafted.change_manifest(lambda manifest: manifest.pop(key))
    refused(crafted, "damaged")
    assert graphfcl_inside("history", "--model", crafted.folder).code == 0


@pytest.mark.parametrize("number", [-5, 1, 2])
def test_a_format_that_is_none(crafted: CraftedFolder, number: int) -> None:
    crafted.query(f"PRAGMA user_version={number}")
    refused(crafted, "damaged")


@pytest.mark.parametrize("number", [True, 3.0, "3", None, -3])
def test_a_version_in_a_manifest_that_is_no_whole_number(crafted: CraftedFolder, number: Any) -> None:
    crafted.change_manifest(lambda manifest: set_in(manifest, "version", number))
    refused(crafted, "damaged", "its version is not a whole number")


@pytest.mark.parametrize("version", ["1", 1.0, True, [1], np.float64(1), b"1"])
def test_a_version_in_python_that_is_no_whole_number(kept: Path, version: Any) -> None:
    folder = ModelFolder(kept)
    for ask in (
        lambda: GraphClassifier.load(kept, version=version),
        lambda: folder.load(version),
        lambda: folder.manifest(version),
        lambda: folder.history(version),
        lambda: folder.rollback(version),
    ):
        with pytest.raises(InputError, match=r"^the version is .*: give a whole number, such as 3\.$"):
            ask()
    with pytest.raises(InputError, match=r"keep is .*: give a whole number"):
        folder.prune(version)
    assert folder.current() == 3
    assert len(folder.history(cast(int, np.int64(2)))) == 2


@pytest.mark.parametrize("node", [10**6, -1])
def test_a_ledger_with_a_node_that_is_not_there_is_damaged_for_every_reader(crafted: CraftedFolder, node: int) -> None:
    crafted.change_array("label_store", "nodes", _with(0, node))
    model = GraphClassifier.load(crafted.folder)
    for ask in (model.label_columns, lambda: model.labels([0]), model.info, model.card):
        with pytest.raises(
            InputError, match="version 3 is damaged, its label_store names a node that is not in its graph"
        ):
            ask()


@pytest.mark.parametrize("number", ["four", 4.5, b"4", -1, 0])
def test_numbers_of_versions_that_are_none(crafted: CraftedFolder, number: Any) -> None:
    crafted.query("UPDATE document SET number = ? WHERE kind = 'version' AND number = 3", number)
    done = graphfcl_inside("history", "--model", crafted.folder)
    assert done.code in (0, 2)
    if done.code:
        assert_one_sentence(done, "damaged")


@pytest.mark.parametrize("entry", [None, 7, {"what": 7}, {"what": "fit"}, {"what": "x", "when": "", "accuracy": 3}])
def test_changes_that_are_none(crafted: CraftedFolder, entry: Any) -> None:
    crafted.change_manifest(lambda manifest: set_in(manifest, "changes", [entry]))
    refused(crafted, "damaged")


def test_a_change_that_says_too_little_is_shown_as_what_it_is(crafted: CraftedFolder) -> None:
    crafted.change_manifest(
        lambda manifest: set_in(manifest, "changes", [{"what": "learn", "when": ""}, {"what": "y", "when": ""}])
    )
    done = graphfcl_inside("history", "--model", crafted.folder)
    assert done.code == 0, done.err


def test_an_erasure_that_was_never_begun_clears_no_foreign_folder(crafted: CraftedFolder, tmp_path: Path) -> None:
    foreign = tmp_path / "foreign"
    (foreign / "graph-1").mkdir(parents=True)
    (foreign / "graph-1" / "file").write_text("mine")
    (foreign / "answers-1.json").write_text("mine")
    place = {"beside": str(foreign), "full": str(foreign)}
    (crafted.folder / "graph.json").write_text(json.dumps({"work": place}))
    crafted.write_document("erasure", 0, b'{"report":{}}')
    ModelFolder(crafted.folder).prune(1)
    assert (foreign / "graph-1" / "file").read_text() == (foreign / "answers-1.json").read_text() == "mine"


def test_pipes_and_links_beside_a_model_are_neither_followed_nor_waited_for(
    crafted: CraftedFolder, tmp_path: Path
) -> None:
    lock = crafted.folder / "lock"
    lock.unlink(missing_ok=True)
    os.mkfifo(crafted.folder / "graph.json")
    os.mkfifo(lock)
    with pytest.raises(InputError, match="cannot be written"):
        ModelFolder(crafted.folder).rollback(1)
    lock.unlink()
    lock.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="cannot be written"):
        ModelFolder(crafted.folder).rollback(1)
    assert not (tmp_path / "elsewhere").exists()


def test_a_version_of_a_number_that_is_too_large_is_none(crafted: CraftedFolder) -> None:
    with pytest.raises(InputError, match="has no version"):
        ModelFolder(crafted.folder).rollback(10**20)
