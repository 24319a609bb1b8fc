"""Who may write to a folder: two writers, and models that were not loaded from it."""

import multiprocessing
from pathlib import Path
from typing import Any

import pytest

from graphfcl import GraphClassifier, InputError, ModelFolder
from graphfcl.runtime.files import file_lock
from tests.cli.command import assert_one_sentence, graphfcl_inside
from tests.production.models import NAME, everything, fitted, members, same_answers, with_parts
from tests.production.test_versions import recorded


def test_a_model_is_not_saved_over_what_it_does_not_know(folder: Path) -> None:
    one, two = GraphClassifier.load(folder), GraphClassifier.load(folder)
    one.learn({"nine": members("class-09")[:5]}).save(folder)
    two.learn({"other": members("class-09")[5:9]})
    with pytest.raises(InputError, match="was not loaded from"):
        two.save(folder)
    assert GraphClassifier.load(folder).classes_[-1] == "nine"
    assert one.save(folder) == one.save(folder), "nothing changed, nothing written"


def _learn_in_another_process(folder: str, name: str, nodes: list[Any], ready: Any) -> None:
    ready.wait()
    with ModelFolder(folder).editing(wait=60) as model:
        model.learn({name: nodes})


@pytest.mark.long
def test_two_processes_that_learn_at_once_both_succeed(folder: Path) -> None:
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    nodes = members("class-09")
    workers = [
        context.Process(target=_learn_in_another_process, args=(str(folder), name, part, ready))
        for name, part in (("nine", nodes[:4]), ("ten", nodes[4:8]))
    ]
    for worker in workers:
        worker.start()
    ready.set()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    model = GraphClassifier.load(folder)
    assert model.version == 5
    assert {"nine", "ten"} <= set(model.classes_)


def test_a_writer_that_waits_too_long_is_refused(folder: Path) -> None:
    busy = ModelFolder(folder)
    with busy.writing(), pytest.raises(InputError, match="changed by another process"), busy.editing(wait=0.1):
        pass


def test_a_removed_lock_file_lets_nobody_in(folder: Path) -> None:
    first, second = ModelFolder(folder), ModelFolder(folder)
    with first.editing() as model:
        (folder / "lock").unlink()
        with pytest.raises(InputError, match="changed by another process"), second.editing(wait=0.1):
            raise AssertionError("two writers at once")
        (folder / "lock").touch()
        with pytest.raises(InputError, match="changed by another process"), second.editing(wait=0.1):
            raise AssertionError("two writers at once")
        model.rename("eight", "acht")
    model.wait()
    assert GraphClassifier.load(folder).classes_[-1] == "acht"


@pytest.fixture
def only_first(folder: Path) -> Path:
    """A folder with one whole version, to which nothing points."""
    ModelFolder(folder).rollback(1)
    for number in (1, 2, 3):
        (folder / "versions" / f"00000{number}.json").unlink()
    new = folder.parent / "first"
    model = with_parts(GraphClassifier.load(folder), [])
    model.save(new)
    model.wait()
    (new / "current").unlink()
    return new


def test_a_lost_pointer_with_only_version_1_is_mended_and_never_written_over(only_first: Path) -> None:
    before = everything(only_first)
    model = GraphClassifier.load(only_first, version=1)
    unlike = fitted("proto-gcn")
    sentence = r"is missing: `graphfcl rollback .* 1` goes on from the last version that is whole"
    for attempt in (
        lambda: GraphClassifier.load(only_first),
        lambda: unlike.save(only_first),
        lambda: ModelFolder(only_first).check_free(),
        lambda: ModelFolder(only_first).editing().__enter__(),
        lambda: ModelFolder(only_first).creating().__enter__(),
        lambda: ModelFolder(only_first).prune(1),
    ):
        with pytest.raises(InputError, match=sentence):
            attempt()
    done = graphfcl_inside("fit", "--graph", NAME, "--model", only_first)
    assert_one_sentence(done, "rollback", " 1`")
    assert everything(only_first) == before
    assert ModelFolder(only_first).rollback(1) == 2
    same_answers(GraphClassifier.load(only_first), model, 1e-6)


def test_versions_that_are_all_damaged_are_not_written_over_either(only_first: Path) -> None:
    manifest = only_first / "versions" / "000001.json"
    manifest.write_bytes(manifest.read_bytes()[:-5])
    before = everything(only_first)
    done = graphfcl_inside("fit", "--graph", NAME, "--model", only_first)
    assert_one_sentence(done, "none of them is whole", "choose another folder")
    assert everything(only_first) == before


