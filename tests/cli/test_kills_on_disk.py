"""Commands on graph folders that are killed at random moments: given again, they end as if nothing had happened."""

import json
import random
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphfcl import GraphFolder, ModelFolder
from graphfcl.graph.folder import write_folder
from graphfcl.runtime.files import canonical_json, sha256_of
from tests.cli.forks import Forks
from tests.methods.blocks.samples import random_graph
from tests.production.crafting import stored_chunks

pytestmark = pytest.mark.long

KILLS = 3
QUICK = ["--set", "pretraining.epochs=2", "--set", "whole_up_to=100", "--set", "head_steps=20"]
FIT = ["fit", "--graph", "graph", "--model", "model", "--method", "anchor", "--work", "work", "--memory", "2GB"]
FIT += ["--workers", "1", "--hide-classes", "class 8", *QUICK]
PREDICT = ["predict", "--model", "model", "--out", "all.csv"]
RUN = ["run", "--graph", "graph", "--method", "anchor", "--track", "open", "--base", "3", "--pseudo-novel", "3"]
RUN += ["--way", "3", "--sessions", "1", "--work", "work", "--workers", "1", "--memory", "2GB", "--out", "run", *QUICK]


def content(root: Path, names: Sequence[str]) -> dict[str, str]:
    """Digests of all files under some folders, or of files; of a model, of the chunks of its versions."""
    files = [path for name in names for path in (root / name, *(root / name).rglob("*")) if path.is_file()]
    sums = {str(path.relative_to(root)): sha256_of(comparable(path)) for path in files if path.parent.name != "model"}
    chunks = stored_chunks(root / "model") if "model" in names else ()
    return sums | {f"model/{name}": name for name in chunks}


def comparable(path: Path) -> bytes:
    """What a file holds; stored answers are without their accuracy, which answers that a reader computes lack."""
    if not path.name.startswith("answers-"):
        return path.read_bytes()
    return canonical_json({key: value for key, value in json.loads(path.read_bytes()).items() if key != "accuracy"})


def measured(value: Any) -> Any:
    """What a result says, without what it took."""
    if isinstance(value, dict):
        return {key: measured(each) for key, each in value.items() if "seconds" not in key and "memory" not in key}
    return [measured(each) for each in value] if isinstance(value, list) else value


def stamps(root: Path) -> dict[str, tuple[int, int]]:
    """When finished work files were written; one that is written again is another file.

    Without what names the place of the graph folder, which a copy of a folder has at another place.
    """
    files = [path for path in (root / "work").rglob("*") if path.is_file() and path.parent.name != "work"]
    files = [path for path in files if path.stem != "grown"]
    stats = {str(path.relative_to(root)): path.stat() for path in files if not path.name.endswith(".tmp")}
    return {name: (each.st_ino, each.st_mtime_ns) for name, each in stats.items()}


@dataclass(frozen=True)
class Case:
    """A command, what is given again after a kill, and what must be the same in the end, byte for byte.

    then: given in both folders before they are compared.
    """

    first: list[str]
    again: list[str]
    same: list[str]
    then: list[str] | None = None


CASES = {
    # A fit that is killed between its model and its answers leaves these to the next reader.
    "fit": Case(FIT, [*FIT, "--resume"], ["model", "work", "all.csv"], PREDICT),
    "run": Case(RUN, [*RUN, "--resume"], ["work", "run/stream.json", "run/matrix.png"]),
    "predict": Case(PREDICT, [], ["all.csv", "work"]),
    "import": Case(
        ["data", "import", "--graph", "synthetic:nodes=9000,edges=90000,classes=9,features=60", "--out", "b"], [], ["b"]
    ),
}


@pytest.fixture(scope="module")
def commands() -> Iterator[Forks]:
    forks = Forks()
    yield forks
    forks.close()


@pytest.fixture(scope="module")
def made(commands: Forks, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """What each case starts from."""
    root = tmp_path_factory.mktemp("kills")
    (root / "plain").mkdir()
    write_folder(random_graph(300), root / "plain" / "graph")
    model = root / "model"
    shutil.copytree(root / "plain", model)
    folder = GraphFolder.open(model / "graph")
    supports = folder.ids(np.flatnonzero(folder.labels == 8)[:5]).tolist()
    (model / "supports.csv").write_text("node,class\n" + "".join(f"{node},new\n" for node in supports))
    edges = folder.ids(np.arange(40)).reshape(20, 2).tolist()
    (model / "edges.csv").write_text("source,target\n" + "".join(f"{one},{two}\n" for one, two in edges))
    commands.finish(model, FIT)
    wanted = root / "asked"
    shutil.copytree(model, wanted)
    commands.finish(wanted, ["learn", "--model", "model", "supports.csv"])
    commands.finish(wanted, ["grow", "--model", "model", "--edges", "edges.csv"])
    return {"fit": root / "plain", "run": root / "plain", "import": root / "plain", "predict": wanted, "change": model}


@pytest.mark.parametrize("name", list(CASES))
def test_a_killed_command_goes_on(commands: Forks, made: dict[str, Path], tmp_path: Path, name: str) -> None:
    case, moments = CASES[name], random.Random(name)
    shutil.copytree(made[name], tmp_path / "calm")
    begun = time.monotonic()
    commands.finish(tmp_path / "calm", case.first)
    took = time.monotonic() - begun
    root = tmp_path / "killed"
    shutil.copytree(made[name], root)
    before, command = stamps(root), case.first
    for _ in range(KILLS):
        if not commands.killed(root, command, moments.uniform(0, took)):
            break
        command, after = case.again or case.first, stamps(root)
        assert not [file for file in before if file in after and before[file] != after[file]], "computed again"
        before = after
    else:
        commands.finish(root, command)
    if case.then:
        for folder in (root, tmp_path / "calm"):
            commands.finish(folder, case.then)
    checksums, wanted = content(root, case.same), content(tmp_path / "calm", case.same)
    assert not [file for file in checksums if file.endswith(".tmp")]
    # A grown folder names the place of its graph folder.
    assert {file for file in wanted if wanted[file] != checksums.get(file)} <= {
        f for f in wanted if f.endswith("grown.json")
    }
    assert set(checksums) == set(wanted) or name == "fit"  # trials that were cut short leave small sums
    if name == "run":
        ours, theirs = (
            measured(json.loads((tmp_path / where / "run" / "result.json").read_text())) for where in ("killed", "calm")
        )
        assert ours == theirs


@pytest.mark.parametrize(
    "change", [["learn", "--model", "model", "supports.csv"], ["grow", "--model", "model", "--edges", "edges.csv"]]
)
def test_a_killed_change_is_there_or_not(
    commands: Forks, made: dict[str, Path], tmp_path: Path, change: list[str]
) -> None:
    shutil.copytree(made["change"], tmp_path / "calm")
    begun = time.monotonic()
    commands.finish(tmp_path / "calm", change)
    took = time.monotonic() - begun
    commands.finish(tmp_path / "calm", PREDICT)
    root, moments = tmp_path / "killed", random.Random(change[0])
    shutil.copytree(made["change"], root)
    for _ in range(KILLS):
        commands.killed(root, change, moments.uniform(0, took))
        if ModelFolder(root / "model").current() == 2:
            break
    else:
        commands.finish(root, change)
    commands.finish(root, PREDICT)
    assert content(root, ["all.csv", "model"]) == content(tmp_path / "calm", ["all.csv", "model"])
