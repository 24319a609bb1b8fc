"""The neighbourhood of a large graph folder, chosen on a sample, against a plain version of the whole choice."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from graphfcl import Graph, Progress, Resources, VisibleGraph, find_method
from graphfcl.methods.anchor import AnchorSettings, choosing
from graphfcl.methods.anchor.choosing import directions_by_sample, trial_columns
from graphfcl.methods.anchor.class_sums import Anchors
from graphfcl.methods.anchor.rounds import with_neighbours
from graphfcl.methods.anchor.settings import Neighbourhood
from graphfcl.methods.blocks import RowBlock, open_tables
from graphfcl.methods.blocks.column_phases import STREAMED
from graphfcl.methods.blocks.folder_tables import FolderTables
from graphfcl.methods.shared.validation_sessions import ValidationSessions
from tests.methods.blocks.samples import ROOMY, folder_of, in_memory, random_graph, visible_folder
from tests.methods.blocks.streams import loaded_stream, stream_of

NODES = 900
CANDIDATES = ((2.0, 2, 0.7, 3, 0.0), (2.0, 2, 0.3, 2, 0.5), (2.0, 3, 0.9, 5, 0.0), (0.5, 2, 0.0, 3, 0.0))
CHANGES: dict[str, Any] = {
    "rank": 24,
    "encoder_input": "none",
    "head_share": 0.0,
    "whole_up_to": 0,
    "candidates": CANDIDATES,
}


class Told(Progress):
    def __init__(self) -> None:
        self.stages: list[str] = []

    def step(self, stage: str, step: int, total: int, **_: Any) -> None:  # noqa: ARG002
        self.stages.append(stage)

    @property
    def while_choosing(self) -> set[str]:
        """What was done up to the last candidate."""
        last = len(self.stages) - self.stages[::-1].index("choosing hops")
        return set(self.stages[:last])


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several blocks of a small graph; processes that are started do not see them."""
    for module in ("tile_files", "stored_table", "row_tasks", "resident"):
        monkeypatch.setattr(f"graphfcl.methods.blocks.{module}.BLOCK", 256)


