"""Protocol versions, the classifier, strategies, controls, and what was measured once."""

import json
import textwrap
from collections.abc import Iterable

import numpy as np

from benchmarks import closed_set as closed_set_benchmark
from benchmarks import label_issues as label_issues_benchmark
from benchmarks import labelling_order as labelling_order_benchmark
from benchmarks.false_positives import RATIOS, rates
from graphfcl.methods import METHODS
from graphfcl.report import ORACLE, Block, summary
from graphfcl.stream import PROTOCOL_VERSION
from scripts.figures.reading import GRAPHS, ROOT, find_blocks, find_row, read_csv
from scripts.figures.texts import code, listed, signed, table

EQUAL_LEARNERS = {
    "views": "one learner on two draws of the features from the same class vectors: equal for nodes of this source",
    "draws": "one method with two random projections, drawn again for every stream",
    "sources": "as `views`, with class vectors of their own: equal only on average over graphs",
}


def version(*sources: str) -> str:
    """Protocol version and seeds of what a section shows.

    A source is GRID or GRID/PROTOCOL of ``results/bench``, or another entry of ``results/sources.json``.
    """
    others = json.loads((ROOT / "results" / "sources.json").read_text()).keys() & set(sources)
    seeds: dict[str, list[str]] = {}
    for source in sources:
        if source not in others:
            grid, _, protocol = source.partition("/")
            title = f"`{grid}`" + (f" under `{protocol}`" if protocol else "")
            seeds.setdefault(seeds_of(find_blocks(grid, protocol or "strict")), []).append(title)
    parts = list(seeds) if len(seeds) < 2 else [f"{text} ({listed(titles)})" for text, titles in seeds.items()]
    return f"*{'; '.join([f'Protocol version {PROTOCOL_VERSION}', *parts]).replace(';', ',', 1)}.*"


def seeds_of(blocks: Iterable[Block]) -> str:
    """The seeds of blocks, and of which graphs they differ."""
    found: dict[str, dict[str, None]] = {}
    for block in blocks:
        seeds = {seed for row in block.rows for seed in row.results}
        text = f"seeds {min(seeds)} to {max(seeds)}" if len(seeds) > 1 else f"seed {min(seeds)}"
        found.setdefault(text, {})[block.dataset] = None
    usual = max(found, key=lambda text: len(found[text]))
    others = [f"{text} on {listed(code(found[text]))}" for text in found if text != usual]
    return "; ".join([usual, *others])


def measured(name: str) -> str:
    """A table of ``results/measured.csv``: what was measured once, with where."""
    lines = [line for line in read_csv("measured.csv") if line["part"] == name]
    columns, rows = (list(dict.fromkeys(line[key] for line in lines)) for key in ("column", "row"))
    cells = {(line["row"], line["column"]): line["value"] for line in lines}
    about = [f"`{line['command']}`, {line['machine']}" for line in lines]
    text = table(["", *columns], [[row, *(cells.get((row, column), "") for column in columns)] for row in rows])
    return f"{text}\n\nMeasured once: {'; '.join(dict.fromkeys(about))}."


def answers() -> str:
    """How far probabilities, sets and unknown scores can be trusted: session-0 classes, then classes learned later."""

    def mean(graph: str | None, column: str, sessions: Iterable[int] = range(4)) -> float:
        lines = [line for line in read_csv("answers.csv") if graph in (None, line["dataset"])]
        # Four lines a run: session 0, the middle one, the last but one, the last.
        found = [line[column] for number, line in enumerate(lines) if number % 4 in sessions]
        return float(np.mean([float(text) for text in found if text]))

    def pair(graph: str | None, column: str, scale: float = 100, digits: int = 0) -> str:
        return ", ".join(f"{scale * mean(graph, f'{kind} {column}'):.{digits}f}" for kind in ("base", "novel"))

    rows = []
    for graph in (*GRAPHS, None):
        auroc = " / ".join(f"{mean(graph, 'AUROC', [number]):.2f}" for number in range(3))
        cells = [auroc, f"{100 * mean(graph, 'flagged'):.0f}", pair(graph, "called known")]
        cells += [pair(graph, "calibration error", digits=1), pair(graph, "answers calibration error", digits=1)]
        cells += [pair(graph, "coverage"), pair(graph, "set size", 1, 1)]
        rows.append([f"`{graph}`" if graph else "mean", *cells])
    head = ["", "AUROC", "flagged, %", "called known, %", "calibration error by true class", "by predicted class"]
    return table([*head, "coverage, %", "classes in a set"], rows)


