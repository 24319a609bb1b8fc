"""A model card says what the model is."""

import json
from pathlib import Path

from graphfcl import ModelFolder
from tests.cli.command import graphfcl_inside
from tests.cli.test_start_up import large_modules
from tests.production.models import HIDDEN, fitted, members


def test_a_card(tmp_path: Path) -> None:
    model = fitted()
    before = model.card()
    assert (before.sha256, before.written_by, before.info.version) == (None, None, None)
    model.learn({"a|b *c*": members("class-08")[:3]})
    model.save(tmp_path / "m")
    model.wait()
    card = ModelFolder(tmp_path / "m").card()
    labels = model.label_columns()
    for each in card.classes:
        here = labels["class"] == each.name
        held_out = here & (labels["part"] == "validation")
        assert (each.labels, each.validation) == ((here & ~held_out).sum(), held_out.sum())
        assert each.few_shot == (each.name == "a|b *c*")
        assert each.recall == model.history[-1]["accuracy"]["classes"].get(each.name)
    assert [each.name for each in card.classes] == list(model.classes_)
    manifest = ModelFolder(tmp_path / "m").manifest(ModelFolder(tmp_path / "m").current())
    assert (card.sha256, card.info.version) == (manifest["sha256"], manifest["version"])
    assert card.data["graph"] == "synthetic"
    assert card.data["hidden"] == list(HIDDEN)
    assert card.accuracy["validation"] == model.history[-1]["accuracy"]["validation"]
    values = card.as_json()
    assert json.loads(json.dumps(values)) == json.loads(graphfcl_inside("info", tmp_path / "m", "--json").out)
    assert values["settings"]["pretraining.epochs"] == 4
    page = graphfcl_inside("info", tmp_path / "m", "--markdown").out
    assert page.rstrip() == card.as_markdown("m").rstrip()
    assert str(card).rstrip() == page.replace("# m\n", "# proto-gcn on synthetic\n", 1).rstrip()
    assert "| a\\|b \\*c\\* | 3 | 0 |" in page
    assert f"| SHA-256 | {card.sha256} |" in page
    widths = {line.replace("\\|", "").count("|") for line in page.splitlines() if line.startswith("|")}
    assert widths == {3, 5, 8}, "tables have as many cells in each row"
    assert not large_modules(tmp_path, "info", tmp_path / "m") & {"torch", "scipy", "sklearn"}
