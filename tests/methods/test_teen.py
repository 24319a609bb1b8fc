"""TEEN against plain loops, and what goes wrong where it is rebuilt carelessly."""

import numpy as np
import pytest
import torch

from graphfcl import InputError, find_method
from graphfcl.methods.shared.class_statistics import calibrated_prototypes, similarity_weights
from graphfcl.methods.teen import TeenSettings
from tests.methods.closed_forms import fitted, labelled_vectors, stream_of, unit, vectors_of, walked


def prototypes_by_loop(vectors: np.ndarray, labels: np.ndarray, many: int, share: float) -> list[np.ndarray]:
    units = [unit(vectors[labels == c].mean(axis=0)) for c in range(labels.max() + 1)]
    found = units[:many]
    for new in units[many:]:
        strengths = [np.exp(16 * new @ old) for old in units[:many]]
        lent = sum(strength / sum(strengths) * old for strength, old in zip(strengths, units[:many], strict=True))
        found.append((1 - share) * new + share * unit(np.asarray(lent)))
    return found


def test_scores_are_the_cosines_of_a_loop() -> None:
    stream = stream_of()
    learner = walked("teen", stream, share=0.4)
    visible = stream.evaluation_graph(2)
    prototypes = prototypes_by_loop(*labelled_vectors(learner, stream), many=6, share=0.4)
    assert len(prototypes) == 8
    vectors = vectors_of(learner, visible)
    wanted = [[unit(vector) @ unit(prototype) for prototype in prototypes] for vector in vectors]
    np.testing.assert_allclose(learner.scores(visible, visible.nodes), wanted, atol=2e-3)


def test_only_classes_of_session_0_lend_and_none_of_them_borrows() -> None:
    random = torch.Generator().manual_seed(0)
    means, counts = torch.randn(5, 4, generator=random), torch.ones(5)
    before = calibrated_prototypes(means, similarity_weights(means, 3, 16.0, counts), 0.5)
    torch.testing.assert_close(before[:3], torch.nn.functional.normalize(means[:3]))
    moved = torch.cat([means[:4], -means[4:]])
    after = calibrated_prototypes(moved, similarity_weights(moved, 3, 16.0, counts), 0.5)
    torch.testing.assert_close(after[:4], before[:4])  # another later class changes nothing
    torch.testing.assert_close(before.norm(dim=1), torch.ones(5))


def test_a_class_without_labels_lends_nothing() -> None:
    means = torch.eye(3)
    weights = similarity_weights(means, 2, 16.0, torch.tensor([1.0, 0.0, 1.0]))
    assert weights.tolist() == [[1.0, 0.0]]
    assert similarity_weights(means, 2, 16.0, torch.zeros(3)).tolist() == [[0.0, 0.0]]


def test_weights_do_not_depend_on_how_long_means_are() -> None:
    means = torch.randn(4, 3, generator=torch.Generator().manual_seed(1))
    lengths = torch.tensor([1.0, 5.0, 0.2, 3.0])[:, None]
    found = similarity_weights(means * lengths, 3, 16.0, torch.ones(4))
    torch.testing.assert_close(found, similarity_weights(means, 3, 16.0, torch.ones(4)))


def test_the_classes_of_session_0_are_known_by_means_and_not_by_a_head() -> None:
    stream = stream_of()
    learner = fitted("teen", stream.base, features="encoder", **{"pretraining.epochs": 8})
    visible = stream.base.visible_graph
    vectors = learner.embeddings(visible)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    train = vectors[visible.rows(stream.base.train)]
    means = [unit(train[stream.base.train_labels == c].mean(axis=0)) for c in range(6)]
    np.testing.assert_allclose(learner.scores(visible, visible.nodes), vectors @ np.array(means).T, atol=1e-5)
    assert learner.stored()["nodes"] == 0


def test_settings_out_of_range_are_refused() -> None:
    for changes, words in [
        ({"share": 1.0}, "share is 1.0"),
        ({"shares": ()}, "shares is empty"),
        ({"temperature": 0.0}, "temperature is 0.0"),
        ({"features": "words"}, "features is 'words'"),
    ]:
        with pytest.raises(InputError, match=words):
            TeenSettings(**changes)  # type: ignore[arg-type]
    assert find_method("teen").settings_with({"features": "encoder"}).features == "encoder"
