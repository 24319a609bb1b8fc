"""Saved streams: read back bit for bit, refused when they do not fit."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from graphfcl import InputError, Protocol, Stream, build_graph, load_stream, make_stream, save_stream
from graphfcl.graph import TextSettings
from graphfcl.runtime.files import canonical_json, sha256_of
from tests.graphs import random_graph
from tests.stream.test_stream import assert_same_graph, streams


def assert_same_stream(first: Stream, second: Stream) -> None:
    assert (first.protocol, first.seed, first.classes) == (second.protocol, second.seed, second.classes)
    assert first.split.left_out == second.split.left_out
    assert first.base.pseudo_novel_tasks == second.base.pseudo_novel_tasks
    for field in ("train", "train_labels", "validation", "validation_labels"):
        np.testing.assert_array_equal(getattr(first.base, field), getattr(second.base, field))
    assert_same_graph(first.base.visible_graph.loaded(), second.base.visible_graph.loaded())
    for left, right in zip(first, second, strict=True):
        np.testing.assert_array_equal(left.supports, right.supports)
        np.testing.assert_array_equal(left.support_labels, right.support_labels)
        assert_same_graph(left.visible_graph.loaded(), right.visible_graph.loaded())
        np.testing.assert_array_equal(first.queries(left.number).nodes, second.queries(left.number).nodes)


@given(streams() | streams(name="paper"))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_saved_stream_is_the_same_stream(tmp_path: Path, stream: Stream) -> None:
    save_stream(stream, tmp_path / "stream.json")
    assert_same_stream(stream, load_stream(tmp_path / "stream.json", stream.graph))


def test_text_weights_are_the_same(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    graph = build_graph(
        np.zeros((60, 60)), _counts(random), np.repeat(np.arange(4), 15), text=TextSettings(2), name="texts"
    )
    stream = make_stream(graph, Protocol(base=1, pseudo_novel=1, way=1))
    save_stream(stream, tmp_path / "stream.json")
    assert_same_stream(stream, load_stream(tmp_path / "stream.json", graph))


def _counts(random: np.random.Generator) -> object:
    from scipy import sparse

    return sparse.csr_array(random.poisson(0.4, (60, 30)).astype(np.float32))


def test_another_graph_is_refused(tmp_path: Path) -> None:
    save_stream(make_stream(random_graph(0, [20] * 5)), tmp_path / "stream.json")
    with pytest.raises(InputError, match=r"stream\.json was made for another graph .*make a new stream"):
        load_stream(tmp_path / "stream.json", random_graph(1, [20] * 5))


def test_damage_is_refused(tmp_path: Path) -> None:
    graph = random_graph(0, [20] * 5)
    path = tmp_path / "stream.json"
    save_stream(make_stream(graph), path)
    whole = path.read_text()
    content = json.loads(whole)

    path.write_text(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="cut short"):
        load_stream(path, graph)
    content["seed"] = 7
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match="checksum"):
        load_stream(path, graph)
    path.write_text(json.dumps({**content, "version": 99}))
    with pytest.raises(InputError, match="format 99"):
        load_stream(path, graph)
    path.write_text("[]")
    with pytest.raises(InputError, match="not a saved stream"):
        load_stream(path, graph)
    with pytest.raises(InputError, match="does not exist"):
        load_stream(tmp_path / "none.json", graph)


def test_what_stood_there_stays_when_writing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = make_stream(random_graph(0, [20] * 5))
    path = tmp_path / "stream.json"
    path.write_text("old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("graphfcl.runtime.files.os.fsync", full)
    with pytest.raises(InputError, match="No space left"):
        save_stream(stream, path)
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["stream.json"]


def _written(content: dict[str, Any], path: Path) -> Path:
    """As somebody would who edits a file and computes its checksum again."""
    content = {key: value for key, value in content.items() if key != "sha256"}
    checksum = sha256_of(canonical_json(content, ascii_only=False))
    path.write_text(json.dumps({**content, "sha256": checksum}, ensure_ascii=False))
    return path


def test_a_file_cannot_change_what_learners_see_of_features(tmp_path: Path) -> None:
    values = np.random.default_rng(0).random((100, 3))
    dense_graph = build_graph(np.zeros((100, 100)), values, np.repeat(np.arange(5), 20))
    path = tmp_path / "stream.json"
    changes = {
        "text": {"columns": [0, 1], "inverse_document_frequency": [1.0, 1.0]},
        "dense": {"mean": [9.0, 9.0, 9.0], "deviation": [1.0, 1.0, 1.0]},
    }
    for graph in (random_graph(0, [20] * 5), dense_graph):
        stream = make_stream(graph)
        save_stream(stream, path)
        assert_same_stream(stream, load_stream(_written({**json.loads(path.read_text()), **changes}, path), graph))


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("seed", "0", "not a complete stream"),
        ("seed", -1, "not a complete stream"),
        ("classes", [{"name": "gone"}], "not a complete stream"),
        ("graph", {"sha256": 3}, "not a complete stream"),
        ("left_out", None, ""),
    ],
)
def test_edited_streams_are_one_sentence(tmp_path: Path, key: str, value: Any, message: str) -> None:
    graph = random_graph(0, [20] * 5)
    save_stream(make_stream(graph), tmp_path / "stream.json")
    content = json.loads((tmp_path / "stream.json").read_text())
    path = _written({**content, key: value}, tmp_path / "stream.json")
    if message:
        with pytest.raises(InputError, match=message):
            load_stream(path, graph)
    else:
        load_stream(path, graph)


def test_a_node_that_the_graph_lacks_is_named(tmp_path: Path) -> None:
    graph = random_graph(0, [20] * 5)
    save_stream(make_stream(graph), tmp_path / "stream.json")
    content = json.loads((tmp_path / "stream.json").read_text())
    content["classes"][0]["nodes"]["train"].append(12345)
    with pytest.raises(InputError, match=r"the graph has no node .*12345"):
        load_stream(_written(content, tmp_path / "stream.json"), graph)
