"""``graphfcl run`` and ``graphfcl methods``."""

from pathlib import Path
from typing import Annotated, Any

import typer

from graphfcl.cli.options import (
    Base,
    ClassOrderOption,
    DataDir,
    Novel,
    ProtocolOption,
    PseudoNovel,
    QueriesOption,
    Seed,
    Sessions,
    Shot,
    TrackOption,
    Way,
    protocol_changes,
    settings_from_options,
)
from graphfcl.errors import InputError


def run_method(
    dataset: Annotated[str, typer.Option("--dataset", help="A name from `data list`, or a path.")] = "debian",
    method: Annotated[str, typer.Option("--method", help="A name from `graphfcl methods`.")] = "hag-meta",
    seed: Seed = 0,
    way: Way = None,
    shot: Shot = None,
    sessions: Sessions = None,
    protocol: ProtocolOption = None,
    track: TrackOption = None,
    base: Base = None,
    pseudo_novel: PseudoNovel = None,
    novel: Novel = None,
    class_order: ClassOrderOption = None,
    queries: QueriesOption = None,
    no_gpil: Annotated[bool, typer.Option("--no-gpil", help="Without meta-training.")] = False,
    no_nla: Annotated[bool, typer.Option("--no-nla", help="Without node-level attention.")] = False,
    no_tla: Annotated[bool, typer.Option("--no-tla", help="Without task-level attention.")] = False,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A setting of the method: key=value; may be repeated.")
    ] = None,
    stream_file: Annotated[Path | None, typer.Option("--stream", help="Run on a saved stream.")] = None,
    device: Annotated[str, typer.Option("--device", help="auto, cpu or cuda.")] = "auto",
    out: Annotated[Path | None, typer.Option("--out", help="Folder of the run [default: one under runs/].")] = None,
    encoders: Annotated[
        Path | None,
        typer.Option(
            "--encoders", help="Folder of pre-trained encoders, which all methods share [default: beside the run]."
        ),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the folder's checkpoint.")] = False,
    data_dir: DataDir = None,
) -> None:
    """Train a method on session 0, walk it through all sessions, and measure it."""
    from graphfcl.cli.progress import RunDisplay, print_result
    from graphfcl.datasets import load_dataset
    from graphfcl.experiments import Run, run
    from graphfcl.methods import find_method
    from graphfcl.report import accuracy_figure, matrix_figure
    from graphfcl.stream import load_stream, make_stream

    changes = protocol_changes(way, shot, sessions, protocol, track, base, pseudo_novel, novel, class_order, queries)
    method = find_method(method).name
    chosen = settings_from_options(settings or [])
    without: dict[str, Any] = {"gpil": False, "nla": False, "tla": None}
    for (key, value), off in zip(without.items(), (no_gpil, no_nla, no_tla), strict=True):
        if off:
            chosen[key] = value
    on = usable_device(device)
    graph, default = load_dataset(dataset, data_dir=data_dir)
    if stream_file is None:
        stream = make_stream(graph, default, seed=seed, **changes)
    elif seed or any(value is not None for value in changes.values()):
        raise InputError("a stream read with --stream has its own seed and rules: leave the other options out.")
    else:
        stream = load_stream(stream_file, graph)
    job = Run(stream, method, chosen, on)
    folder = out or Path("runs") / job.short_name()
    print(f"{method} on {stream!r}, device {on}")
    with RunDisplay() as display:
        result = run(job, folder, resume=resume, progress=display, encoders=encoders or folder.parent / "encoders")
    print_result(result)
    accuracy_figure(result, folder / "accuracy.png")
    matrix_figure(result, folder / "matrix.png")
    print(f"Result, stream, checkpoint and two figures are in {folder}.")


def usable_device(wanted: str) -> str:
    """cpu or cuda."""
    import torch

    if wanted not in ("auto", "cpu", "cuda"):
        raise InputError(f"--device is {wanted!r}; it must be auto, cpu or cuda.")
    if wanted == "cuda" and not torch.cuda.is_available():
        raise InputError("--device cuda: this machine has no usable GPU; take cpu.")
    if wanted == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    return wanted


def list_methods(
    name: Annotated[str | None, typer.Argument(help="Show the settings of this method.", show_default=False)] = None,
) -> None:
    """All methods, or the settings of one with their defaults."""
    from graphfcl.cli.show import print_table
    from graphfcl.methods import METHODS, find_method

    if name is not None:
        rows = find_method(name).settings_rows()
        print_table(("setting (--set key=value)", "default", "kind"), rows)
        return
    print_table(("method", "what", "reference"), [(m.name, m.title, m.reference) for m in METHODS])
