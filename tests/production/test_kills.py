"""Killed at any moment, the folder opens at the old or the new version, and nothing acknowledged is lost."""

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.long
@pytest.mark.soak
def test_two_hundred_kills(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.production.kill_driver", str(tmp_path / "model"), "200"],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    outcome = json.loads(done.stdout.splitlines()[-1])
    assert outcome["old"] + outcome["new"] == 200
    assert outcome["old"] > 40, "the kills came before the end"
    assert outcome["new"] >= outcome["acknowledged"] > 20, "and some after it"