def groups() -> str:
    """Purity of the five tightest groups of unknown nodes, and what a class named by one of them finds."""
    rows: dict[str, list[str]] = {
        name: [name]
        for name in (
            "mean purity, %",
            "purity of the least pure group, %",
            "estimated purity, %",
            "estimated minus true purity, points",
            "groups of estimated 95 % or more",
            "of these, less than 80 % pure",
            "different classes among the five",
            "recall of a class named by its group, %",
            "seeds",
        )
    }
    for graph in GRAPHS:
        lines = [line for line in read_csv("groups.csv") if line["dataset"] == graph]
        purity = [100 * float(line["purity"]) for line in lines]
        runs = {line["seed"] for line in lines}
        classes = [len({line["class"] for line in lines if line["seed"] == seed}) for seed in runs]
        recall = [100 * float(line["recall when named"]) for line in lines if line["recall when named"]]
        estimated = [100 * float(line["sure"]) for line in lines]
        high = [true for true, stated in zip(purity, estimated, strict=True) if stated >= 95]
        gap = f"{np.mean(estimated) - np.mean(purity):+.1f}".replace("-", "−")
        found = [f"{np.mean(purity):.1f}", f"{min(purity):.0f}", f"{np.mean(estimated):.1f}", gap]
        found += [str(len(high)), str(sum(true < 80 for true in high))]
        found += [f"{np.mean(classes):.1f}", f"{np.mean(recall):.0f}", str(len(runs))]
        for row, cell in zip(rows.values(), found, strict=True):
            row.append(cell)
    return table(["", *code(GRAPHS)], rows.values())


def labelling_order() -> str:
    """Labels that a scripted person gives in the order of the page, or in random order, and the accuracy reached."""
    curves: dict[tuple[str, str], list[labelling_order_benchmark.Row]] = {}
    for line in read_csv("labelling_order.csv"):
        point = {"labels": int(line["labels"]), "accuracy": float(line["accuracy"])}
        curves.setdefault((line["seed"], line["order"]), []).append(point)
    seeds = dict.fromkeys(seed for seed, _ in curves)
    rows = []
    for order in ("page", "random"):
        needed = []
        for seed in seeds:
            enough = labelling_order_benchmark.ENOUGH * curves[seed, "page"][-1]["accuracy"]
            count = labelling_order_benchmark.labels_needed(curves[seed, order], enough)
            needed.append(f"more than {curves[seed, order][-1]['labels']}" if count is None else str(count))
        ends = [f"{100 * curves[seed, order][-1]['accuracy']:.1f}" for seed in seeds]
        rows.append([order, ", ".join(needed), ", ".join(ends)])
    last = max(point["labels"] for curve in curves.values() for point in curve)
    return table(["order", "labels for 95 % of the accuracy", f"accuracy after {last} labels, %"], rows)


def label_issues() -> str:
    """How well wrong labels are found, by the model's confidence and by other scores of the same probabilities."""
    lines = read_csv("label_issues.csv")
    graphs, scores = (dict.fromkeys(line[key] for line in lines) for key in ("dataset", "score"))

    def row(title: str, form: str, **where: str) -> list[str]:
        cells = []
        for graph in graphs:
            here = [line for line in lines if {"dataset": graph, **where}.items() <= line.items()]
            means = {key: label_issues_benchmark.mean(here, key) for key in label_issues_benchmark.MEASURED}
            cells.append(form.format(**means))
        return [title, *cells]

    titles = label_issues_benchmark.TITLES
    return table(
        ["AUROC, precision", *code(graphs)],
        [
            *(row(titles[score], "{AUROC:.3f}, {precision:.0%}", score=score) for score in scores),
            row("labels", "{labels:,.0f}"),
            row("accuracy of the likeliest class", "{accuracy:.0%}"),
            row(f"processor seconds of {lines[0]['folds']} folds, of a fit", "{seconds:.0f}, {fit seconds:.0f}"),
        ],
    )


