"""Graph folders and work folders that move, are deleted or replaced."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from graphfcl import GraphClassifier, GraphFolder, InputError, ModelFolder
from graphfcl.graph.folder import write_folder
from graphfcl.production import FolderUse
from tests.methods.blocks.samples import random_graph
from tests.production.graph.folder_models import supports
from tests.production.models import everything


def test_work_files_may_be_deleted(model: GraphClassifier, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    before = model.prediction_columns()
    shutil.rmtree(tmp_path / "work")
    loaded = GraphClassifier.load(tmp_path / "model")
    assert not loaded.has_answers
    after = loaded.prediction_columns()
    np.testing.assert_array_equal(before["class"], after["class"])
    np.testing.assert_allclose(before["probability"], after["probability"], atol=1e-6)


def test_folders_that_move_are_found_or_asked_for(model: GraphClassifier, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    wanted = model.predict()
    (tmp_path / "graph").rename(tmp_path / "elsewhere")
    with pytest.raises(InputError, match=r"graph folder .* not where it was.*--graph DIR"):
        GraphClassifier.load(tmp_path / "model").predict()
    use = FolderUse(graph=tmp_path / "elsewhere")
    before = everything(tmp_path / "model")
    np.testing.assert_array_equal(GraphClassifier.load(tmp_path / "model", use=use).predict(), wanted)
    assert everything(tmp_path / "model") == before, "a reader does not change what is remembered"
    with pytest.raises(InputError, match="not where it was"):
        GraphClassifier.load(tmp_path / "model").predict()
    assert ModelFolder(tmp_path / "model", use).rollback(1) == 2  # a process that writes a version does
    np.testing.assert_array_equal(GraphClassifier.load(tmp_path / "model").predict(), wanted)
    (tmp_path / "both").mkdir()
    for name in ("model", "elsewhere", "work"):
        (tmp_path / name).rename(tmp_path / "both" / name)
    moved = GraphClassifier.load(tmp_path / "both" / "model")
    assert moved.has_answers
    np.testing.assert_array_equal(moved.predict(), wanted)


def test_readers_do_not_change_what_is_remembered(model: GraphClassifier, graph: GraphFolder, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    shutil.copytree(tmp_path / "graph", tmp_path / "copy")
    place = (tmp_path / "model" / "graph.json").read_bytes()
    use = FolderUse(graph=tmp_path / "copy", work=tmp_path / "other work", memory=6 << 30, workers=2)
    reader = GraphClassifier.load(tmp_path / "model", use=use)
    reader.prediction_columns()
    reader.label_columns()
    reader.info()
    reader.calibrate()
    assert (tmp_path / "model" / "graph.json").read_bytes() == place
    with ModelFolder(tmp_path / "model", use).editing() as changed:
        changed.learn(supports(graph))
    said = json.loads((tmp_path / "model" / "graph.json").read_bytes())
    assert said["graph"]["full"] == str(tmp_path / "copy")
    assert (said["memory"], said["workers"]) == (6 << 30, 2)


def test_another_graph_folder_is_refused(model: GraphClassifier, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    write_folder(random_graph(400, seed=1), tmp_path / "other")
    with pytest.raises(InputError, match="digest differs"):
        GraphClassifier.load(tmp_path / "model", use=FolderUse(graph=tmp_path / "other")).predict()
    shutil.rmtree(tmp_path / "graph")
    write_folder(random_graph(400, seed=1), tmp_path / "graph")
    with pytest.raises(InputError, match="digest differs"):
        GraphClassifier.load(tmp_path / "model").predict()
