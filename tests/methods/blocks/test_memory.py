"""The limit of memory that a refusal names is enough for all that follows, whichever phase needs most."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphfcl import InputError, Learner, Progress, find_method
from graphfcl.methods.anchor import choosing
from graphfcl.runtime.memory import parse_bytes
from tests.methods.blocks.samples import folder_of, random_graph
from tests.methods.blocks.streams import scores_of_sessions, stream_of

ANCHOR: dict[str, Any] = {"hidden": 16, "size": 8, "pretraining.epochs": 1, "head_steps": 5, "rank": 16}
ROWS = "blocks.row_tasks.BYTES_A_COLUMN"
BASE = "bases.closed_form_learner"
PLAIN: dict[str, Any] = {**ANCHOR, "hop_weight": 2.0, "hops": 2, "smoothing": 0.5, "smoothing_steps": 1, "links": 0.0}
SAMPLED: dict[str, Any] = {**ANCHOR, "whole_up_to": 100}


@pytest.mark.parametrize(
    ("method", "changes", "bytes_of", "message"),
    [
        ("sgc-ridge", {"rank": 16}, None, "a slice of 8 columns"),
        ("sgc-ridge", {"rank": 16}, ROWS, "rows of 32 columns"),
        ("sgc-ridge", {"rank": 4}, ROWS, "rows of 20 columns"),
        ("sgc-ridge", {"rank": 16}, f"{BASE}.BYTES_OF_QUERY", "choosing on"),
        ("sgc-ridge", {"rank": 16}, f"{BASE}.BYTES_OF_LABELLED", "choosing on"),
        ("anchor", SAMPLED, None, "a slice of 8 columns"),
        ("anchor", PLAIN, ROWS, "rows of 49 columns"),
        ("anchor", {**PLAIN, "size": 2}, ROWS, "rows of 48 columns"),
        ("anchor", {**SAMPLED, "rank": 4, "encoder_input": "none"}, ROWS, "rows of 56 columns"),
        ("anchor", {**PLAIN, "rank": 2, "encoder_input": "none"}, ROWS, "rows of 20 columns"),
        ("anchor", PLAIN, "anchor.storage.BYTES_OF_HOP", "the encoder's training"),
        ("anchor", PLAIN, "anchor.storage.BYTES_OF_POINT", "the head's training"),
        ("anchor", SAMPLED, "anchor.choosing.BYTES_OF_NUMBER", "choosing the neighbourhood"),
    ],
)
def test_the_limit_that_is_named_is_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, changes: Any, bytes_of: str | None, message: str
) -> None:
    monkeypatch.setattr(choosing, "MOST_BEHIND", 1.0)  # all candidates are tried
    if bytes_of is not None:  # that phase is the one that needs most
        monkeypatch.setattr(f"graphfcl.methods.{bytes_of}", 200_000)
    graph = random_graph(300)
    folder = folder_of(replace(graph, features=np.ascontiguousarray(graph.features[:, :20])), tmp_path / "graph")
    with pytest.raises(InputError, match=f"--memory 1MB is too small: .*{message}") as refused:
        find_method(method).make(changes, seed=1).fit(stream_of(folder, tmp_path / "work", memory=1 << 20).base)
    named = parse_bytes(re.findall(r"needs ([\d.]+[MGT]B); give that much\.", str(refused.value))[0], "--memory")
    enough = stream_of(folder, tmp_path / "work", memory=named)
    assert len(scores_of_sessions(find_method(method).make(changes, seed=1), enough)) == 3
    with pytest.raises(InputError, match="is too small"):
        find_method(method).make(changes, seed=1).fit(stream_of(folder, tmp_path, memory=int(0.9 * named)).base)


@pytest.mark.parametrize(
    ("method", "changes", "bytes_of", "message"),
    [
        ("sgc-ridge", {"rank": 16}, None, "a slice of 8 columns"),
        ("sgc-ridge", {"rank": 16}, ROWS, "rows of 32 columns"),
        ("anchor", PLAIN, None, "a slice of 8 columns"),
        ("anchor", PLAIN, ROWS, "rows of 48 columns"),
        ("anchor", {**PLAIN, "rank": 2, "encoder_input": "none"}, ROWS, "rows of 20 columns"),
        ("anchor", {**PLAIN, "rank": 12, "encoder_input": "none"}, ROWS, "rows of 30 columns"),
    ],
)
def test_the_limit_that_is_named_is_enough_for_scores_of_a_stored_learner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, changes: Any, bytes_of: str | None, message: str
) -> None:
    graph = random_graph(300)
    folder = folder_of(replace(graph, features=np.ascontiguousarray(graph.features[:, :20])), tmp_path / "graph")
    learner = find_method(method).make(changes, seed=1)
    learner.fit(stream_of(folder, tmp_path / "fit").base)
    if bytes_of is not None:
        monkeypatch.setattr(f"graphfcl.methods.{bytes_of}", 200_000)

    def scores(memory: int) -> int:
        visible = stream_of(folder, tmp_path / "work", memory=memory).base.visible_graph
        asked = find_method(method).make(changes, seed=1)
        asked.load_state(learner.state())
        return len(asked.scores(visible, np.arange(300)))

    with pytest.raises(InputError, match=f"--memory 1MB is too small: .*{message}") as refused:
        scores(1 << 20)
    named = parse_bytes(re.findall(r"needs ([\d.]+[MGT]B); give that much\.", str(refused.value))[0], "--memory")
    assert scores(named) == 300


class Stopped(Exception):
    pass


class StopsAtOnce(Progress):
    """Stops a fit at its first checkpoint."""

    def checkpoint(self, learner: Learner) -> None:  # noqa: ARG002
        raise Stopped


def test_a_fit_that_goes_on_with_a_smaller_limit_is_told_the_largest_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = folder_of(random_graph(300), tmp_path / "graph")
    first, second = (find_method("anchor").make(PLAIN, seed=1) for _ in range(2))
    with pytest.raises(Stopped):
        first.fit(stream_of(folder, tmp_path / "work").base, StopsAtOnce())
    second.load_state(first.state())
    monkeypatch.setattr("graphfcl.methods.anchor.storage.BYTES_OF_POINT", 200_000)
    with pytest.raises(InputError, match="the head's training"):
        second.fit(stream_of(folder, tmp_path / "work", memory=1 << 20).base)
