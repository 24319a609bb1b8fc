"""A row of a table: statistics over its seeds, marks, costs, and the code that computed it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphfcl.metrics import (
    SeedSummary,
    active_metrics,
    session_metrics,
    stream_metrics,
    summarise_seeds,
)

POOL, QUERIES, FORM = "uses pool labels", "trained on query labels", "another form of a method"
ORACLE, CONTROL = "needs an oracle", "a control"
NOT_RECORDED = "not recorded"  # for results that do not name their code


def _scale(key: str) -> float:
    """Factor by which a value is multiplied when it is shown; 1 if it is not a metric."""
    return next((m.scale for m in (*session_metrics(), *stream_metrics(), *active_metrics()) if m.name == key), 1.0)


@dataclass(frozen=True, eq=False)
class Row:
    """All seeds of one row of a table.

    Attributes:
        name: Name of the row.
        results: Results of :func:`graphfcl.experiments.run` by seed.
        form: Whether this is another form of a method that also has its own row in Table 2.
    """

    name: str
    results: dict[int, dict[str, Any]]
    form: bool = False

    @property
    def marks(self) -> tuple[str, ...]:
        """Properties for which the row is not compared with rows without them."""
        result = next(iter(self.results.values()))
        marks = (
            (POOL, result["uses_pool_labels"]),
            (QUERIES, result["trained_on_query_labels"]),
            (FORM, self.form),
            (ORACLE, result.get("needs_oracle", False)),
            (CONTROL, result.get("flags", {}).get("control", False)),
        )
        return tuple(mark for mark, holds in marks if holds)

    @property
    def strategy(self) -> str:
        """Strategy under the track ``active``; empty under other tracks."""
        return str(next(iter(self.results.values())).get("strategy", ""))

    def values(self, key: str) -> dict[int, float]:
        """A value of the whole run by seed, in percent if it is a share. Seeds without it are left out."""
        values = {seed: result.get(key) for seed, result in self.results.items()}
        return {seed: _scale(key) * value for seed, value in values.items() if value is not None}

    def last(self, key: str = "balanced_accuracy") -> dict[int, float]:
        """A value of the last session by seed, in percent if it is a share. Seeds without it are left out."""
        values = {seed: result["sessions"][-1].get(key) for seed, result in self.results.items()}
        return {seed: _scale(key) * value for seed, value in values.items() if value is not None}

    def figures(self, key: str) -> dict[int, float]:
        """A metric by seed; for a session metric, its value after the last session."""
        return self.last(key) if key in {metric.name for metric in session_metrics()} else self.values(key)

    def summary(self, key: str) -> SeedSummary | None:
        """A metric over the seeds that have it; None if no seed has it."""
        values = self.figures(key)
        return summary(values) if values else None

    def sessions(self, key: str = "balanced_accuracy") -> np.ndarray:
        """Values of a session metric, in percent if it is a share, shape (seeds, sessions); NaN if undefined."""
        rows = [[session.get(key) for session in result["sessions"]] for result in self.results.values()]
        return _scale(key) * np.array([[np.nan if value is None else value for value in row] for row in rows])

    def matrix(self) -> np.ndarray:
        """Mean of a_{t,j} over seeds in percent, shape (sessions, sessions)."""
        matrices = [[[np.nan if v is None else v for v in row] for row in r["matrix"]] for r in self.results.values()]
        return 100 * np.array(matrices, dtype=float).mean(axis=0)

    def seconds(self) -> list[float]:
        """Seconds of each run, including the pre-training of a reused encoder."""
        return [result["total_seconds"] + _earlier_seconds(result) for result in self.results.values()]

    def training_seconds(self) -> dict[int, float]:
        """Time to learn all sessions by seed, with pre-training and validation but without predictions.

        It is at least a millisecond, because it is shown on a logarithmic axis.
        """
        return {
            seed: max(sum(session["seconds"] for session in result["sessions"]) + _earlier_seconds(result), 1e-3)
            for seed, result in self.results.items()
        }

    def curve(self, key: str) -> dict[str, list[float | None]]:
        """Mean by session, and the ends of the 95 % interval if there are several seeds."""
        summaries = [None if np.isnan(column).any() else summary(column) for column in self.sessions(key).T]

        def end(one: SeedSummary | None, sign: int) -> float | None:
            return None if one is None or one.interval is None else one.mean + sign * one.interval

        return {
            "mean": [None if one is None else one.mean for one in summaries],
            "low": [end(one, -1) for one in summaries],
            "high": [end(one, 1) for one in summaries],
        }

    def mean(self, key: str) -> float | None:
        """Mean of a value that is not a metric, such as peak memory in MB, over the runs that recorded it."""
        values = list(self.values(key).values())
        return float(np.mean(values)) if values else None

    def stored(self) -> dict[str, int]:
        """Bytes stored between sessions by kind, the maximum over seeds."""
        results = list(self.results.values())
        return {kind: max(result["stored"][kind] for result in results) for kind in results[0]["stored"]}

    def chosen(self) -> str:
        """The settings that validation chose, with a value for each seed; "–" if a seed did not choose the setting."""
        choices = [result["chosen"] for result in self.results.values()]
        keys = dict.fromkeys(key for each in choices for key in each)
        return "; ".join(
            f"{key.replace('_', ' ')} {', '.join(str(each.get(key, '–')) for each in choices)}" for key in keys
        )


def _earlier_seconds(result: dict[str, Any]) -> float:
    """Seconds of the pre-training of a reused encoder."""
    return float(result["pretraining"]["seconds"]) if result["pretraining"]["reused"] else 0.0


def machines_of(rows: "Iterable[Row]") -> list[str]:
    """The machines that computed rows: GPU or processor, and number of threads."""
    versions = (result["versions"] for row in rows for result in row.results.values())
    kinds = (
        f"{each.get('gpu') or each.get('machine', 'unknown')}, {each.get('threads', '?')} threads" for each in versions
    )
    return list(dict.fromkeys(kinds))


def codes_of(rows: "Iterable[Row]") -> dict[str, list[str]]:
    """Names of rows by the code that computed them, which is identified by its first commit and its hash."""
    titles: dict[str | None, str] = {}
    names: dict[str | None, dict[str, None]] = {}
    for row in rows:
        for result in row.results.values():
            code, commit = (result["versions"].get(key) for key in ("code", "commit"))
            titles.setdefault(code, NOT_RECORDED if code is None else " ".join(filter(None, [commit, f"hash {code}"])))
            names.setdefault(code, {})[row.name] = None
    return {titles[code]: list(found) for code, found in names.items()}


def summary(values: dict[int, float] | Sequence[float]) -> SeedSummary:
    return summarise_seeds(list(values.values()) if isinstance(values, dict) else values)
