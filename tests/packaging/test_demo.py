"""``make demo``: what it installs, what it says in the end, and that what it says can be done."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.command import graphfcl_inside
from tests.packaging.project import ROOT

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


def planned(folder: Path, *, resumes: bool = False) -> str:
    """The commands that ``make demo`` would run in a fresh copy of the repository."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, folder)
    if resumes:
        (folder / "runs" / "demo").mkdir(parents=True)
        (folder / "runs" / "demo" / "checkpoint.safetensors").touch()
    shown = subprocess.run(["make", "-n", "demo"], cwd=folder, capture_output=True, text=True, check=True)
    return shown.stdout


def test_it_installs_no_extra(tmp_path: Path) -> None:
    installs = [line for line in planned(tmp_path).splitlines() if "pip install" in line]
    assert len(installs) == 1
    assert installs[0].endswith("--editable .")


def test_it_goes_on_with_an_unfinished_run(tmp_path: Path) -> None:
    assert "--out runs/demo --resume" not in planned(tmp_path)
    assert "--out runs/demo --resume" in planned(tmp_path, resumes=True)


def test_it_ends_with_a_picture_and_commands_that_exist(tmp_path: Path) -> None:
    said = re.findall(r'^echo "(.*)"$', planned(tmp_path), re.MULTILINE)
    assert any(line.endswith("/runs/demo/accuracy.png") for line in said)
    commands = [shlex.split(line.partition("#")[0]) for line in said if line.startswith("  ")]
    assert len(commands) >= 4
    targets = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert targets
    for program, verb, *words in commands:
        if program == "make":
            assert verb in targets[1].split()
            continue
        assert program == ".venv/bin/graphfcl"
        page = graphfcl_inside(verb, "--help")
        assert page.code == 0, page.err
        for option in [word for word in words if word.startswith("--")]:
            assert option in page.out, f"{verb} {option}"
