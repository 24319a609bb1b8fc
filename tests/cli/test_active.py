"""The track ``active`` on the command line."""

import json
from pathlib import Path

import pytest

from tests.cli.command import assert_one_sentence, graphfcl_inside

GRAPH = "synthetic:nodes=300,edges=1200,classes=9,features=60,signal=0.8,skew=0.4"
RULES = ("--base", 3, "--pseudo-novel", 2, "--way", 2, "--shot", 3, "--track", "active")
RUN = ("run", "--graph", GRAPH, "--method", "sgc-ridge", "--device", "cpu")


def test_a_run_with_a_strategy(tmp_path: Path) -> None:
    done = graphfcl_inside(*RUN, *RULES, "--out", tmp_path / "out")
    assert done.code == 0, done.err
    assert "sgc-ridge with auto on Stream" in done.out
    assert "60 % of labels" in done.out
    assert "novel classes found" in done.out
    assert json.loads((tmp_path / "out" / "result.json").read_text())["strategy"] == "auto"
    oracle = graphfcl_inside(*RUN, *RULES, "--strategy", "of-each-class", "--out", tmp_path / "oracle")
    assert "NEEDS AN ORACLE" in oracle.out
    assert "NEEDS AN ORACLE" not in done.out


def test_a_strategy_of_one_s_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_strategy.py").write_text(
        "from graphfcl import Strategy, Query\nclass Last(Strategy):\n    def choose(self, state):\n"
        "        return [Query(int(row), 'random') for row in state.candidates[-state.wanted:]]\n"
    )
    monkeypatch.chdir(tmp_path)
    done = graphfcl_inside(*RUN, *RULES, "--strategy", "my_strategy:Last", "--out", "out")
    assert done.code == 0, done.err
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert result["strategy"] == "last"
    assert result["strategy_source"].startswith("my_strategy:Last@")


def test_a_stream_prints_what_may_be_asked(tmp_path: Path) -> None:
    done = graphfcl_inside("stream", "--graph", GRAPH, *RULES, "--out", tmp_path / "stream.json")
    assert done.code == 0, done.err
    assert "track active" in done.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((*RUN, "--strategy", "typical"), "needs the track 'active'"),
        ((*RUN, *RULES, "--strategy", "typicl"), "did you mean 'typical'"),
        ((*RUN, *RULES, "--protocol", "paper"), "no sessions with query labels"),
        (("bench", "active", "--strategies", "randm"), "did you mean 'random'"),
        (("bench", "active", "--track", "open"), "does not use --track"),
        (("bench", "table2", "--strategies", "random"), "does not use --strategies"),
    ],
)
def test_bad_input_is_one_sentence(words: tuple[object, ...], message: str, tmp_path: Path) -> None:
    assert_one_sentence(graphfcl_inside(*words, "--out", tmp_path / "out"), message)
    assert not (tmp_path / "out").exists()