@pytest.fixture(autouse=True)
def small_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A basis that is halved, few labelled nodes, and a sample of some nodes."""
    for name, value in {"FEW_COLUMNS": 8, "MOST_NODES": 40, "SAMPLE": 400, "MOST_BEHIND": 1.0}.items():
        monkeypatch.setattr(choosing, name, value)


@pytest.fixture
def scores(monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray]:
    """The scores of all candidates, of every choice in a test."""
    actual: list[np.ndarray] = []
    function = choosing._SampledTrials.scores

    def recorded(trials: Any, candidates: list[Neighbourhood], plan: Any) -> Any:
        actual.append(np.zeros(len(candidates)))
        for places, each in function(trials, candidates, plan):
            actual[-1][places] = each
            yield places, each

    monkeypatch.setattr(choosing._SampledTrials, "scores", recorded)
    return actual


def hard_graph() -> Graph:
    """Features that say little."""
    graph = random_graph(NODES, weighted=True)
    assert isinstance(graph.features, np.ndarray)
    noise = np.random.default_rng(5).standard_normal(size=graph.features.shape, dtype=np.float32)
    return replace(graph, features=graph.features + 7 * noise)


@pytest.mark.usefixtures("small_blocks")
def test_scores_are_those_of_a_plain_version(tmp_path: Path, scores: list[np.ndarray]) -> None:
    folder = folder_of(hard_graph(), tmp_path / "graph")
    stream = stream_of(folder, tmp_path / "work")
    learner: Any = find_method("anchor").make(CHANGES, seed=1)
    learner.fit(stream.base)
    basis = learner.knowledge.frame["basis"][:, :12].numpy().astype(np.float64)
    validation = ValidationSessions.draw(stream.base, stream.base.pseudo_novel_columns, 1)
    validation = replace(
        validation,
        train=choosing.some_of_each_class(validation.train, 40, 1),
        queries=choosing.some_of_each_class(validation.queries, 40, 1),
    )
    sample = choosing.sampled_nodes(np.arange(NODES), 1)
    assert sample.size == 400
    shown: Any = stream.base.visible_graph
    features, by_row = FolderTables(shown, 1, unit=False).source.features(0, NODES), in_memory(folder)
    rows = stream.node_of_number
    visible = VisibleGraph(np.arange(NODES), by_row.adjacency[rows][:, rows], features[rows])
    expected = [plain_score(visible, basis, validation, Neighbourhood(*how), sample) for how in CANDIDATES]
    assert len(set(expected)) >= 3
    assert max(expected) < 0.99
    np.testing.assert_allclose(scores[0], expected, atol=0.005)  # some answers hang on roundings to 16 bits
    best = int(np.argmax(scores[0]))
    assert learner.knowledge.neighbourhood == CANDIDATES[best if scores[0][best] > scores[0][0] + 0.01 else 0]


def plain_score(
    visible: VisibleGraph, basis: np.ndarray, validation: ValidationSessions, how: Neighbourhood, sample: np.ndarray
) -> float:
    """All of a trial in 64 bits with whole matrices."""
    adjacency = visible.adjacency.toarray().astype(np.float64)
    root = 1 / np.sqrt(adjacency.sum(axis=1) + 1)
    hop = root[:, None] * (adjacency + np.eye(len(root))) * root
    own = np.asarray(visible.features, dtype=np.float64) @ basis
    around = np.linalg.matrix_power(hop, how.hops) @ own
    vectors = np.hstack(
        [weight * unit(block - block[sample].mean(axis=0)) for weight, block in ((1.0, own), (how.hop_weight, around))]
    )
    nodes, labels = validation.train
    groups = [vectors[nodes[labels == known]] for known in range(validation.known_count)]
    centred = np.concatenate([group - group.mean(axis=0) for group in groups])
    pooled = centred.T @ centred / (len(centred) - len(groups))
    within = (pooled + np.mean([np.cov(group.T) for group in groups], axis=0)) / 2
    shift = 0.4 * np.trace(within) / len(within)
    within += shift * np.eye(len(within))
    middle = np.mean([group.mean(axis=0) for group in groups], axis=0)
    turn = np.linalg.inv(np.linalg.cholesky(within)).T
    points = unit((vectors - middle) @ turn)
    actual = []
    for supports in validation.supports[:3]:
        members = [points[nodes[labels == known]] for known in range(validation.known_count)]
        members += [points[row[row >= 0]] for row in supports]
        metric = metric_of(members, validation.known_count, shift * turn.T @ turn)
        logits = 30 * points @ moved(members, points[sample], len(points) / len(sample), metric).T
        posterior = listened(adjacency, hop, logits, how)
        actual.append(validation.score_of(posterior.argmax(axis=1)[validation.queries[0]]))
    return float(np.mean(actual))


def metric_of(members: list[np.ndarray], many: int, added: np.ndarray) -> tuple[np.ndarray, float]:
    """(D, D) A and q. members: of each class. added: E."""
    centred = [each - each.mean(axis=0) for each in members]
    first, later = np.concatenate(centred[:many]), np.concatenate(centred[many:])
    degrees = len(later) - len(members) + many
    variance = (first**2).sum() / (len(first) - many)
    scale = (len(added) - np.trace(added)) / variance
    share = (1 - many / len(members)) * degrees / (degrees + 20)
    inverse = np.linalg.inv((1 - share) * np.eye(len(added)) + share * (scale * later.T @ later / degrees + added))
    means = np.concatenate([np.tile(each.mean(axis=0), (len(each), 1)) for each in members[:many]])
    within = (len(added) - np.trace(inverse @ added)) / scale
    within *= 1 - many / len(means)  # the means have their noise already
    return inverse, within + float(np.einsum("ij,jk,ik->i", means, inverse, means).mean())


def moved(members: list[np.ndarray], sample: np.ndarray, each: float, metric: tuple[np.ndarray, float]) -> np.ndarray:
    """Directions after two rounds."""
    sums, counts = np.stack([each.sum(axis=0) for each in members]), np.array([len(each) for each in members], float)
    actual = directions(sums / counts[:, None], counts, *metric)
    for _ in range(2):
        posterior = softmax(30 * sample @ actual.T)
        total = each * posterior.sum(axis=0)
        part = np.minimum(total, 200)
        means = (sums + (part / total)[:, None] * each * (posterior.T @ sample)) / (counts + part)[:, None]
        actual = directions(means, (counts + part) ** 2 / (counts + part**2 / total), *metric)
    return actual


def directions(means: np.ndarray, weights: np.ndarray, inverse: np.ndarray, length: float) -> np.ndarray:
    squares = np.einsum("ij,jk,ik->i", means, inverse, means)
    squares = np.clip((squares - length / weights) / np.maximum(1 - 1 / weights, 0.3), 0, length)
    usual = squares[weights >= 20].mean()
    return means @ inverse / np.sqrt(length * (weights * squares + 20 * usual) / (weights + 20))[:, None]


def listened(adjacency: np.ndarray, hop: np.ndarray, logits: np.ndarray, how: Neighbourhood) -> np.ndarray:
    def smoothed(first: np.ndarray) -> np.ndarray:
        actual = first
        for _ in range(how.smoothing_steps if how.smoothing > 0 else 0):
            actual = how.smoothing * hop @ actual + (1 - how.smoothing) * first
        return actual / actual.sum(axis=1, keepdims=True)

    if not how.links > 0:
        return smoothed(softmax(logits))
    scaled = adjacency / adjacency[adjacency > 0].mean()
    actual, counts = softmax(logits), logits.shape[1]
    for _ in range(2):
        links = actual.T @ scaled @ actual
        usual = links.sum(axis=0) / links.sum()
        profile = (links + 50 * (0.7 * usual + 0.3 * np.eye(counts))) / (links.sum(axis=1, keepdims=True) + 50)
        near = scaled @ actual / np.sqrt(np.maximum(scaled.sum(axis=1), 1))[:, None]
        actual = smoothed(softmax(logits + how.links * near @ np.log(profile / usual).T))
    return actual


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def softmax(logits: np.ndarray) -> np.ndarray:
    actual = np.exp(logits - logits.max(axis=1, keepdims=True))
    return actual / actual.sum(axis=1, keepdims=True)


def _three_draws(block: RowBlock) -> torch.Tensor:
    features = block.features()
    assert isinstance(features, np.ndarray)
    return 3 * torch.from_numpy(features[:, :15])


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("how", [(0.7, 3, 0.0), (0.0, 3, 0.5), (0.3, 2, 0.5)])
def test_draws_side_by_side_are_those_one_by_one(tmp_path: Path, masked: bool, how: tuple[float, int, float]) -> None:
    folder = folder_of(random_graph(500, weighted=masked), tmp_path / "graph")
    mask = np.random.default_rng(3).random(500) < 0.8 if masked else None
    here = in_memory(folder, mask)
    adjacency = here.adjacency.toarray().astype(np.float64)
    neighbourhood, hop = Neighbourhood(2.0, 2, *how), here.normalised.toarray().astype(np.float64)
    for visible in (here, visible_folder(folder, tmp_path / "work", mask)):
        tables = open_tables(visible, torch.device("cpu"), 0, unit=False)
        rows = visible.rows(visible.nodes)
        logits = tables.table("logits", _three_draws, 15)
        table = with_neighbours(tables, logits, neighbourhood, draws=3)
        values, every = logits.rows_at(rows).double().numpy(), table.rows_at(rows).numpy()  # other candidates read them
        for draw in range(3):
            actual, first = (each[:, draw * 5 : draw * 5 + 5] for each in (every, values))
            expected = listened(adjacency, hop, first, neighbourhood)
            np.testing.assert_allclose(actual / actual.sum(axis=1, keepdims=True), expected, atol=1e-5)
    left = {path.name.rsplit("-", 1)[0] for path in (tmp_path / "work").iterdir() if path.is_dir()}
    assert "logits" in left
    assert not left & {"near", "posterior"}
    assert len(left & {"linked", "smoothed", "normalised"}) == 1


def test_a_node_that_counts_twice_is_two_nodes() -> None:
    random = torch.Generator().manual_seed(0)
    points = torch.nn.functional.normalize(torch.randn(60, 8, generator=random), dim=1).half()
    anchors = Anchors.empty().plus(points[:12], torch.arange(12) % 4, 4)
    settings = AnchorSettings(rounds=2)
    once = directions_by_sample(anchors, points, 2.0, settings)
    twice = directions_by_sample(anchors, torch.cat([points, points]), 1.0, settings)
    np.testing.assert_allclose(once, twice, rtol=1e-5)
    assert not np.allclose(once, directions_by_sample(anchors, points, 1.0, settings), rtol=1e-3)


def test_a_large_graph_in_memory_is_sampled_as_well(tmp_path: Path, scores: list[np.ndarray]) -> None:
    folder = folder_of(hard_graph(), tmp_path / "graph")
    learners: list[Any] = [find_method("anchor").make(CHANGES, seed=1) for _ in range(2)]
    learners[0].fit(stream_of(folder, tmp_path / "work").base)
    learners[1].fit(loaded_stream(folder, tmp_path).base)
    np.testing.assert_allclose(scores[0], scores[1], atol=0.005)
    assert learners[0].knowledge.neighbourhood == learners[1].knowledge.neighbourhood


def test_features_around_that_are_far_behind_are_not_heard(
    tmp_path: Path, scores: list[np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choosing, "MOST_BEHIND", -1.0)  # all of them are
    stream, told = stream_of(folder_of(hard_graph(), tmp_path / "graph"), tmp_path / "work"), Told()
    find_method("anchor").make(CHANGES, seed=1).fit(stream.base, told)
    assert not {"smoothing", "links"} & told.while_choosing
    assert scores[0][0] == scores[0][1] > 0


@pytest.mark.parametrize(
    ("rank", "trial_rank", "columns"), [(1024, 512, 512), (1024, 100, 100), (300, 512, 150), (8, 512, 8), (9, 512, 8)]
)
def test_half_of_the_columns_are_looked_at(rank: int, trial_rank: int, columns: int) -> None:
    assert trial_columns(rank, AnchorSettings(trial_rank=trial_rank), sampled=True) == columns


@pytest.mark.long
@pytest.mark.soak
def test_workers_and_memory_change_no_byte(tmp_path: Path, scores: list[np.ndarray]) -> None:
    folder = folder_of(hard_graph(), tmp_path / "graph")
    memory = Resources(tmp_path, 0).needed_for(STREAMED + NODES * (8 * 4 * 3 + 8), NODES)
    actual = []
    for name, workers, limit in (("a", 1, ROOMY), ("b", 1, memory), ("c", 2, ROOMY)):
        learner = find_method("anchor").make(CHANGES, seed=1)
        learner.fit(stream_of(folder, tmp_path / name, workers=workers, memory=limit).base)
        actual.append({key: value.numpy().tobytes() for key, value in learner.state().tensors.items()})
    assert actual[0] == actual[1] == actual[2]
    assert scores[0].tobytes() == scores[1].tobytes() == scores[2].tobytes()


class Killed(Exception):
    pass


@pytest.mark.parametrize("phase", ["row_tasks", "column_phases"])
def test_a_choice_that_was_killed_goes_on(
    tmp_path: Path, scores: list[np.ndarray], monkeypatch: pytest.MonkeyPatch, phase: str
) -> None:
    folder = folder_of(hard_graph(), tmp_path / "graph")
    stream = stream_of(folder, tmp_path / "work")
    module, calls = f"graphfcl.methods.blocks.{phase}.run_tasks", 0
    from graphfcl import run_tasks

    def dying(*arguments: Any, **more: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == last:
            raise Killed
        return run_tasks(*arguments, **more)

    last = 6 if phase == "row_tasks" else 4
    with monkeypatch.context() as patched:
        patched.setattr(module, dying)
        with pytest.raises(Killed):
            find_method("anchor").make(CHANGES, seed=1).fit(stream.base)
    learners: list[Any] = [find_method("anchor").make(CHANGES, seed=1) for _ in range(2)]
    learners[0].fit(stream.base)
    fresh = stream_of(folder, tmp_path / "other")
    learners[1].fit(fresh.base)
    assert scores[-2].tobytes() == scores[-1].tobytes()
    told = Told()
    find_method("anchor").make(CHANGES, seed=1).fit(stream.base, told)  # the scores are there
    assert told.while_choosing == {"choosing hops"}


def test_the_choice_leaves_one_table_of_hops(tmp_path: Path) -> None:
    stream = stream_of(folder_of(hard_graph(), tmp_path / "graph"), tmp_path / "work")
    learner: Any = find_method("anchor").make(CHANGES, seed=1)
    learner.fit(stream.base)
    names = {path.name.rsplit("-", 1)[0] for path in (tmp_path / "work").iterdir() if path.is_dir()}
    hops = learner.knowledge.neighbourhood.hops
    assert names & {"hops-2", "hops-3"} == {"hops-2", f"hops-{hops}"}
    assert not names & {"posterior", "linked", "logits", "normalised", "near"}
    assert len(list((tmp_path / "work").glob("smoothed-*"))) == 1  # the posteriors of the scores after fit
