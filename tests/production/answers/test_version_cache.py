"""The cache spares a forward pass and is never needed."""

from pathlib import Path

from graphfcl import GraphClassifier, ModelFolder
from tests.production.models import cached, same_answers


def test_a_loaded_model_answers_the_same_without_and_with_the_cache(folder: Path) -> None:
    with_cache = GraphClassifier.load(folder)
    assert cached(with_cache)
    (folder / "cache.sqlite").unlink()
    without = GraphClassifier.load(folder)
    assert not cached(without)
    same_answers(with_cache, without, 1e-5)
    without.wait()
    assert (folder / "cache.sqlite").exists(), "the process that had to compute leaves it for the next reader"
    (folder / "cache.sqlite").write_bytes(b"nonsense")
    same_answers(GraphClassifier.load(folder), without, 1e-5)


def test_a_folder_in_place_of_the_cache_is_no_cache(folder: Path) -> None:
    expected = GraphClassifier.load(folder)
    (folder / "cache.sqlite").unlink()
    (folder / "cache.sqlite").mkdir()
    model = GraphClassifier.load(folder)
    same_answers(model, expected, 1e-5)
    model.wait()
    node = expected.node_ids_.tolist()[-1]
    assert ModelFolder(folder).erase([node]).nodes == 1
    assert node not in GraphClassifier.load(folder).node_ids_.tolist()