def _claim(folder: str, ready: Any, done: Any) -> None:
    with ModelFolder(folder).creating():
        ready.set()
        done.wait(30)


def test_a_second_fit_is_refused_at_its_start(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    ready, done = context.Event(), context.Event()
    first = context.Process(target=_claim, args=(str(tmp_path / "new"), ready, done))
    first.start()
    assert ready.wait(30)
    found = graphfcl_inside("fit", "--graph", "no-such-graph", "--model", tmp_path / "new")
    assert_one_sentence(found, "is being made by another process")  # before it looks at the graph
    first.kill()
    first.join()
    with ModelFolder(tmp_path / "new").creating() as keep:
        assert keep(fitted("proto-gcn")) == 1
    with pytest.raises(InputError, match="holds a model already"), ModelFolder(tmp_path / "new").creating():
        pass


REFUSED: dict[str, tuple[list[str], str]] = {
    "no such graph": (["--graph", "no-such-graph"], "no-such-graph"),
    "no such setting": (["--set", "nothing=1"], "nothing"),
    "a setting that cannot be": (["--set", "ridge=minus"], "ridge"),
    "no such class": (["--hide-classes", "nothing"], "nothing"),
    "one class": (["--hide-classes", ",".join(f"class-0{number}" for number in range(1, 10))], "class"),
    "an option of folders": (["--work", "work"], "--work"),
    "no such device": (["--device", "nothing"], "nothing"),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("there", [False, True])
def test_a_refused_fit_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str, there: bool
) -> None:
    options, word = REFUSED[case]
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "some" / "model"
    if there:
        folder.mkdir(parents=True)
        (folder / "mine.txt").write_text("mine")
    before = sorted(tmp_path.rglob("*"))
    given = ["fit", "--model", folder, "--method", "sgc-ridge", *options]
    done = graphfcl_inside(*(given if "--graph" in options else [*given, "--graph", NAME]))
    assert_one_sentence(done, word)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_folder_that_is_free_stays_as_it_is(tmp_path: Path) -> None:
    ModelFolder(tmp_path / "some" / "model").check_free()
    assert not (tmp_path / "some").exists()


@pytest.mark.parametrize("name", ["cache", "objects", "versions", "fitting"])
def test_folders_of_a_model_are_no_links(folder: Path, tmp_path: Path, name: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    if (folder / name).exists():
        (folder / name).rename(elsewhere)
    else:
        elsewhere.mkdir()
    (folder / name).symlink_to(elsewhere)
    before = everything(elsewhere)
    sentence = rf"{name} is a symbolic link, and a model keeps its files in its own folder"
    for attempt in (
        lambda: GraphClassifier.load(folder),
        lambda: GraphClassifier.load(folder, version=2),
        lambda: ModelFolder(folder).history(),
        lambda: ModelFolder(folder).rollback(1),
        lambda: ModelFolder(folder).prune(1),
        lambda: ModelFolder(folder).erase([members("class-00")[0]]),
        lambda: ModelFolder(folder).editing().__enter__(),
    ):
        with pytest.raises(InputError, match=sentence):
            attempt()
    assert_one_sentence(graphfcl_inside("predict", "--model", folder, "--out", tmp_path / "p.csv"), "symbolic link")
    assert everything(elsewhere) == before


def test_every_new_parent_of_a_folder_is_flushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = recorded(monkeypatch)
    with ModelFolder(tmp_path / "a" / "b" / "c").creating():
        pass
    flushed = [place for kind, place in calls if kind == "fsync"]
    for parent in (tmp_path, tmp_path / "a", tmp_path / "a" / "b", tmp_path / "a" / "b" / "c"):
        assert str(parent) in flushed


def test_a_writer_leaves_what_a_reader_is_writing(folder: Path) -> None:
    half = folder / "cache" / ".newest.cache.1.tmp"
    with file_lock(folder / "cache" / "lock", wait=0) as ours:  # as a reader does that writes the cache
        assert ours
        half.write_bytes(b"half")
        with ModelFolder(folder).editing() as model:
            model.learn({"nine": members("class-09")[:5]})
        model.wait()
        assert half.exists()
        assert GraphClassifier.load(folder).version == 4
    reader = GraphClassifier.load(folder)
    reader.predict()
    reader.wait()
    assert not half.exists(), "who writes the cache next removes it"
