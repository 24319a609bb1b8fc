"""What a learner that does not play by the rules can reach, on disk and in memory, and what it cannot."""

import pickle
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphfcl import (
    Graph,
    GraphFolder,
    Learner,
    Resources,
    Stream,
    evaluate,
    import_graph,
    load_dataset,
    make_stream,
)
from graphfcl.evaluation import compute_confusion
from graphfcl.graph import AnyGraph
from graphfcl.graph.folder.rows import FolderRows
from graphfcl.graph.folder.visible import VisibleFolder
from graphfcl.methods.blocks.folder_tables import FolderTables
from graphfcl.metrics import balanced_accuracy
from tests.stream.hostile import (
    DatasetLoader,
    FileReader,
    FolderReader,
    Forger,
    FrameReader,
    NearestPlace,
    ObjectCollector,
    Peeking,
    public_keys,
    reachable,
    repeated_draws,
    rows_of,
    unshuffled,
    write_sorted_tables,
)

SEED = 3
POINTS = 0.02  # from chance
SMALL = "synthetic:nodes=400,edges=1200,classes=6,features=60"
RULES: dict[str, Any] = {"base": 2, "pseudo_novel": 1, "way": 1}


@pytest.fixture(scope="module")
def sorted_folder(tmp_path_factory: pytest.TempPathFactory) -> GraphFolder:
    place = tmp_path_factory.mktemp("sorted")
    return import_graph(str(write_sorted_tables(place / "tables")), place / "folder")


@pytest.fixture(scope="module")
def small_folder(tmp_path_factory: pytest.TempPathFactory) -> GraphFolder:
    return import_graph(SMALL, tmp_path_factory.mktemp("small") / "folder")


def graph_of(folder: GraphFolder, work: Path, *, on_disk: bool) -> AnyGraph:
    graph = folder.with_resources(Resources(work, 4 << 30))
    return graph if on_disk else graph.loaded()


def at_the_ends(learners: Sequence[Learner], stream: Stream) -> list[tuple[float, float]]:
    """Balanced accuracy of each learner after session 0 and after the last one."""
    for learner in learners:
        learner.fit(stream.base)
    first = [balanced_accuracy(compute_confusion(learner, stream, 0)) for learner in learners]
    for number in range(1, len(stream) + 1):
        session = stream.session(number)
        for learner in learners:
            learner.learn(session)
    return list(
        zip(
            first,
            (balanced_accuracy(compute_confusion(learner, stream, len(stream))) for learner in learners),
            strict=True,
        )
    )


def assert_at_chance(learners: dict[Any, Learner], stream: Stream) -> None:
    """learners: by what they guess from. None of them learns anything of the classes."""
    chances = (1 / stream.classes_seen(0), 1 / stream.classes_seen(len(stream)))
    for what, accuracies in zip(learners, at_the_ends([*learners.values()], stream), strict=True):
        for accuracy, chance in zip(accuracies, chances, strict=True):
            assert abs(accuracy - chance) < POINTS, (what, accuracy, chance)


# Node numbers and the order of rows


@pytest.mark.parametrize("on_disk", [True, False])
def test_no_public_number_puts_a_sorted_table_back_into_its_order(
    sorted_folder: GraphFolder, tmp_path: Path, on_disk: bool
) -> None:
    stream = make_stream(graph_of(sorted_folder, tmp_path, on_disk=on_disk), seed=SEED, base=4, pseudo_novel=2)
    learners: dict[Any, Learner] = {"numbers": NearestPlace(), "rows": NearestPlace(rows_of)}
    keys = public_keys(sorted_folder, SEED)
    assert len(keys) > 15
    for key, by_rows, forwards in product(sorted(keys), (True, False) if on_disk else (False,), (True, False)):
        place = unshuffled(sorted_folder.node_count, key, by_rows=by_rows, forwards=forwards)
        learners[key, by_rows, forwards] = NearestPlace(place)
    assert_at_chance(learners, stream)


@pytest.mark.parametrize("track", ["transductive", "open"])
def test_the_draw_of_test_nodes_cannot_be_repeated(sorted_folder: GraphFolder, tmp_path: Path, track: str) -> None:
    graph = graph_of(sorted_folder, tmp_path, on_disk=True)
    stream = make_stream(graph, seed=SEED, base=4, pseudo_novel=2, track=track)
    assert repeated_draws(stream.base, SEED) == []


