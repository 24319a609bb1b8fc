"""Work files that were damaged are computed again."""

import json
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest

from graphfcl import GraphClassifier, GraphfclWarning, GraphFolder
from tests.production.graph.folder_models import HIDDEN, fit, supports


def test_a_damaged_table_is_computed_again(model: GraphClassifier, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    before = model.predict()
    for path in (tmp_path / "work").rglob("scores-*/*"):
        path.write_bytes(path.read_bytes()[:-10])
    loaded = GraphClassifier.load(tmp_path / "model")
    assert not loaded.has_answers
    np.testing.assert_array_equal(loaded.predict(), before)


def damage(work: Path, pattern: str) -> list[Path]:
    """Change a byte in the middle of some files, which keep their length."""
    paths = sorted(path for path in work.rglob(pattern) if path.is_file() and path.stat().st_size)
    for path in paths:
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    return paths


@pytest.mark.parametrize("pattern", ["scores-*/*", "readings-*/*", "*-*/*", "*"])
def test_a_file_with_another_byte_is_computed_again_by_who_meets_it(
    model: GraphClassifier, tmp_path: Path, pattern: str
) -> None:
    model.save(tmp_path / "model")
    before = model.prediction_columns()
    assert damage(tmp_path / "work", pattern)
    for nodes in (before["node"][:3].tolist(), None):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GraphfclWarning)
            after = GraphClassifier.load(tmp_path / "model").prediction_columns(nodes)
        for name, values in after.items():
            np.testing.assert_array_equal(values, before[name][: len(values)])
        damage(tmp_path / "work", pattern)


@pytest.mark.parametrize("method", ["sgc-ridge", pytest.param("anchor", marks=pytest.mark.long)])
def test_fits_and_changes_compute_damaged_files_again(graph: GraphFolder, tmp_path: Path, method: str) -> None:
    wanted = fit(graph, method).learn(supports(graph)).predict_proba()
    assert damage(tmp_path / "work", "*-*/*")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GraphfclWarning)
        model = fit(graph, method)
        damage(tmp_path / "work", "*-*/*")
        model.learn(supports(graph))
        damage(tmp_path / "work", "*-*/*")
        np.testing.assert_array_equal(model.predict_proba(), wanted)
        model.unlearn(supports(graph)[HIDDEN[0]][:1])
        damage(tmp_path / "work", "*-*/*")
        assert model.predict().size


@pytest.mark.parametrize("named", ["outside", "another"])
def test_answers_that_name_another_table_are_computed_again(model: GraphClassifier, tmp_path: Path, named: str) -> None:
    wanted = model.predict_proba()
    model.save(tmp_path / "model")
    assert GraphClassifier.load(tmp_path / "model").has_answers
    path = next((tmp_path / "work").glob("answers-*.json"))
    said = json.loads(path.read_bytes())
    if named == "outside":
        shutil.copytree(tmp_path / "work" / said["tables"]["scores"]["folder"], tmp_path / "elsewhere")
        said["tables"]["scores"]["folder"] = "../elsewhere"
    else:
        said["tables"]["scores"] = said["tables"]["readings"]
    path.write_text(json.dumps(said))
    loaded = GraphClassifier.load(tmp_path / "model")
    assert not loaded.has_answers
    np.testing.assert_array_equal(loaded.predict_proba(), wanted)
