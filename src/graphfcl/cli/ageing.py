"""Verbs of a model that grows old: what it is and whether a refit is due, and the refit."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphfcl.cli.answer import Answer, answers
from graphfcl.cli.changes import Model, ModelArgument, ModelOption, OwnMethod, Wait, bring, one_model
from graphfcl.cli.completion import graphs
from graphfcl.cli.history import print_entries
from graphfcl.cli.options import DataDir, Device
from graphfcl.cli.show import print_table, say, say_notes
from graphfcl.errors import InputError

if TYPE_CHECKING:
    from graphfcl.graph.interfaces import AnyGraph
    from graphfcl.production.changes.refitting import Comparison
    from graphfcl.production.model.card import ModelCard


@answers
def refit(
    model: Model,
    graph: Annotated[
        str | None,
        typer.Option(
            "--graph",
            help="Use this graph, which must have the same node ids: a name or a path (default: the model's graph).",
            autocompletion=graphs,
        ),
    ] = None,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Replace the model even if the new one is not better.")
    ] = False,
    method: OwnMethod = None,
    device: Device = "auto",
    wait: Wait = 60.0,
    data_dir: DataDir = None,
) -> Answer:
    """Train again on the current graph and labels; keep the new model if it is better on held-out nodes."""
    bring(method, model)
    from graphfcl.cli.run import usable_device
    from graphfcl.datasets import load_dataset
    from graphfcl.graph.folder import is_graph_folder
    from graphfcl.methods.progress import ProgressBars
    from graphfcl.production import ModelFolder
    from graphfcl.production.graph.place import graph_at

    folder = ModelFolder(model)
    before = folder.current()
    loaded: AnyGraph | None = None
    if graph is not None and is_graph_folder(graph) and folder.load().has_graph_folder:
        loaded = graph_at(Path(graph))
    elif graph is not None:
        loaded = load_dataset(graph, data_dir=data_dir)[0]
        say_notes(loaded)
    with ProgressBars() as bars:
        found = folder.refit(loaded, anyway=anyway, progress=bars, device=usable_device(device), wait=wait)
    number = folder.current()

    def show() -> None:
        _print_comparison(found.comparison)
        say(f"{found.why[0].upper()}{found.why[1:]}.")
        if not found.taken:
            say(f"Nothing was changed: {model} stays at version {before}; use --anyway to replace it.")
            return
        say(f"It is version {number} of {model}.")
        print_entries([entry for entry in folder.history() if entry["version"] == number])

    return Answer({"model": str(model), "version": number, **found.as_json()}, show)


@answers
def info(
    folder: ModelArgument = None,
    model: ModelOption = None,
    full: Annotated[
        bool, typer.Option("--full", help="Also count nodes that look unknown, even if that needs a forward pass.")
    ] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the card as Markdown.")] = False,
    method: OwnMethod = None,
    as_json: bool = False,
) -> Answer:
    """Show a model card: classes, labels, accuracy, data, settings, version, size, and whether a refit is due."""
    place = one_model(folder, model, "info")
    if markdown and as_json:
        raise InputError("--markdown and --json are two forms of one card: keep one of them.")
    bring(method, place)
    from graphfcl.production import ModelFolder

    card = ModelFolder(place).card()
    if full:
        card = replace(card, info=ModelFolder(place).info(full=True))
    name = place.resolve().name
    return Answer(card.as_json(), lambda: say_lines(card.as_markdown(name)) if markdown else _print_card(card, place))


VERBS = (info, refit)


def say_lines(text: str) -> None:
    """Several lines."""
    for line in text.split("\n"):
        say(line)


def _print_card(card: "ModelCard", model: Path) -> None:
    from graphfcl.production.model.card import CLASS_COLUMNS

    print_table(("model", str(model)), card.rows())
    print_table(CLASS_COLUMNS, card.class_rows(), numbers=CLASS_COLUMNS[1:4])
    found = card.info
    signs = [(sign.what, sign.figure, sign.limit, "over" if sign.over else "") for sign in found.signs]
    print_table(("sign of age", "found", "limit", ""), signs)
    say(f"{found.verdict[0].upper()}{found.verdict[1:]}.")


def _print_comparison(comparison: "Comparison") -> None:
    """Class by class."""
    rows = [
        (each.name, f"{100 * each.before:.1f}", f"{100 * each.after:.1f}", f"{each.nodes:,}")
        for each in comparison.classes
    ]
    columns = ("class", "recall before, %", "after, %", "held-out nodes")
    print_table(columns, rows, numbers=columns[1:])
