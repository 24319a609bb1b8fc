"""What is read and written: an answer for one node touches little, and a version writes what changed."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from graphfcl import GraphClassifier, ModelFolder
from graphfcl.graph.ids import text_array
from graphfcl.production.answers.version_cache import CacheContents
from graphfcl.production.store.parts import read_part
from tests.production.crafting import CraftedDatabase
from tests.production.models import cached, graph_in_memory, members, same_answers


def disk(folder: Path, *names: str) -> int:
    return sum((folder / name).stat().st_size for name in names or ("model.sqlite", "cache.sqlite"))


def chunk_bytes(folder: Path) -> int:
    sql = "SELECT (SELECT sum(length(data)) FROM chunk) + (SELECT sum(length(content)) FROM document)"
    return CraftedDatabase(folder / "model.sqlite").query(sql)[0][0]


def test_one_node_of_a_large_model_is_answered_from_a_hundredth_of_its_bytes(folder: Path) -> None:
    """The cache of a million nodes, as the system was asked for its bytes."""
    nodes, model = 1_000_000, GraphClassifier.load(folder)
    model.parts().read()
    assert model._state is not None
    stored = model._state.answering.stored
    versions = model._versions
    assert stored is not None
    assert versions is not None
    columns = len(stored.names.names)
    scores = np.random.default_rng(0).normal(size=(nodes, columns)).astype(np.float32)
    readings = np.stack([np.linspace(0, 1, nodes), np.ones(nodes)], axis=1)
    table = np.zeros((nodes, 32), np.float16)
    for ids in (np.arange(nodes)[::-1], text_array([f"node-{number}" for number in range(nodes)])):
        versions.cache.write(CacheContents(stored.keys, ids, table, scores, readings), lambda: True)
        with open("/proc/self/io") as file:
            before = int(file.readline().split()[1])
        reader = GraphClassifier.load(folder)
        assert reader._state is not None
        assert reader._state.answering.stored is not None
        cached = reader._state.answering.stored.cached_answers([ids[7:8].tolist()[0]])
        assert cached is not None
        with open("/proc/self/io") as file:
            read = int(file.readline().split()[1]) - before
        assert np.array_equal(cached[1].scores[0], scores[7])
        assert read < 0.01 * disk(folder), f"{read:,} bytes of {disk(folder):,}"


def test_an_answer_for_one_node_needs_a_few_chunks(folder: Path) -> None:
    whole = GraphClassifier.load(folder)
    expected = whole.prediction_columns()
    node = whole.node_ids_[7].item()
    database = CraftedDatabase(folder / "model.sqlite")
    needed = database.document("version", 3)["parts"]["answers"]
    database.query("DELETE FROM chunk WHERE sha256 != ?", bytes.fromhex(needed))
    database.query("DELETE FROM document WHERE number < 3")
    model = GraphClassifier.load(folder)
    found = model.prediction_columns([node])
    for name, values in found.items():  # the softmax of one row and of many may differ in its last digit
        wanted = expected[name][7]
        assert values[0] == (pytest.approx(wanted, rel=1e-12) if name in ("probability", "unknown_score") else wanted)
    assert model.predict([str(node)])[0] == expected["class"][7]
    assert model.bytes_read() < disk(folder)


def test_bytes_for_one_node_do_not_grow_with_embeddings_or_versions(folder: Path) -> None:
    def read() -> int:
        model = GraphClassifier.load(folder)
        model.predict([members("class-00")[0]])
        return model.bytes_read()

    once = read()
    assert once < 0.4 * disk(folder, "cache.sqlite"), "the table of embeddings is not read"
    model = GraphClassifier.load(folder)
    for number in range(12):
        model.rename(model.classes_[0], f"name {number}").save(folder)
    model.wait()
    assert abs(read() - once) < 0.1 * once
    assert len(GraphClassifier.load(folder).history) == 15


def test_history_is_read_when_somebody_looks(folder: Path) -> None:
    model = GraphClassifier.load(folder)
    before = model.bytes_read()
    assert len(model.history) == 3
    assert model.bytes_read() == before
    assert [entry["what"] for entry in model.history] == ["fit", "learn", "grow"]
    assert model.bytes_read() > before
    model.learn({"nine": members("class-09")[:5]})
    assert model.history[-1]["what"] == "learn"
    assert len(model.history) == 4


def test_the_last_accuracy_is_known_without_the_history(folder: Path) -> None:
    with ModelFolder(folder).editing() as model:
        model.rename("class-00", "null")
    model = GraphClassifier.load(folder)
    assert "null" in (model.history.last_accuracy() or {})["classes"]
    CraftedDatabase(folder / "model.sqlite").query("DELETE FROM document WHERE number < 4")
    model = GraphClassifier.load(folder)
    model.max_loss = -1.0
    model.learn({"nine": members("class-09")[:5]})
    assert "lost" in model.history[-1]["warning"]


def test_a_learn_writes_what_it_changed(folder: Path) -> None:
    parts = ("nodes", "edges", "features", "network")
    written = []
    nodes = members("class-09")
    for number in range(4):
        before = chunk_bytes(folder)
        with ModelFolder(folder).editing(write_cache=False) as model:
            model.learn({f"new {number}": nodes[2 * number : 2 * number + 2]})
        written.append(chunk_bytes(folder) - before)
    manifests = [ModelFolder(folder).manifest(version)["parts"] for version in (3, 7)]
    assert all(manifests[0][part] == manifests[1][part] for part in parts)
    assert max(written) < 1.3 * min(written), "a version more costs as much as the one before"


def test_what_did_not_change_is_not_looked_at_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from graphfcl.production.graph import growing_codec
    from graphfcl.production.model import codec

    def never(*_: object) -> None:
        raise AssertionError("it was encoded again")

    with ModelFolder(folder).editing() as model:
        model.learn({"nine": members("class-09")[:5]})
        for name in ("encode_nodes", "encode_edges", "encode_features"):
            monkeypatch.setattr(growing_codec, name, never)
    model.wait()
    with ModelFolder(folder).editing() as model:
        model.rename("nine", "neun")
        monkeypatch.setattr(codec, "encode_labels", never)
    assert GraphClassifier.load(folder).version == 5


def test_a_node_more_changes_the_last_chunks_and_one_less_its_own(tmp_path: Path, model: GraphClassifier) -> None:
    def chunks(part: str) -> dict[str, set[str]]:
        folder = ModelFolder(tmp_path / "m")
        stored = read_part(folder._versions.database, folder.manifest(model.version or 0)["parts"][part])
        return {name: {chunk for chunk, _ in stored.stored(name).sizes()} for name in stored.arrays}

    ids = model.node_ids_
    model.save(tmp_path / "m")
    first = {part: chunks(part) for part in ("nodes", "edges", "features")}
    model.grow(nodes=([10**6], graph_in_memory(model).features[:1], None), edges=([10**6], [ids[3].item()], None))
    model.save(tmp_path / "m")
    second = {part: chunks(part) for part in ("nodes", "edges", "features")}
    model.remove_nodes([10**6])
    model.save(tmp_path / "m")
    third = {part: chunks(part) for part in ("nodes", "edges", "features")}
    for part, arrays in first.items():
        for name, names in arrays.items():
            assert len(second[part][name] - names) <= 1, (part, name)
            assert third[part][name] == names, (part, name)
    model.wait()


def _flip(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


def test_a_damaged_cache_is_computed_again_and_never_believed(folder: Path) -> None:
    expected, path = GraphClassifier.load(folder), folder / "cache.sqlite"
    expected.all_scores()
    whole = path.read_bytes()
    for place in np.linspace(0, len(whole) - 1, 25).astype(int).tolist():
        path.write_bytes(whole)
        _flip(path, place)
        model = GraphClassifier.load(folder)
        same_answers(model, expected, 1e-5)
        node = model.node_ids_[11].item()
        assert GraphClassifier.load(folder).predict([node])[0] == expected.predict([node])[0]
        model.wait()


def test_the_cache_of_another_model_is_not_taken(folder: Path, tmp_path: Path) -> None:
    other = GraphClassifier.load(shutil.copytree(folder, tmp_path / "other"))
    other.learn({"nine": members("class-09")[:5]}).save(tmp_path / "other")
    other.wait()
    shutil.copy(tmp_path / "other" / "cache.sqlite", folder / "cache.sqlite")
    model = GraphClassifier.load(folder)
    assert not cached(model)
    assert "nine" not in model.classes_


def test_an_older_version_leaves_the_cache_of_the_newest_alone(folder: Path) -> None:
    before = (folder / "cache.sqlite").read_bytes()
    old = GraphClassifier.load(folder, version=1)
    old.predict()
    old.wait()
    assert (folder / "cache.sqlite").read_bytes() == before


def test_a_command_leaves_the_cache_to_the_next_reader(folder: Path) -> None:
    with ModelFolder(folder).editing(write_cache=False) as model:
        model.learn({"nine": members("class-09")[:5]})
    reader = GraphClassifier.load(folder)
    assert not cached(reader)
    reader.predict([members("class-00")[0]])
    reader.wait()
    again = GraphClassifier.load(folder)
    assert cached(again)
    same_answers(again, reader, 1e-6)


@pytest.mark.parametrize(
    "change", [("rename", "class-00", "zero"), ("retire", "class-01"), ("merge", "class-02", "class-03")]
)
def test_after_any_change_the_second_reader_finds_its_answers(folder: Path, change: tuple[str, ...]) -> None:
    with ModelFolder(folder).editing(write_cache=False) as model:
        getattr(model, change[0])(*change[1:])
    first = GraphClassifier.load(folder)
    node = first.node_ids_[7].item()
    expected = first.prediction_columns([node])
    first.wait()
    second = GraphClassifier.load(folder)
    assert second._state is not None
    assert second._state.answering.stored is not None
    assert second._state.answering.stored.cached_answers([node]) is not None
    found = second.prediction_columns([node])
    assert found["class"][0] == expected["class"][0]
    assert found["unknown_score"][0] == pytest.approx(expected["unknown_score"][0])


def test_a_command_that_changes_no_answer_leaves_the_cache_to_the_next_reader(folder: Path) -> None:
    (folder / "cache.sqlite").unlink()
    with ModelFolder(folder).editing(write_cache=False) as model:
        model.rename("class-00", "zero")
    model.wait()
    assert not (folder / "cache.sqlite").exists()


def test_an_answer_does_not_fail_because_it_cannot_be_kept(folder: Path) -> None:
    (folder / "cache.sqlite").unlink()
    model = GraphClassifier.load(folder)
    model.graph_, model.learner_, model.label_store_  # noqa: B018 - all of it is read
    (folder / "model.sqlite").write_bytes(b"nonsense")
    assert model.predict().size == 500


def test_many_ids_are_found_at_once(folder: Path) -> None:
    whole = GraphClassifier.load(folder)
    expected = whole.prediction_columns()
    ids = [*whole.node_ids_.tolist()] * 3  # more than are read one by one
    found = GraphClassifier.load(folder).prediction_columns(ids)
    assert found["class"].tolist() == expected["class"].tolist() * 3
    np.testing.assert_allclose(found["unknown_score"], np.tile(expected["unknown_score"], 3))