def test_the_key_of_the_order_would_say_it_all(sorted_folder: GraphFolder, tmp_path: Path) -> None:
    """The learners of the test above are no straw men: with the key, which no learner is handed, they read classes."""
    stream = make_stream(graph_of(sorted_folder, tmp_path, on_disk=True), seed=SEED, base=4, pseudo_novel=2)
    place = unshuffled(sorted_folder.node_count, sorted_folder.shuffle.key, by_rows=True, forwards=False)
    assert min(at_the_ends([NearestPlace(place)], stream)[0]) > 0.6


@pytest.mark.long
@pytest.mark.parametrize("on_disk", [True, False])
def test_wordnet_as_a_folder_does_not_tell_classes_by_order(
    wordnet_folder: GraphFolder, tmp_path: Path, on_disk: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Features and edges are not cut out: the learners read neither."""
    from tests.stream.test_leaks import bare_cut

    monkeypatch.setattr(Graph, "visible", bare_cut)
    _, protocol = load_dataset("wordnet")
    stream = make_stream(graph_of(wordnet_folder, tmp_path, on_disk=on_disk), protocol, seed=SEED)
    learners: dict[Any, Learner] = {"numbers": NearestPlace(), "rows": NearestPlace(rows_of)}
    for key, by_rows in product(sorted(public_keys(wordnet_folder, SEED)), (True, False) if on_disk else (False,)):
        place = unshuffled(wordnet_folder.node_count, key, by_rows=by_rows, forwards=False)
        learners[key, by_rows] = NearestPlace(place)
    assert_at_chance(learners, stream)


@pytest.fixture(scope="module")
def wordnet_folder(tmp_path_factory: pytest.TempPathFactory) -> GraphFolder:
    return import_graph("wordnet", tmp_path_factory.mktemp("wordnet") / "folder")


def test_a_synthetic_folder_is_not_in_the_order_of_its_public_seed(small_folder: GraphFolder) -> None:
    """The generator places nodes by the seed of the name; the rows of the folder are in another order."""
    ids = small_folder.ids(np.arange(small_folder.node_count))
    assert (ids == np.arange(ids.size)).mean() < 0.05
    for key in public_keys(small_folder, 0):
        place = unshuffled(ids.size, key, by_rows=False, forwards=False)(None, np.arange(ids.size))  # type: ignore[arg-type]
        assert (place == ids).mean() < 0.05


def test_a_folder_gives_one_stream_on_disk_and_in_memory(small_folder: GraphFolder, tmp_path: Path) -> None:
    on_disk, in_memory = (
        make_stream(graph_of(small_folder, tmp_path, on_disk=each), seed=SEED, **RULES) for each in (True, False)
    )
    again = make_stream(graph_of(small_folder, tmp_path, on_disk=True), seed=SEED, **RULES)
    other = make_stream(graph_of(small_folder, tmp_path, on_disk=True), seed=SEED + 1, **RULES)
    np.testing.assert_array_equal(on_disk.node_of_number, in_memory.node_of_number)
    np.testing.assert_array_equal(on_disk.node_of_number, again.node_of_number)
    assert (on_disk.node_of_number == other.node_of_number).mean() < 0.05
    assert (on_disk.node_of_number == np.arange(small_folder.node_count)).mean() < 0.05
    for session in range(len(on_disk) + 1):
        for left, right in zip(
            (on_disk.queries(session).nodes, on_disk.evaluation_graph(session).nodes),
            (in_memory.queries(session).nodes, in_memory.evaluation_graph(session).nodes),
            strict=True,
        ):
            np.testing.assert_array_equal(left, right)
        seen: Any = on_disk.evaluation_graph(session)
        shown = in_memory.evaluation_graph(session)
        rows = seen.rows(shown.nodes)
        order = np.argsort(rows)
        np.testing.assert_allclose(seen.features_at(rows[order]).toarray(), shown.loaded().features.toarray()[order])
        adjacency = seen.neighbours_at(rows[order])[:, rows[order]].toarray()
        np.testing.assert_array_equal(adjacency, shown.loaded().adjacency.toarray()[order][:, order])


# What is handed out


@pytest.mark.parametrize("track", ["transductive", "open"])
def test_a_learner_on_disk_cannot_reach_labels_queries_or_future_nodes(
    sorted_folder: GraphFolder, small_folder: GraphFolder, tmp_path: Path, track: Any
) -> None:
    for folder in (sorted_folder, small_folder):  # dense and sparse features
        stream = make_stream(graph_of(folder, tmp_path, on_disk=True), seed=SEED, track=track, **RULES)
        view = [array for array in reachable(stream.view) if isinstance(array, np.ndarray)]
        secrets = [folder.labels, stream.split.roles, stream._columns, stream._sessions, stream.node_of_number, *view]
        for number, handed in enumerate([stream.base, *stream]):
            things = reachable(handed)
            assert any(isinstance(thing, VisibleFolder) for thing in things)
            kinds = {"Graph", "GraphFolder", "Manifest", "Shuffle", "Stream", "Split", "PaperSession"}
            assert not kinds & {type(thing).__name__ for thing in things}
            assert not set(stream.classes[stream.classes_seen(number) :]) & {x for x in things if isinstance(x, str)}
            arrays = [thing for thing in things if isinstance(thing, np.ndarray) and thing.size]
            assert not any(np.shares_memory(array, secret) for array in arrays for secret in secrets)
            for answers in (folder.labels, stream._columns, folder.ids(np.arange(folder.node_count))):
                assert not any(np.array_equal(array, answers) for array in arrays)
            hidden = np.ones(folder.node_count, dtype=bool)
            hidden[stream.node_of_number[stream.evaluation_numbers(number)]] = False
            assert (track == "open" or number == len(stream)) == (not hidden.any())
            readers = [thing for thing in things if isinstance(thing, FolderRows)]
            assert readers
            for reader in readers:
                assert {path.split(".")[0] for path in reader.files} == {"edges", "features"}
                for rows in (reader, pickle.loads(pickle.dumps(reader)), reader.hiding(None)):
                    assert not abs(rows.features(0, folder.node_count)[np.flatnonzero(hidden)]).sum()
                    part = rows.neighbours(0, folder.node_count)
                    assert not hidden[part.indices].any()
                    assert not np.diff(part.indptr)[hidden].any()


def test_tasks_are_handed_no_labels(small_folder: GraphFolder, tmp_path: Path) -> None:
    stream = make_stream(graph_of(small_folder, tmp_path, on_disk=True), seed=SEED, **RULES)
    visible: Any = stream.base.visible_graph
    inputs = FolderTables(visible, 0, unit=True)
    source = pickle.loads(pickle.dumps(inputs.source))
    assert source.features(0, 5).shape[0] == 5
    things = reachable((inputs, source))
    assert any(isinstance(thing, FolderRows) for thing in things)
    assert not {"Graph", "GraphFolder", "Manifest"} & {type(thing).__name__ for thing in things}


@pytest.mark.parametrize("on_disk", [True, False])
def test_labels_are_no_attribute_of_what_is_handed_out(
    small_folder: GraphFolder, tmp_path: Path, on_disk: bool
) -> None:
    stream = make_stream(graph_of(small_folder, tmp_path, on_disk=on_disk), seed=SEED, **RULES)
    if on_disk:
        evaluate(FolderReader(), stream)
    for name in ("labels", "folder", "graph", "node_ids", "class_names"):
        assert not hasattr(stream.base.visible_graph, name)


@pytest.mark.parametrize("on_disk", [True, False])
def test_arrays_that_are_made_writable_change_nothing_for_the_evaluator(
    small_folder: GraphFolder, tmp_path: Path, on_disk: bool
) -> None:
    """Neither the forger's own results nor those of a learner that comes after it."""
    stream = make_stream(graph_of(small_folder, tmp_path, on_disk=on_disk), seed=SEED, **RULES)
    before = evaluate(NearestPlace(), stream)
    forger = Forger(reachable)
    forged = evaluate(forger, stream)
    after = evaluate(NearestPlace(), stream)
    assert forger.written > 0
    assert (forger.refused > 0) == on_disk  # mask, numbers and view of a folder cannot be made writable
    for first, second, third in zip(before.confusions, forged.confusions, after.confusions, strict=True):
        np.testing.assert_array_equal(first, second)
        np.testing.assert_array_equal(first, third)


# What one process cannot prevent: docs/visibility.md lists it


def peeking_learners(on_disk: bool) -> list[Peeking]:
    learners: list[Peeking] = [FrameReader(), ObjectCollector()]
    return [*learners, FileReader()] if on_disk else [*learners, DatasetLoader(SMALL, SEED, **RULES)]


@pytest.mark.parametrize("on_disk", [True, False])
def test_what_one_process_cannot_prevent(small_folder: GraphFolder, tmp_path: Path, on_disk: bool) -> None:
    """These learners answer everything right; only reading their code finds them out."""
    graph = graph_of(small_folder, tmp_path, on_disk=True) if on_disk else load_dataset(SMALL)[0]
    stream = make_stream(graph, seed=SEED, **RULES)
    for learner in peeking_learners(on_disk):
        found = evaluate(learner, stream)
        assert found.metrics.sessions[-1].balanced_accuracy == 1, learner
    said = (Path(__file__).parents[2] / "docs" / "visibility.md").read_text()
    for words in ("stack frames", "`gc`", "`load_dataset`", "files of the graph"):
        assert words in said
