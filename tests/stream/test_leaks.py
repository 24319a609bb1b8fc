"""What a stream must not betray: numbers, who else was there, columns of the future, raw scales."""

from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from graphfcl import (
    NO_STORE,
    SILENT,
    BaseSession,
    EncoderStore,
    Graph,
    InputError,
    Learner,
    Progress,
    Protocol,
    Session,
    Stream,
    VisibleGraph,
    VisibleNodes,
    build_graph,
    evaluate,
    load_dataset,
    load_stream,
    make_stream,
    save_stream,
)
from graphfcl.datasets import all_datasets, data_folder
from graphfcl.evaluation import compute_confusion
from graphfcl.experiments.encoders import EncoderFolder
from graphfcl.graph import KnownColumns, Standardisation
from graphfcl.metrics import balanced_accuracy
from tests.graphs import graphs
from tests.marks import some_first

TRACKS = ("transductive", "isolated", "open")
SEEDS = 10
RESEARCH = ("amazon-clothing-20", "cora-topics", "coauthor-cs", "cora-ml", "amazon-computers")
MISSING = {d.name for d in all_datasets() if d.name in RESEARCH and d.missing_files(data_folder(None))}


class NearestNumber(Learner):
    """Gives a node the class of the labelled node whose number is nearest."""

    def fit(
        self,
        base: BaseSession,
        progress: Progress = SILENT,  # noqa: ARG002
        encoders: EncoderStore = NO_STORE,  # noqa: ARG002
    ) -> None:
        self.classes_ = base.classes
        self.nodes_, self.labels_ = base.train, base.train_labels

    def learn(self, session: Session) -> None:
        self.classes_ = self.classes_ + session.new_classes
        nodes = np.concatenate([self.nodes_, session.supports])
        order = np.argsort(nodes)
        self.nodes_, self.labels_ = nodes[order], np.concatenate([self.labels_, session.support_labels])[order]

    def scores(self, visible: VisibleNodes, nodes: np.ndarray) -> np.ndarray:  # noqa: ARG002
        after = np.searchsorted(self.nodes_, nodes).clip(1, self.nodes_.size - 1)
        nearer = np.abs(self.nodes_[after] - nodes) < np.abs(nodes - self.nodes_[after - 1])
        found = self.labels_[np.where(nearer, after, after - 1)]
        return np.eye(len(self.classes_), dtype=np.float32)[found]


def sorted_graph() -> Graph:
    """Its nodes lie class by class, as in many files."""
    labels = np.repeat(np.arange(8), [60, 50, 40, 30, 30, 30, 30, 30])
    return build_graph(np.zeros((300, 300)), np.zeros((300, 0)), labels)


def bare_cut(graph: Graph, numbers: np.ndarray, *_: Any) -> VisibleGraph:  # noqa: ARG001
    """A visible graph without edges and features: quick to cut, and a learner that looks at numbers reads neither."""
    count = numbers.size
    edges = sparse.csr_array((count, count), dtype=np.float32)
    return VisibleGraph(numbers, edges, sparse.csr_array((count, 0), dtype=np.float32))


@lru_cache(maxsize=1)
def graph_of(name: str) -> tuple[Graph, Protocol | None]:
    """The tracks of one graph follow each other."""
    return (sorted_graph(), None) if name == "sorted" else load_dataset(name)


