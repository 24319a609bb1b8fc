"""Released code of other authors on our streams, beside our implementation."""

import textwrap

import numpy as np

from scripts.figures.reading import find_block, find_row, read_csv
from scripts.figures.texts import signed, table

OURS = {  # released code → rows of Table 2 with our implementation
    "GFCIL": ("hag-meta", "hag-meta, as printed"),
    "TAP": ("tap", "tap, no steps", "anchor"),
}
FULL_SEEDS = 3
STEP, LABELLED, NO_STEP = "its step on query labels", "a step on labelled nodes only", "no step"


def released_code(code: str) -> str:
    """Session 0 → last session of a released code, with classes of session 0 and new classes, and ours."""
    lines = [line for line in read_csv("released_code.csv") if line["code"] == code]
    graphs, forms = (list(dict.fromkeys(line[key] for line in lines)) for key in ("dataset", "form"))
    rows = []
    for form in forms:
        cells = []
        for graph in graphs:
            own = [line for line in lines if (line["form"], line["dataset"]) == (form, graph)]
            cells += ["", ""] if not own else [_accuracies(own), _seeds(len(own))]
        rows.append([f"{code}: {form}", *cells])
    for name in OURS[code]:
        cells = []
        for graph in graphs:
            row = find_row(find_block("table2", graph, track="transductive"), name)
            seeds = [seed for seed in row.results if seed < FULL_SEEDS]
            sessions = [row.results[seed]["sessions"] for seed in seeds]
            values = [
                {
                    "session_0": 100 * each[0]["balanced_accuracy"],
                    "last_session": 100 * each[-1]["balanced_accuracy"],
                    "session_0_classes": 100 * each[-1]["base"],
                    "new_classes": 100 * each[-1]["novel"],
                }
                for each in sessions
            ]
            cells += [_accuracies(values), _seeds(len(values))]
        rows.append([f"ours: `{name}`", *cells])
    head = [text for graph in graphs for text in (f"`{graph}`", "seeds")]
    whole = table(["session 0 → last (session-0 / new classes), %", *head], rows)
    return f"{whole}\n\n{_contrasts(lines, graphs)}" if STEP in forms else whole


def _accuracies(lines: list[dict[str, float]] | list[dict[str, str]]) -> str:
    first, last, base, new = (
        np.mean([float(line[key]) for line in lines])
        for key in ("session_0", "last_session", "session_0_classes", "new_classes")
    )
    return f"{first:.1f} → {last:.1f} ({base:.1f} / {new:.1f})"


def _seeds(count: int) -> str:
    return "0" if count == 1 else f"0 to {count - 1}"


def _contrasts(lines: list[dict[str, str]], graphs: list[str]) -> str:
    """What the step of GFCIL brings at the last session, mean over seeds."""

    def last(form: str, graph: str) -> float:
        return float(
            np.mean([float(line["last_session"]) for line in lines if (line["form"], line["dataset"]) == (form, graph)])
        )

    texts = []
    for first, second, about in ((STEP, LABELLED, "query labels add"), (LABELLED, NO_STEP, "the step itself adds")):
        gains = [f"{signed(last(first, graph) - last(second, graph))} on `{graph}`" for graph in graphs]
        texts.append(f"{about} {' and '.join(gains)}")
    text = f"At the last session {'; '.join(texts)} (points, means over seeds)."
    return textwrap.fill(text, 120, break_on_hyphens=False)
