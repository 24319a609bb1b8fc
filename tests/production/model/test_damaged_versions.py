"""Versions of which a byte changed or a part is missing: one sentence, and the last good one loads."""

import os
import re
import shutil
from pathlib import Path

import pytest

from graphfcl import GraphClassifier, InputError, ModelFolder
from tests.production.crafting import CraftedFolder, opened
from tests.production.models import everything, read_all, same_answers

PART_NAMES = ("nodes", "edges", "features", "network", "knowledge", "label_store")


PLACES = [*((name, True) for name in PART_NAMES), *((name, False) for name in (*PART_NAMES, "answers"))]


HARM = {
    "flipped": lambda content: content[:-1] + bytes([content[-1] ^ 4]),
    "truncated": lambda content: content[: len(content) // 2],
    "empty": lambda _: b"",
    "text": lambda _: "text",
}


@pytest.mark.parametrize(("name", "chunk"), [*PLACES, ("manifest", False)])
@pytest.mark.parametrize("how", [*HARM, "missing"])
def test_damage_is_said_in_a_sentence_and_the_last_good_version_loads(
    folder: Path, tmp_path: Path, name: str, chunk: bool, how: str
) -> None:
    crafted = CraftedFolder(folder, tmp_path / "crafted")
    folder = crafted.folder
    if name == "manifest":
        place, key = "document", "kind = 'version' AND number = ?"
        column, value = "content", crafted.number
    else:
        stored = crafted.manifest()["parts"][name]
        if chunk:
            stored = next(index["chunks"][:64] for index in crafted.part(name)["arrays"].values() if index["chunks"])
        place, key, column, value = "chunk", "sha256 = ?", "data", bytes.fromhex(stored)
    if how == "missing":
        crafted.query(f"DELETE FROM {place} WHERE {key}", value)
    else:
        content = crafted.query(f"SELECT {column} FROM {place} WHERE {key}", value)[0][0]
        crafted.query(f"UPDATE {place} SET {column} = ? WHERE {key}", HARM[how](content), value)
    model = ModelFolder(folder)
    if name == "manifest" and how == "missing":
        assert model.current() == 2, "it is as if it had never been written"
        return
    with pytest.raises(InputError) as caught:
        read_all(folder)
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError), model.editing():
        raise AssertionError("a damaged version must not be changed")
    if name not in ("features", "network", "nodes"):  # which all versions share
        number = re.search(r"rollback --model \S+ (\d)", str(caught.value))
        assert number is not None
        good = read_all(folder, int(number[1]))
        assert model.rollback(int(number[1])) == 4
        same_answers(read_all(folder), good, 1e-6)


def test_a_flipped_bit_anywhere_is_said_or_harmless(folder: Path, tmp_path: Path) -> None:
    whole = (folder / "model.sqlite").read_bytes()
    expected = read_all(folder)
    (folder / "cache.sqlite").unlink()
    said = 0
    for case, place in enumerate(range(0, len(whole), len(whole) // 60)):
        copy = tmp_path / f"flipped {case}"
        copy.mkdir()
        content = bytearray(whole)
        content[place] ^= 1 << case % 8
        (copy / "model.sqlite").write_bytes(content)
        try:
            found = read_all(copy)
            assert found.version in (2, 3)
            if found.version == 3:
                same_answers(found, expected, 1e-5)
            found.wait()
        except InputError as error:
            said += str(error).count("\n") == 0
        shutil.rmtree(copy, ignore_errors=True)  # a thread of the model may still write its cache
    assert said > 20


@pytest.mark.parametrize("share", [0, 0.3, 0.6, 0.9])
def test_a_database_that_is_cut_short(folder: Path, share: float) -> None:
    path = folder / "model.sqlite"
    os.truncate(path, int(share * path.stat().st_size))
    before = path.read_bytes()
    with pytest.raises(InputError) as caught:
        read_all(folder)
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError), ModelFolder(folder).editing():
        raise AssertionError("it was opened to be changed")
    assert path.read_bytes() == before


def test_a_newer_format_is_refused_and_left_alone(folder: Path) -> None:
    with opened(folder / "model.sqlite") as connection:
        connection.execute("PRAGMA user_version=99")
    before = everything(folder)
    with pytest.raises(InputError, match=r"format 99.*use the graphfcl that wrote it"):
        GraphClassifier.load(folder)
    with pytest.raises(InputError, match="format 99"), ModelFolder(folder).editing():
        pass
    assert everything(folder) == before
