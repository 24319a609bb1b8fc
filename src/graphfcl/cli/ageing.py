"""Verbs of a model that grows old: what it is and whether a refit is due, and the refit."""

from typing import TYPE_CHECKING, Annotated

import typer

from graphfcl.cli.history import print_entries
from graphfcl.cli.model import Device, Model, OwnMethod, Wait, bring
from graphfcl.cli.options import DataDir
from graphfcl.cli.show import print_table, say, say_json

if TYPE_CHECKING:
    from graphfcl.production.comparison import Comparison


def refit(
    model: Model,
    graph: Annotated[
        str | None,
        typer.Option("--graph", help="The graph anew, same ids: a name or a path (default: the model's own)."),
    ] = None,
    anyway: Annotated[bool, typer.Option("--anyway", help="Also if the new model is no better.")] = False,
    method: OwnMethod = None,
    device: Device = "auto",
    wait: Wait = 60.0,
    data_dir: DataDir = None,
) -> None:
    """Train anew on the graph and labels of today; the next version if it is better on held-out nodes."""
    bring(method, model)
    from graphfcl.cli.progress import RunDisplay
    from graphfcl.cli.run import usable_device
    from graphfcl.datasets import load_dataset
    from graphfcl.production import ModelFolder

    folder = ModelFolder(model)
    before = folder.current()
    loaded = None if graph is None else load_dataset(graph, data_dir=data_dir)[0]
    with RunDisplay() as display:
        found = folder.refit(loaded, anyway=anyway, progress=display, device=usable_device(device), wait=wait)
    _print_comparison(found.comparison)
    say(f"{found.why[0].upper()}{found.why[1:]}.")
    if not found.taken:
        say(f"Nothing was changed: {model} stays at version {before}; --anyway takes the new model all the same.")
        return
    number = folder.current()
    say(f"It is version {number} of {model}.")
    print_entries([entry for entry in folder.history() if entry["version"] == number])


def info(
    model: Model,
    full: Annotated[
        bool, typer.Option("--full", help="Count unknown nodes even if that takes a forward pass.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    method: OwnMethod = None,
) -> None:
    """What the model is, what it takes on the disk, and whether a refit is due."""
    bring(method, model)
    from graphfcl.production import ModelFolder

    found = ModelFolder(model).info(full=full)
    if as_json:
        say_json(found.as_json())
        return
    rows = [
        ("method", found.method),
        ("classes", f"{found.classes:,}, {found.few_shot:,} of them few-shot"),
        ("nodes, edges", f"{found.nodes:,}, {found.edges:,}; {found.labelled:,} labelled"),
        ("version", f"{found.version}, {found.when.replace('+00:00', 'Z')}; {found.changes:,} changes"),
        ("fitted", found.fitted.replace("+00:00", "Z")),
        *((f"{kind} on disk", _size(size)) for kind, size in (found.bytes_on_disk or {}).items()),
    ]
    print_table(("model", str(model)), rows)
    signs = [(sign.what, sign.figure, sign.limit, "over" if sign.over else "") for sign in found.signs]
    print_table(("sign of age", "found", "limit", ""), signs)
    say(f"{found.verdict[0].upper()}{found.verdict[1:]}.")


VERBS = (info, refit)


def _size(count: int) -> str:
    return f"{count / 1e6:,.1f} MB" if count >= 1e6 else f"{count / 1e3:,.1f} kB"


def _print_comparison(comparison: "Comparison") -> None:
    """Class by class."""
    rows = [
        (each.name, f"{100 * each.before:.1f}", f"{100 * each.after:.1f}", f"{each.nodes:,}")
        for each in comparison.classes
    ]
    columns = ("class", "recall before, %", "after, %", "held-out nodes")
    print_table(columns, rows, numbers=columns[1:])