@pytest.mark.parametrize("track", TRACKS)
@pytest.mark.parametrize(
    "name", some_first(["sorted", "synthetic", "wordnet", "debian", *RESEARCH], ["sorted", "debian"])
)
def test_numbers_say_nothing_about_classes(name: str, track: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mean of ten seeds within three standard errors of 1/C, after session 0 and after the last."""
    if name in MISSING:
        pytest.skip(f"the files of {name} are not here")
    monkeypatch.setattr(Graph, "visible", bare_cut)
    graph, protocol = graph_of(name)
    streams = [make_stream(graph, protocol, seed=seed, track=track) for seed in range(SEEDS)]
    last = len(streams[0])
    accuracies = [first_and_last(stream) for stream in streams]
    for place, session in enumerate((0, last)):
        found = [each[place] for each in accuracies]
        chance = 1 / streams[0].classes_seen(session)
        assert abs(np.mean(found) - chance) < 3 * spread_of_chance(streams[0], session) / SEEDS**0.5


def first_and_last(stream: Stream) -> tuple[float, float]:
    """Balanced accuracy after session 0 and after the last one; on a large graph all those between take long."""
    learner = NearestNumber()
    learner.fit(stream.base)
    first = balanced_accuracy(compute_confusion(learner, stream, 0))
    for number in range(1, len(stream) + 1):
        learner.learn(stream.session(number))
    return first, balanced_accuracy(compute_confusion(learner, stream, len(stream)))


def spread_of_chance(stream: Stream, session: int) -> float:
    """Standard deviation of the balanced accuracy if every node had a random number: the learner on many draws."""
    learner, count = NearestNumber(), stream.classes_seen(session)
    learner.fit(stream.base)
    for number in range(1, session + 1):
        learner.learn(stream.session(number))
    queries, labelled, labels = stream.queries(session), learner.nodes_, learner.labels_
    sizes, random, found = np.bincount(queries.labels, minlength=count), np.random.default_rng(1), []
    for _ in range(40):
        numbers = random.permutation(stream.graph.node_count)
        order = np.argsort(numbers[labelled])
        learner.nodes_, learner.labels_ = numbers[labelled][order], labels[order]
        answers = learner.scores(stream.evaluation_graph(session), numbers[queries.nodes]).argmax(axis=1)
        right = np.bincount(queries.labels[answers == queries.labels], minlength=count)
        found.append(float((right / sizes).mean()))
    return float(np.std(found, ddof=1))


def test_without_the_permutation_numbers_would_say_it_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """The learner of the test above is no straw man."""
    monkeypatch.setattr("graphfcl.stream.stream.draw_numbers", lambda graph, _: np.arange(graph.node_count))
    last = evaluate(NearestNumber(), make_stream(sorted_graph())).metrics.sessions[-1]
    assert last.balanced_accuracy > 0.8


@given(graphs(), st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_numbers_are_a_permutation_and_the_same_in_every_session(graph: Graph, seed: int) -> None:
    stream = make_stream(graph, Protocol(base=1, pseudo_novel=0, way=1), seed=seed)
    assert sorted(stream.node_of_number.tolist()) == list(range(graph.node_count))
    again = make_stream(graph, Protocol(base=1, pseudo_novel=0, way=1, track="open"), seed=seed)
    np.testing.assert_array_equal(again.node_of_number, stream.node_of_number)
    features = graph.features if isinstance(graph.features, np.ndarray) else graph.features.toarray()
    dense = again.evaluation_graph(0).loaded().features
    if not isinstance(dense, np.ndarray):
        np.testing.assert_array_equal(dense.toarray(), features[again.node_of_number])


class Vandal(NearestNumber):
    """Tries to write into whatever it is handed, by way of numpy or of torch."""

    def __init__(self, *, through_torch: bool) -> None:
        super().__init__()
        self.through_torch, self.refused = through_torch, 0

    def _write(self, handed: Any) -> None:
        import torch

        visible = handed.visible_graph
        parts = [value for value in vars(handed).values() if isinstance(value, np.ndarray)]
        parts += [visible.nodes, visible.degrees]
        matrices = [visible.adjacency, visible.normalised, visible.features]
        parts += [array for matrix in matrices for array in (matrix.data, matrix.indices, matrix.indptr)]
        for array in parts:
            if self.through_torch:
                torch.from_numpy(array).zero_()
                continue
            try:
                array[...] = 0
            except ValueError:
                self.refused += 1

    def fit(self, base: BaseSession, progress: Progress = SILENT, encoders: EncoderStore = NO_STORE) -> None:
        super().fit(base, progress, encoders)
        self._write(base)

    def learn(self, session: Session) -> None:
        super().learn(session)
        self._write(session)


class Snoop(NearestNumber):
    """Looks at all else that it is handed."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Any] = []
        self.asked_read_only: list[bool] = []

    def fit(self, base: BaseSession, progress: Progress = SILENT, encoders: EncoderStore = NO_STORE) -> None:
        super().fit(base, progress, encoders)
        self.seen = [*vars(progress).values(), *vars(encoders).values()]
        progress.step("training", 1, 2, loss=0.5)
        progress.checkpoint(self)
        assert encoders.get({"kind": "x"}, dict) == {}

    def scores(self, visible: VisibleNodes, nodes: np.ndarray) -> np.ndarray:
        self.asked_read_only.append(not nodes.flags.writeable and nodes.base is None)
        return super().scores(visible, nodes)


def test_neither_progress_nor_encoders_know_the_stream(tmp_path: Path) -> None:
    """A run's own know the graph's fingerprint, which draws the numbers, and the results so far."""
    stream, learner, heard = make_stream(sorted_graph()), Snoop(), list[Any]()

    class Telling(Progress):
        identity, folder = "secret", "secret"

        def step(self, stage: str, step: int, total: int, **_: Any) -> None:
            heard.append((stage, step, total))

        def checkpoint(self, learner: Learner) -> None:
            heard.append(learner)

    found = evaluate(learner, stream, progress=Telling(), encoders=EncoderFolder(tmp_path, stream))
    walked = [("sessions", number, len(stream)) for number in range(len(stream) + 1)]  # which the walk itself tells
    assert heard == [("training", 1, 2), learner, *walked]
    assert learner.seen
    assert all(callable(thing) and not hasattr(thing, "__self__") for thing in learner.seen)
    assert all(learner.asked_read_only)
    with pytest.raises(ValueError, match="read-only"):
        found.session_of_class[-1] = 1


@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable")
def test_no_learner_can_change_what_another_is_handed() -> None:
    graph, _ = load_dataset("synthetic:nodes=400,edges=1500,classes=6,features=100")
    stream = make_stream(graph, Protocol(base=2, pseudo_novel=1, way=1), seed=0)
    before = evaluate(NearestNumber(), stream)
    vandal = Vandal(through_torch=False)
    evaluate(vandal, stream)
    assert vandal.refused == 15 + 3 * 15, "every array is read-only"
    with suppress(InputError, ValueError, IndexError):  # it breaks the graph that it was handed itself
        evaluate(Vandal(through_torch=True), stream)
    after = evaluate(NearestNumber(), stream)
    for first, second in zip(before.confusions, after.confusions, strict=True):
        np.testing.assert_array_equal(first, second)
    assert stream.base.visible_graph.loaded().features.nnz > 0


class Asked(NearestNumber):
    """Notes what it is asked about."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[VisibleNodes, np.ndarray]] = []

    def scores(self, visible: VisibleNodes, nodes: np.ndarray) -> np.ndarray:
        self.asked.append((visible, nodes.copy()))
        return super().scores(visible, nodes)


@pytest.mark.parametrize("track", TRACKS)
def test_a_learner_is_asked_about_all_visible_nodes_in_shuffled_blocks(track: Any) -> None:
    stream = make_stream(sorted_graph(), seed=2, track=track)
    learner = Asked()
    evaluate(learner, stream)
    for number in range(len(stream) + 1):
        visible = stream.evaluation_graph(number)
        blocks = [nodes for asked, nodes in learner.asked if np.array_equal(asked.nodes, visible.nodes)]
        blocks = blocks[:4] if track == "open" else blocks
        assert len(blocks) == 4
        whole = np.concatenate(blocks)
        np.testing.assert_array_equal(np.sort(whole), visible.nodes)
        assert not np.array_equal(whole, visible.nodes)
        # Queries are spread over the blocks like all nodes are: counts within five deviations of chance.
        counts = [np.isin(block, stream.queries(number).nodes).sum() for block in blocks]
        mean = sum(counts) / 4
        assert max(abs(count - mean) for count in counts) < 5 * mean**0.5


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_questions_is_not_the_draw_of_numbers(seed: int) -> None:
    """Under ``open`` all nodes are asked about: in the order of the graph's nodes they would undo the permutation."""
    stream = make_stream(sorted_graph(), Protocol(base=1, pseudo_novel=0, way=1), seed=seed, track="open")
    assert len(stream) >= 7
    learner = Asked()
    evaluate(learner, stream)
    orders = [np.concatenate([nodes for _, nodes in learner.asked[4 * t : 4 * t + 4]]) for t in range(len(stream) + 1)]
    for order in orders:
        for known in (stream.node_of_number, np.argsort(stream.node_of_number), np.arange(order.size)):
            assert (order == known).mean() < 0.1
            assert (order[::-1] == known).mean() < 0.1
    assert len({order.tobytes() for order in orders}) == len(orders)


def test_under_paper_a_learner_is_asked_about_its_queries() -> None:
    stream = make_stream(sorted_graph(), seed=2, name="paper")
    learner = Asked()
    evaluate(learner, stream)
    for number, (_, nodes) in enumerate(learner.asked):
        np.testing.assert_array_equal(nodes, stream.queries(number).nodes)


def _columns_graph(dense: bool) -> Graph:
    labels = np.repeat([0, 1, 2], 12)
    values = np.zeros((36, 4), dtype=np.float32)
    values[:24, 0] = np.arange(24)  # of the base classes
    values[24:, 1] = 5  # of the novel class alone
    values[:, 2] = np.arange(36) * 1e9
    values[:24, 3] = 7  # the same for all nodes of session 0
    values[24:, 3] = 1e9
    return build_graph(np.zeros((36, 36)), values if dense else sparse.csr_array(values), labels, name="columns")


@pytest.mark.parametrize(("track", "width"), [("transductive", 3), ("isolated", 3), ("open", 4)])
def test_columns_that_no_node_of_session_0_has_do_not_exist(track: Any, width: int) -> None:
    stream = make_stream(_columns_graph(dense=False), Protocol(base=("0", "1"), pseudo_novel=0, way=1), track=track)
    for number in range(2):
        assert stream.evaluation_graph(number).loaded().features.shape[1] == width
    shown = stream.evaluation_graph(1).loaded().features.toarray()
    raw = stream.graph.loaded().features.toarray()[stream.node_of_number[stream.evaluation_graph(1).nodes]]
    np.testing.assert_array_equal(shown, raw if width == 4 else raw[:, [0, 2, 3]])


def test_a_standardised_column_stays_finite() -> None:
    view = Standardisation.fit(np.array([[0.0], [1e-30]], dtype=np.float32))
    shown = view.apply(np.array([[1e10], [-1e10], [1e-30]], dtype=np.float32))
    np.testing.assert_allclose(shown[:, 0], [1e6, -1e6, 1])


def test_a_stored_zero_is_no_value() -> None:
    matrix = sparse.csr_array((np.array([0.0, 1.0]), np.array([0, 1]), np.array([0, 2])), shape=(1, 3))
    assert KnownColumns.fit_blocks(lambda: iter([matrix])).columns.tolist() == [1]


@pytest.mark.parametrize("track", TRACKS)
def test_dense_columns_are_standardised_by_the_train_nodes_of_session_0(track: Any, tmp_path: Path) -> None:
    graph = _columns_graph(dense=True)
    rules = Protocol(base=("0", "1"), pseudo_novel=0, way=1, track=track)
    stream = make_stream(graph, rules, seed=3)
    base = stream.base
    shown = stream.evaluation_graph(1)
    train = shown.loaded().features[shown.rows(base.train)]
    np.testing.assert_allclose(train[:, [0, 2]].mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(train[:, [0, 2]].std(axis=0), 1, atol=1e-6)
    assert not shown.loaded().features[:, [1, 3]].any(), "constant on the train nodes"
    raw = graph.features[stream.node_of_number[base.train]].astype(np.float64)
    for column in (0, 2):
        mean = sum(raw[:, column]) / len(raw)
        deviation = (sum((value - mean) ** 2 for value in raw[:, column]) / len(raw)) ** 0.5
        expected = [(value - mean) / deviation for value in graph.features[stream.node_of_number[shown.nodes], column]]
        np.testing.assert_allclose(shown.loaded().features[:, column], expected, rtol=1e-5)
    save_stream(stream, tmp_path / "stream.json")
    again = load_stream(tmp_path / "stream.json", graph)
    assert isinstance(again.view, Standardisation)
    np.testing.assert_array_equal(again.evaluation_graph(1).loaded().features, shown.loaded().features)
    off = make_stream(graph, rules, seed=3, standardise=False)
    np.testing.assert_array_equal(
        off.evaluation_graph(1).loaded().features, graph.features[off.node_of_number[shown.nodes]]
    )
    save_stream(off, tmp_path / "off.json")
    assert load_stream(tmp_path / "off.json", graph).view is None


def test_fresh_streams_are_equal_and_share_no_graph() -> None:
    stream: Stream = make_stream(sorted_graph())
    other = stream.fresh()
    assert other.evaluation_graph(0) is not stream.evaluation_graph(0)
    np.testing.assert_array_equal(other.evaluation_graph(0).nodes, stream.evaluation_graph(0).nodes)
