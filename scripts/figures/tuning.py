"""How much each method was tuned, and what its settings became by it."""

from functools import cache
from typing import Any

from graphfcl.experiments.paper_grids import all_methods
from graphfcl.methods import find_method
from scripts import tuning
from scripts.figures.reading import read_csv
from scripts.figures.texts import code, table


@cache
def _trials() -> list[tuning.Trial]:
    return tuning.read_trials()


def widths() -> str:
    """Accuracies of the three widths, of each method with a trained encoder; the best is bold."""
    best, rows = tuning.chosen(_trials()), []
    for method in tuning.ENCODERS:
        trials = [trial for trial in _trials() if (trial.study, trial.method) == ("width", method)]
        marks = ["**" if best["width", method] == trial.candidate else "" for trial in trials]
        rows.append([f"`{method}`", *(f"{m}{trial.accuracy:.1f}{m}" for m, trial in zip(marks, trials, strict=True))])
    return table(["method", *(f"{each['hidden']}, {each['size']}" for each in tuning.WIDTHS)], rows)


def budget() -> str:
    """Of each method: what was tried on development graphs and its hours, candidates of a run, and earlier runs."""
    runs = read_csv("tuning.csv")
    rows = []
    for method in map(find_method, all_methods()):
        own = [row for row in runs if row["method"] == method.name]
        tried = len({(row["study"], row["candidate"]) for row in own})
        graphs, seeds = (len({row[key] for row in own}) for key in ("graph", "seed"))
        hours = sum(float(row["seconds"]) for row in own) / 3600
        earlier = [row for row in read_csv("tuning_earlier.csv") if row["method"] == method.name]
        before = sum(int(row["candidates"]) * int(row["graphs"]) * int(row["seeds"]) for row in earlier)
        counts = [str(tried), str(graphs), str(seeds), str(len(own)), f"{hours:.2f}"] if own else [""] * 5
        inside = candidates_of_a_run(method.make({}, seed=0))
        rows.append([*code([method.name]), *counts, str(inside or ""), str(before or "")])
    titles = ["candidates", "graphs", "seeds", "runs", "GPU hours", "candidates in a run", "earlier runs, about"]
    return table(["method", *titles], rows)


def candidates_of_a_run(learner: Any) -> int:
    """How many candidates the validation of a run chooses from, besides when training stops."""
    settings = learner.settings
    if hasattr(learner, "fine_tuning") and hasattr(settings, "fine_tuning"):
        return len(learner.fine_tuning.candidates) * len(getattr(settings, "adjustments", (0.0,)))
    if hasattr(settings, "neighbourhoods"):
        return len(settings.neighbourhoods())
    return len(learner._candidates()) if hasattr(learner, "_candidates") else 0
