"""What to label next and groups without a name, as a user types it."""

import csv
import json
import shutil
from collections import Counter
from pathlib import Path

import pytest
from pyarrow import parquet

from graphfcl import GraphClassifier, ModelFolder
from graphfcl.cli.teaching import NOTHING_TO_LABEL
from tests.cli.command import assert_one_sentence, graphfcl, graphfcl_inside
from tests.production.models import HIDDEN, NAME, everything, fitted, members, quick, small_graph


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("teaching") / "m"
    model = fitted("sgc-ridge")
    model.save(folder)
    model.wait()
    return folder


@pytest.fixture
def model(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "m"))


def rows_of(path: Path) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def write_rows(path: Path, rows: list[dict[str, str]]) -> None:
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def write_supports(path: Path, nodes: list[int], name: str) -> Path:
    write_rows(path, [{"node": str(node), "class": name, "by": "ann"} for node in nodes])
    return path


def truth_of(nodes: list[int]) -> Counter[str]:
    return Counter(name for name in HIDDEN for node in nodes if node in members(name))


def version_of(folder: Path) -> int:
    return ModelFolder(folder).current()


# What to label next


def test_suggestions_are_filled_in_and_learned(model: Path, tmp_path: Path) -> None:
    """The whole round: a table is written, a person fills in some classes, the model learns these."""
    out = tmp_path / "nodes.csv"
    done = graphfcl("suggest", "--model", model, "--budget", 12, "--strategy", "typical", "--out", out)
    assert done.code == 0, done.err
    assert "Wrote 12 nodes" in done.out
    assert "typical of" in done.out
    rows = rows_of(out)
    assert list(rows[0]) == ["node", "class", "guess", "probability", "unknown", "reason", "why"]
    assert len(rows) == 12
    assert {row["class"] for row in rows} == {""}
    empty = graphfcl_inside("learn", "--model", model, out)
    assert_one_sentence(empty, "nothing to learn")
    graph = small_graph()
    name_of = dict(zip(graph.node_ids.tolist(), (graph.class_names[label] for label in graph.labels), strict=True))
    for row in rows[:8]:
        row["class"] = name_of[int(row["node"])]
    write_rows(out, rows)
    learned = graphfcl_inside("learn", "--model", model, out)
    assert learned.code == 0, learned.err
    kept = GraphClassifier.load(model).label_columns([int(row["node"]) for row in rows])
    assert sorted(kept["node"].tolist()) == sorted(int(row["node"]) for row in rows[:8])
    assert dict(zip(kept["node"].tolist(), kept["class"].tolist(), strict=True)) == {
        int(row["node"]): row["class"] for row in rows[:8]
    }
    assert set(kept["reason"].tolist()) == {row["reason"] for row in rows[:8]}
    assert version_of(model) == 2


def test_suggestions_as_json(model: Path) -> None:
    done = graphfcl_inside("suggest", "--model", model, "--budget", 3, "--strategy", "uncertain", "--json")
    suggestions = json.loads(done.out)
    assert [each["reason"] for each in suggestions] == ["between"] * 3
    assert all(each["why"].startswith("it lies between class-0") for each in suggestions)
    assert all(len(each["classes"]) == 5 for each in suggestions)


def test_a_graph_without_a_model(tmp_path: Path) -> None:
    out = tmp_path / "nodes.csv"
    done = graphfcl_inside("suggest", "--graph", NAME, "--budget", 20, "--out", out)
    assert done.code == 0, done.err
    rows = rows_of(out)
    assert len({row["node"] for row in rows}) == 20
    assert {row["guess"] for row in rows} == {""}
    refused = graphfcl_inside("suggest", "--graph", NAME, "--strategy", "uncertain")
    assert_one_sentence(refused, "'uncertain' needs a model")


def test_bad_suggestions(model: Path, tmp_path: Path) -> None:
    for words, message in (
        ((), "give --model with a model folder, or --graph"),
        (("--model", model, "--graph", NAME), "give --model with a model folder, or --graph"),
        (("--model", model, "--strategy", "typcal"), "did you mean 'typical'"),
        (("--model", tmp_path / "none"), "does not exist"),
        (("--model", model, "--data-dir", tmp_path), "--model does not use --data-dir"),
        (("--graph", NAME, "--device", "cpu"), "--graph does not use --device"),
        (("--graph", NAME, "--method", "sgc-ridge"), "--graph does not use --method"),
        (("--graph", NAME, "--memory", "1GB"), "--graph does not use --memory"),
        (("--graph", NAME, "--workers", "2"), "--graph does not use --workers"),
    ):
        assert_one_sentence(graphfcl_inside("suggest", *words), message)


