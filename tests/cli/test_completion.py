"""What a shell offers when somebody presses Tab: quickly, and without waiting for torch."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from graphfcl.cli.completion import model_folders
from tests.cli.command import run_python
from tests.cli.test_start_up import DRIVER, LARGE


def offered(line: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """What bash is offered for the last word of a line, by the real command."""
    words = line.split(" ")
    monkeypatch.setenv("_GRAPHFCL_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    result = run_python("-c", DRIVER, tmp_path / "modules.json")
    modules = json.loads((tmp_path / "modules.json").read_text())
    assert not [name for name in LARGE if name in modules], "completion must not wait"
    return result.out.split()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("graphfcl run --method ha", ["hag-meta"]),
        ("graphfcl fit --graph amazon-cl", ["amazon-clothing", "amazon-clothing-20"]),
        ("graphfcl bench table2 --methods anchor,fec", ["anchor,fecam"]),
        ("graphfcl hist", ["history"]),
    ],
)
def test_names_are_offered(line: str, expected: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert offered(line, monkeypatch, tmp_path) == expected


def test_model_folders_are_offered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("one", "deep/two", "deep/er/three", "deep/er/still/four", ".hidden", "one/work/inner"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "model.sqlite").touch()
    (tmp_path / "half" / "fitting").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert model_folders("") == ["deep/er/three", "deep/two", "one"]
    assert model_folders("o") == ["one"]
    assert model_folders("./o") == ["./one"]
    assert model_folders("deep/") == ["deep/er/still/four", "deep/er/three", "deep/two"]
    assert model_folders(f"{tmp_path}/on") == [f"{tmp_path}/one"]
    assert model_folders("nowhere/") == []


def test_the_script_of_a_shell_is_shown() -> None:
    # The shell is the one in which the command is typed; the last command keeps bash from handing its process over.
    line = f"{sys.executable} -m graphfcl --show-completion; exit $?"
    shown = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=120, check=False)
    assert shown.returncode == 0, shown.stderr
    assert "complete -o default -F _graphfcl_completion graphfcl" in shown.stdout
