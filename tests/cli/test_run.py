"""``graphfcl run``: the real command, killed and resumed, and bad input."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import graphfcl_inside

GRAPH = "synthetic:nodes=700,edges=2800,classes=10,features=300,signal=0.6,skew=0.5"
SHORT = ["--set", "pretraining.epochs=8", "--set", "episodes=60", "--set", "validation_folds=1"]
QUICK = [*SHORT, "--base", "4", "--pseudo-novel", "3", "--way", "1"]


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "graphfcl", "run", "--graph", GRAPH, "--device", "cpu", *QUICK, *words]


def numbers(folder: Path) -> Any:
    result = json.loads((folder / "result.json").read_text())
    sessions = [{k: v for k, v in session.items() if k != "seconds"} for session in result["sessions"]]
    return sessions, result["matrix"], result["confusion_matrices"], result["chosen"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    folder = tmp_path_factory.mktemp("run") / "out"
    done = subprocess.run(command("--out", str(folder)), capture_output=True, text=True, check=True)
    return folder, done


def test_it_prints_the_table_and_leaves_its_files(
    finished: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    folder, done = finished
    names = {"result.json", "stream.json", "checkpoint.safetensors", "accuracy.png", "matrix.png"}
    assert {path.name for path in folder.iterdir()} == names
    assert (folder / "accuracy.png").read_bytes().startswith(b"\x89PNG")
    result = json.loads((folder / "result.json").read_text())
    last = result["sessions"][-1]
    assert f"{100 * last['balanced_accuracy']:.2f}" in done.stdout
    for word in ("balanced", "plain", "base", "novel", "harmonic", "PD", "RPD", "average", "peak memory"):
        assert word in done.stdout
    for stage in ("pre-training", "meta-training", "refit", "sessions"):
        assert stage in done.stderr


@pytest.mark.long
def test_killed_and_resumed_it_ends_with_the_same_numbers(
    tmp_path: Path, finished: tuple[Path, subprocess.CompletedProcess[str]]
) -> None:
    process = subprocess.Popen(
        command("--out", str(tmp_path / "out")), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 120
    while not (tmp_path / "out" / "checkpoint.safetensors").exists():
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "out" / "result.json").exists()
    resumed = subprocess.run(
        command("--out", str(tmp_path / "out"), "--resume"), capture_output=True, text=True, check=True
    )
    assert "finished before" not in resumed.stdout
    assert numbers(tmp_path / "out") == numbers(finished[0])


def test_a_finished_run_says_that_nothing_was_left_to_do(
    tmp_path: Path, finished: tuple[Path, subprocess.CompletedProcess[str]]
) -> None:
    shutil.copytree(finished[0], tmp_path / "out")
    again = graphfcl_inside(*command("--out", str(tmp_path / "out"), "--resume")[3:])
    assert again.code == 0, again.err
    assert "This run had finished before, so nothing was computed" in again.out
    assert "finished before" not in finished[1].stdout
    assert f"look at {tmp_path / 'out' / 'accuracy.png'} first" in again.out
    assert numbers(tmp_path / "out") == numbers(finished[0])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--method", "hagmeta"], "did you mean 'hag-meta'"),
        (["--set", "episode=3"], "did you mean 'episodes'"),
        (["--set", "episodes"], "key=value"),
        (["--device", "gpu"], "auto, cpu or cuda"),
        (["--track", "closed"], "track is 'closed'"),
        (["--stream", "none.json", "--seed", "3"], "its own seed and rules"),
        (["--no-gpill"], "hag-meta has no setting 'gpill': did you mean 'gpil'?"),
        (["--no-sleep"], "it can switch off last-relu, "),
        (["--method", "proto-gcn", "--no-gpil"], "proto-gcn has no setting 'gpil': it can switch off last-relu."),
        (["--no-episodes"], "episodes of hag-meta cannot be switched off: give it a value with --set episodes=VALUE."),
        (["--no-pretraining"], "give it a value with --set pretraining.NAME=VALUE."),
        (["--metod", "cec"], "there is no option --metod: did you mean --method?"),
        (["--qqqqq=3"], "there is no option --qqqqq: see `graphfcl run --help`."),
        (["-x"], "there is no option -x: see"),
        (["stray"], "'stray' has no option before it"),
    ],
)
def test_bad_input_is_one_sentence(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from graphfcl.cli import main

    with pytest.raises(SystemExit) as stopped:
        main([*command("--out", str(tmp_path / "out"))[3:], *words])
    assert stopped.value.code == 2
    error = capsys.readouterr().err.strip()
    assert error.startswith("error: ")
    assert "\n" not in error
    assert message in error
    assert not (tmp_path / "out").exists()


def test_divergence_ends_with_exit_code_1_and_no_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from graphfcl.cli import main

    with pytest.raises(SystemExit) as stopped:
        main([*command("--out", str(tmp_path))[3:], "--set", "pretraining.learning_rate=1e30"])
    assert stopped.value.code == 1
    printed = capsys.readouterr()
    assert "diverged" in printed.err
    assert "balanced" not in printed.out
    assert not (tmp_path / "result.json").exists()


def test_no_switches_a_setting_off(tmp_path: Path) -> None:
    from graphfcl.cli import main

    words = [*command("--out", str(tmp_path), "--method", "proto-gcn", "--no-last-relu")[3:]]
    words[words.index("--set", words.index("--set") + 1) : words.index("--base")] = []  # proto-gcn has no episodes
    main_without_exit(main, words)
    assert json.loads((tmp_path / "result.json").read_text())["settings"]["last_relu"] is False


def test_what_is_off_follows_from_the_type_of_a_setting() -> None:
    from graphfcl import find_method
    from graphfcl.cli.run import switched_off

    settings = find_method("hag-meta").settings_with({})
    words = ["--no-gpil", "--no-nla", "--no-tla", "--no-last-relu"]
    expected = {"gpil": False, "nla": False, "tla": None, "last_relu": False}
    assert switched_off(words, [], "hag-meta", settings) == expected


@pytest.mark.long
def test_a_saved_stream_can_be_run(tmp_path: Path, finished: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    from graphfcl.cli import main

    words = ["run", "--graph", GRAPH, "--device", "cpu", *SHORT, "--stream", str(finished[0] / "stream.json")]
    main_without_exit(main, [*words, "--out", str(tmp_path)])
    assert numbers(tmp_path) == numbers(finished[0])


def main_without_exit(main: Any, words: list[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(words)
    assert stopped.value.code in (0, None)


def test_methods_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    from graphfcl.cli import main

    main_without_exit(main, ["methods"])
    assert "hag-meta" in capsys.readouterr().out
    main_without_exit(main, ["methods", "hag-meta"])
    printed = capsys.readouterr().out
    assert "pretraining.epochs" in printed
    assert "invariant" in printed