def test_a_table_that_cannot_be_written_is_refused_before_anything_is_computed(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def computed(*_: object, **__: object) -> None:
        raise AssertionError("it was computed")

    verbs = ("suggest", "groups", "label-issues")
    for verb in verbs:
        monkeypatch.setattr(GraphClassifier, verb.replace("-", "_"), computed)
    (tmp_path / "file").write_text("")
    (tmp_path / "folder.csv").mkdir()
    for verb in verbs:
        for out, message in (
            ("x.txt", ".parquet or .csv"),
            ("folder.csv", "it is a folder"),
            ("file/x.csv", "is no folder that you may write to"),
        ):
            assert_one_sentence(graphfcl_inside(verb, "--model", model, "--out", tmp_path / out), message)
    monkeypatch.undo()
    assert graphfcl_inside("suggest", "--model", model, "--budget", 2, "--out", tmp_path / "new/x.csv").code == 0
    assert_one_sentence(graphfcl_inside("groups", "--model", model, "--by", "ann"), "--by needs --name")


# Labels that are probably wrong


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_wrong_labels_are_listed_and_corrected(model: Path, tmp_path: Path, suffix: str) -> None:
    """Two nodes get a wrong label; one is corrected by the filled-in table, one label is taken back."""
    out, wrong = tmp_path / f"issues{suffix}", members("class-08")[:2]
    graphfcl_inside("learn", "--model", model, write_supports(tmp_path / "wrong.csv", wrong, "class-00"))
    before = everything(model)
    done = graphfcl_inside("label-issues", "--model", model, "--threshold", 0, "--folds", 2, "--out", out)
    assert done.code == 0, done.err
    assert "confidence that it is wrong" in done.out
    assert "more." in done.out
    assert f"to {out}: keep only the rows with wrong labels." in done.out
    assert everything(model) == before
    document = json.loads(
        graphfcl_inside("label-issues", "--model", model, "--threshold", 0, "--folds", 2, "--json").out
    )
    assert document["version"] == version_of(model) == 2
    issues = {row["node"]: row for row in document["issues"]}
    rows = rows_of(out) if suffix == ".csv" else parquet.read_table(out).to_pylist()
    assert list(rows[0]) == ["node", "class", *list(document["issues"][0])[1:]]
    assert {row["class"] for row in rows} == {""}
    assert [int(row["node"]) for row in rows] == list(issues)
    assert set(wrong) <= set(list(issues)[:6])
    assert {issues[node]["given_by"] for node in wrong} == {"ann"}
    if suffix == ".csv":
        chosen = [{**row, "class": row["guess"]} for row in rows if int(row["node"]) == wrong[0]]
        write_rows(out, [*chosen, *(row for row in rows if int(row["node"]) != wrong[0])])
        corrected = graphfcl_inside("learn", "--model", model, "--on-conflict", "replace", out)
        assert corrected.code == 0, corrected.err
        kept = GraphClassifier.load(model).label_columns([wrong[0]])
        assert kept["class"].tolist() == [issues[wrong[0]]["guess"]]
        assert (kept["given"].tolist(), kept["given_by"].tolist(), kept["by"].tolist()) == (["class-00"], ["ann"], [""])
        write_rows(out, [row for row in rows if int(row["node"]) == wrong[1]])
        assert graphfcl_inside("unlearn", "--model", model, out).code == 0
        assert GraphClassifier.load(model).label_columns([wrong[1]])["node"].size == 0


def test_labels_that_are_not_disputed(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "issues.csv"
    done = graphfcl_inside("label-issues", "--model", model, "--threshold", 1, "--folds", 2, "--out", out)
    assert "disputes no label" in done.out
    assert f"Wrote 0 labels to {out}.\n" in done.out
    assert rows_of(out) == []
    one = graphfcl_inside("label-issues", "--model", model, "--threshold", 0, "--count", 1, "--folds", 2)
    assert "Wrote" not in one.out
    assert "more." not in one.out


# Groups


def test_groups_are_listed_and_one_is_named(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "groups.csv"
    listed = graphfcl_inside("groups", "--model", model, "--out", out)
    assert listed.code == 0, listed.err
    for word in (
        "Group 1: ",
        "estimated purity ",
        "typical:",
        "links to:",
        "why:",
        "--name 1=CLASS --version 1",
    ):
        assert word in listed.out
    groups = json.loads(graphfcl_inside("groups", "--model", model, "--json").out)
    assert [group["number"] for group in groups] == list(range(1, len(groups) + 1))
    assert {group["version"] for group in groups} == {1}
    rows = rows_of(out)
    assert {row["version"] for row in rows} == {"1"}
    for group in groups:
        here = [row for row in rows if row["group"] == str(group["number"])]
        assert [int(row["node"]) for row in here] == group["nodes"]
        assert {int(row["node"]) for row in here if row["typical"] == "yes"} == set(group["typical"])
    assert version_of(model) == 1
    named = graphfcl_inside("groups", "--model", model, "--name", "2=gardening", "--version", 1, "--by", "ann")
    assert named.code == 0, named.err
    assert "9 classes" in named.out
    assert "is version 2 of" in named.out
    assert "learn gardening (new) from" in named.out
    taught = GraphClassifier.load(model).label_columns(groups[1]["nodes"])
    assert set(taught["node"].tolist()) == set(groups[1]["typical"])
    assert set(taught["class"].tolist()) == {"gardening"}
    assert set(taught["by"].tolist()) == {"ann"}


def test_two_groups_are_named_at_once(model: Path) -> None:
    listed = json.loads(graphfcl_inside("groups", "--model", model, "--count", 2, "--json").out)
    words = ("--count", 2, "--version", 1, "--name", "1=one", "--name", "2=two")
    done = graphfcl_inside("groups", "--model", model, *words)
    assert done.code == 0, done.err
    assert version_of(model) == 2
    classifier = GraphClassifier.load(model)
    for group, name in zip(listed, ("one", "two"), strict=True):
        (truth, _), *_ = truth_of(group["nodes"]).most_common(1)
        assert (classifier.predict(members(truth)) == name).mean() > 0.7


def test_bad_names_change_nothing(model: Path) -> None:
    for names, message in (
        (("9=x",), "there is no group 9"),
        (("1=one", "9=x"), "there is no group 9"),
        (("gardening",), "as in --name 2=gardening"),
        (("0=x",), "as in --name 2=gardening"),
        (("1=",), "as in --name 2=gardening"),
        (("1=a", "1=b"), "group 1 has two names"),
    ):
        words = [word for name in names for word in ("--name", name)]
        assert_one_sentence(graphfcl_inside("groups", "--model", model, "--version", 1, *words), message)
        assert version_of(model) == 1


def test_a_number_names_a_group_of_one_version(model: Path) -> None:
    """After a change the number may be another group's; nothing is learned then."""
    assert_one_sentence(graphfcl_inside("groups", "--model", model, "--name", "1=x"), "--name needs --version")
    assert_one_sentence(graphfcl_inside("groups", "--model", model, "--version", 1), "--version needs --name")
    assert graphfcl_inside("rename", "class-00", "first", "--model", model).code == 0
    stale = graphfcl_inside("groups", "--model", model, "--name", "1=x", "--version", 1)
    assert_one_sentence(stale, "the groups of version 1 are outdated, because the model is now version 2")
    assert version_of(model) == 2
    listed = graphfcl_inside("groups", "--model", model, "--count", 1, "--seed", 3)
    assert listed.out.strip().endswith("--name 1=CLASS --version 2 --seed 3")
    assert graphfcl_inside("groups", "--model", model, "--name", "1=x", "--version", 2).code == 0
    assert version_of(model) == 3


def test_nothing_unknown_is_one_sentence(tmp_path: Path) -> None:
    folder = tmp_path / "all"
    GraphClassifier("sgc-ridge", quick("sgc-ridge")).fit(small_graph()).save(folder)
    done = graphfcl_inside("groups", "--model", folder)
    assert done.code == 0
    assert done.out.strip() == "There is no group: too few unlabelled nodes look like none of the known classes."
    assert json.loads(graphfcl_inside("groups", "--model", folder, "--json").out) == []
    assert graphfcl_inside("suggest", "--model", folder).out.strip() == NOTHING_TO_LABEL
    assert_one_sentence(
        graphfcl_inside("groups", "--model", folder, "--name", "1=x", "--version", 1), "there is no group 1"
    )
