"""Who may write to a folder: two writers, and models that were not loaded from it."""

import multiprocessing
import shutil
from pathlib import Path
from typing import Any

import pytest

from graphfcl import GraphClassifier, InputError, ModelFolder
from tests.cli.command import assert_one_sentence, graphfcl_inside
from tests.production.models import NAME, cached, everything, fitted, members, recorded


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


def test_a_database_that_cannot_be_read_is_not_written_over(folder: Path) -> None:
    (folder / "model.sqlite").write_bytes((folder / "model.sqlite").read_bytes()[:5000])
    before = everything(folder)
    unlike = fitted("proto-gcn")
    for attempt in (
        lambda: GraphClassifier.load(folder),
        lambda: unlike.save(folder),
        lambda: ModelFolder(folder).check_free(),
        lambda: ModelFolder(folder).editing().__enter__(),
        lambda: ModelFolder(folder).creating().__enter__(),
        lambda: ModelFolder(folder).prune(1),
    ):
        with pytest.raises(InputError, match=r"model.sqlite is damaged, .*put a copy of it in its place"):
            attempt()
    assert_one_sentence(graphfcl_inside("fit", "--graph", NAME, "--model", folder), "damaged", "choose another folder")
    assert everything(folder) == before


def test_a_model_that_was_never_finished_is_none(tmp_path: Path) -> None:
    """A process that is killed before the first version leaves an empty file, or a journal that undoes all."""
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "model.sqlite").touch()
    assert not ModelFolder(tmp_path / "model").exists()
    with pytest.raises(InputError, match="does not exist"):
        GraphClassifier.load(tmp_path / "model")
    assert fitted("proto-gcn").save(tmp_path / "model") == 1


def test_a_folder_that_is_replaced_while_it_is_changed_stays_as_it_is(folder: Path, tmp_path: Path) -> None:
    def change() -> None:
        with ModelFolder(folder).editing() as model:
            model.rename("eight", "acht")
            folder.rename(tmp_path / "elsewhere")
            shutil.copytree(tmp_path / "elsewhere", folder)

    with pytest.raises(InputError, match="moved or replaced"):
        change()
    for place in (folder, tmp_path / "elsewhere"):
        assert GraphClassifier.load(place).version == 3


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


@pytest.mark.parametrize("name", ["model.sqlite", "fitting"])
def test_files_of_a_model_are_no_links(folder: Path, tmp_path: Path, name: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    if (folder / name).exists():
        (folder / name).rename(elsewhere)
    else:
        elsewhere.mkdir()
    (folder / name).symlink_to(elsewhere)
    before = elsewhere.read_bytes() if elsewhere.is_file() else everything(elsewhere)
    sentence = rf"{name} is a symbolic link.*, and a model keeps its files in its own folder"
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
    assert before == (elsewhere.read_bytes() if elsewhere.is_file() else everything(elsewhere))


def test_every_new_parent_of_a_folder_is_flushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = recorded(monkeypatch)
    with ModelFolder(tmp_path / "a" / "b" / "c").creating():
        pass
    flushed = [place for kind, place in calls if kind == "fsync"]
    for parent in (tmp_path, tmp_path / "a", tmp_path / "a" / "b"):  # SQLite flushes the folder of its own file
        assert str(parent) in flushed


def test_a_cache_that_is_a_link_is_not_followed(folder: Path, tmp_path: Path) -> None:
    (folder / "cache.sqlite").rename(tmp_path / "elsewhere")
    (folder / "cache.sqlite").symlink_to(tmp_path / "elsewhere")
    before = (tmp_path / "elsewhere").read_bytes()
    model = GraphClassifier.load(folder)
    assert not cached(model)
    model.predict()
    model.wait()
    ModelFolder(folder).erase([members("class-00")[0]])
    assert (tmp_path / "elsewhere").read_bytes() == before


def test_a_writer_does_not_wait_for_a_reader_that_writes_the_cache(folder: Path) -> None:
    reader = ModelFolder(folder)._versions.cache.database
    reader.begin()
    with ModelFolder(folder).editing() as model:
        model.learn({"nine": members("class-09")[:5]})
    model.wait()
    assert GraphClassifier.load(folder).version == 4
    reader.rollback()