def strategies(method: str) -> str:
    """Balanced accuracy with 60 % of the labels and with all, and novel classes found, for each strategy."""
    blocks = find_blocks("active", track="active")
    names = [row.name for row in blocks[0].rows if row.name.startswith(f"{method}, ")]
    names.sort(key=lambda name: -summary(find_row(blocks[0], name).values("balanced_at_all")).mean)
    rows = []
    for name in names:
        oracle = " (needs an oracle)" if ORACLE in find_row(blocks[0], name).marks else ""
        cells = []
        for block in blocks:
            found = [
                summary(find_row(block, name).values(key)).mean
                for key in ("balanced_at_60", "balanced_at_all", "classes_found")
            ]
            cells.append(f"{found[0]:.1f} / {found[1]:.1f}, {found[2]:.0f}")
        rows.append([f"`{name.removeprefix(f'{method}, ')}`{oracle}", *cells])
    return table([f"`{method}`", *code(block.dataset for block in blocks)], rows)


def candidates() -> str:
    """The steps and rates that validation sessions choose from, as the settings of each method say."""
    found: dict[str, list[str]] = {}
    for method in METHODS:
        settings = method.settings_with({})
        if hasattr(settings, "fine_tuning"):
            text = ", ".join(f"{steps} × {rate:g}" for steps, rate in settings.fine_tuning)
            found.setdefault(text, []).append(method.name)
    return table(
        ["candidates (steps × learning rate), besides no steps", "methods"],
        [[text, ", ".join(code(found[text]))] for text in found],
    )


def closed_set() -> str:
    """The control of ``isolated``: what self-training among the new classes gains, and among all classes loses."""
    rows = read_csv("closed_set.csv")
    datasets = list(dict.fromkeys(row["dataset"] for row in rows))

    def gain(dataset: str, track: str, form: str) -> float:
        """Points of new classes over the form without self-training, mean over seeds."""
        found = [
            np.mean([float(row["novel"]) for row in rows if (row["dataset"], row["track"], row["form"]) == kind])
            for kind in ((dataset, track, form), (dataset, track, "no self-training"))
        ]
        return float(found[0] - found[1])

    changes = [
        listed([f"{signed(gain(dataset, track, form))} points on `{dataset}`" for dataset in datasets])
        for track, form in (("isolated", "among the new classes"), ("transductive", "among all classes"))
    ]
    text = (
        f"Self-training that knows the classes changes the accuracy of new classes by {changes[0]}; under "
        f"`transductive` self-training changes it by {changes[1]}. Means of {len({row['seed'] for row in rows})} seeds."
    )
    lines = "\n".join(closed_set_benchmark.table(rows))
    return f"{lines}\n\n{textwrap.fill(text, 120, break_on_hyphens=False)}"


def false_positives() -> str:
    """How often the corrected test calls equal learners different, for each ρ."""
    rows = read_csv("false_positives.csv")
    found = rates(rows)
    cells = [
        [f"`{null}`", about, *(f"{100 * found[null][ratio]:.1f} %" for ratio in RATIOS)]
        for null, about in EQUAL_LEARNERS.items()
    ]
    ratio = np.mean([float(row["ratio"]) for row in rows])
    graphs = len({row["graph"] for row in rows})
    head = ["", "two learners that are equal in expectation", "ρ = 0", "ρ = 1/3", "ρ of the streams"]
    return f"{table(head, cells)}\n\n{graphs} graphs; n_test/n_train is {ratio:.2f} on average."
