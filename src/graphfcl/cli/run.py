"""``graphfcl run``."""

import types
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, ClassVar, Union, get_args, get_origin, get_type_hints

import typer

import graphfcl.cli.options as opts
import graphfcl.experiments as experiments
import graphfcl.methods as methods
import graphfcl.metrics as metrics
import graphfcl.report as report
import graphfcl.stream as streams
from graphfcl.cli.completion import graph_names, method_names
from graphfcl.cli.on_disk import FolderOptions
from graphfcl.cli.options import option
from graphfcl.cli.output import Output, print_line, print_notes, print_table, with_json
from graphfcl.cli.stream import drawn_or_saved
from graphfcl.defaults import MODEL_METHOD, RUN_GRAPH, RUN_METHOD, STRATEGY
from graphfcl.errors import InputError, did_you_mean

SWITCHES = {"ignore_unknown_options": True, "allow_extra_args": True}  # which --no-NAME exist depends on the method
OFF = "--no-"
MARKS = {
    "trained_on_query_labels": (
        "TRAINED ON QUERY LABELS (protocol 'paper'): compare only with results under the same mark."
    ),
    "uses_pool_labels": "USES POOL LABELS: an upper reference, trained on labels that no other method receives.",
    "control": "A CONTROL: it measures how much the protocol alone reveals; do not compare it with methods.",
    "needs_oracle": "NEEDS AN ORACLE: it chooses nodes by their class, which no user knows before labelling.",
}


RunMethod = Annotated[
    str,
    option(
        "Method: a name from `graphfcl methods`, or your own as module:Class. The default is HAG-Meta; "
        f"for your own data use {MODEL_METHOD}.",
        method_names,
    ),
]
RunStrategy = Annotated[
    str | None, option("With --track active: strategy, a name or module:Class (default: auto).", opts.STRATEGIES)
]


@dataclass(frozen=True)
class RunGraph(opts.GraphOptions):
    """The graph of a run."""

    graph: Annotated[str | None, option(f"{opts.GRAPH_HELP[:-1]} (default: {RUN_GRAPH}).", graph_names)] = None


@dataclass(frozen=True)
class RunOptions:
    """Where a run computes and writes its results."""

    panel: ClassVar[str] = "Output"
    device: opts.Device = "auto"
    out: Annotated[Path | None, option("Folder for results (default: runs/ and a name made from the settings).")] = None
    encoders: Annotated[Path | None, option("Folder for pre-trained encoders (default: next to the results).")] = None
    resume: Annotated[bool, option("Continue from the checkpoint in the folder of results.", flag="--resume")] = False


@with_json
def run_method(
    context: typer.Context,
    *,
    source: RunGraph,
    method: RunMethod = RUN_METHOD,
    strategy: RunStrategy = None,
    seed: opts.Seed = 0,
    rules: opts.StreamOptions,
    settings: opts.Settings = None,
    stream_file: Annotated[Path | None, option("Use a saved stream instead of drawing one.", flag="--stream")] = None,
    options: RunOptions,
    large: FolderOptions,
) -> Output:
    """Train a method on session 0 and evaluate it on all sessions.

    --no-NAME switches the setting NAME of the method off, for example --no-refit.
    """
    opts.refuse_file(options.out, "--out")
    named = methods.method_from(method)
    declared = [name for parameter in context.command.params for name in parameter.opts]
    chosen = opts.settings_from_options(settings)
    chosen |= switched_off(context.args, declared, named.name, named.settings_with({}))
    with ExitStack() as stack:
        with_default = source if source.given() else replace(source, graph=RUN_GRAPH)
        loaded, default = large.load_graph(with_default, named.name, stack)
        print_notes(loaded)
        stream = drawn_or_saved(loaded, default, seed, rules, stream_file, "--stream")
        on = opts.usable_device(stream.graph.device_for(opts.requested_device(options.device)))
        job = experiments.Run(stream, named.name, chosen, on, _strategy(strategy, stream))
        folder = options.out or Path("runs") / job.short_name()
        print_line(f"{named.name}{f' with {job.strategy}' if job.strategy else ''} on {stream!r}, device {on}")
        with methods.ProgressBars() as bars:
            result = experiments.run(
                job,
                folder,
                resume=options.resume,
                progress=bars,
                encoders=options.encoders or folder.parent / "encoders",
            )
    report.accuracy_figure(result, folder / "accuracy.png")
    report.matrix_figure(result, folder / "matrix.png")

    def show() -> None:
        if options.resume and not bars.stage:
            print_line(f"This run had finished before, so nothing was computed. {folder} contains the result below.")
        _print_result(result)
        print_line(
            f"Result, stream, checkpoint and two figures are in {folder}; look at {folder / 'accuracy.png'} first."
        )

    return Output({"folder": str(folder), **result}, show)


def _strategy(text: str | None, stream: "streams.Stream") -> str:
    """The name of the strategy; empty unless the track is ``active``."""
    if stream.protocol.track != "active":
        if text is not None:
            raise InputError("--strategy needs the track 'active': add --track active, or leave it out.")
        return ""
    text = text or STRATEGY
    return opts.strategy_name(text, f"--strategy {text}")


def switched_off(words: Sequence[str], declared: Sequence[str], method: str, settings: Any) -> dict[str, Any]:
    """Parse ``--no-NAME``: a boolean setting becomes False, a setting that may be None becomes None.

    Args:
        words: Words of the command that are not declared options.
        declared: Names of all options, for a hint.
        method: Name of the method, for messages.
        settings: Default settings of the method.
    """
    off = {name: _values_off(kind) for name, kind in get_type_hints(type(settings)).items()}
    switches = [field.name.replace("_", "-") for field in fields(settings) if off[field.name]]
    changes = {}
    for word in words:
        if not word.startswith("-"):
            raise InputError(f"{word!r} has no option before it: add the option, or leave the word out.")
        name = word.removeprefix(OFF)
        if name == word:
            flag = word.partition("=")[0]
            hint = did_you_mean(flag, declared, "see `graphfcl run --help`.").replace("'", "")
            raise InputError(f"there is no option {flag}: {hint}")
        key = name.replace("-", "_")
        if key not in off:
            others = f"it can switch off {', '.join(switches)}." if switches else "it has nothing to switch off."
            hint = did_you_mean(name, switches, others)
            raise InputError(f"{word}: {method} has no setting {key!r}: {hint}")
        if not off[key]:
            place = f"{key}.NAME" if is_dataclass(getattr(settings, key)) else key
            raise InputError(
                f"{word}: {key} of {method} cannot be switched off: give it a value with --set {place}=VALUE."
            )
        changes[key] = off[key][0]
    return changes


def _values_off(kind: Any) -> list[Any]:
    """Values that switch a setting of this type off: False if it can be a bool, None if it can be None."""
    kinds = get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)
    return [value for value, each in ((False, bool), (None, type(None))) if each in kinds]


def _print_result(result: dict[str, Any]) -> None:
    """Print marks, the table of sessions and a summary."""
    flags = {**result, **result["flags"]}
    for mark in (text for flag, text in MARKS.items() if flags.get(flag)):
        print_line()
        print_line(mark)
    shown = [metric for metric in metrics.session_metrics() if "print" in metric.places]
    extra = ("labels", "novel_classes_found") if "strategy" in result else ()
    titles = tuple(name.replace("_", " ") for name in extra)
    columns = ("session", "classes", *titles, *(metric.title for metric in shown), "seconds")
    rows = [
        (
            s["session"],
            s["classes"],
            *(s[name] for name in extra),
            *(metric.text(s[metric.name]) for metric in shown),
            f"{s['seconds']:.2f}",
        )
        for s in result["sessions"]
    ]
    print_table(columns, rows, numbers=columns)
    _print_stream_metrics(result)
    if result["chosen"]:
        chosen = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in result["chosen"].items())
        print_line(f"Selected by validation: {chosen}.")
    encoder, on_gpu = result["pretraining"], result["peak_gpu_memory_mb"]
    reused = f", without {encoder['seconds']:.1f} s for the encoder, which was reused" if encoder["reused"] else ""
    memory = f"{result['peak_memory_mb']:.0f} MB" + ("" if on_gpu is None else f", on the GPU {on_gpu:.0f} MB")
    print_line(f"{result['total_seconds']:.1f} s in total{reused}; peak memory {memory}.")
    kept = ", ".join(f"{kind} {size:,}" for kind, size in result["stored"].items() if size)
    print_line(f"Kept between sessions: {result['stored_bytes']:,} bytes ({kept}).")


def _print_stream_metrics(result: dict[str, Any]) -> None:
    """Print the metrics of the whole stream. Metrics with the same note share a line."""
    shown = [metric for metric in metrics.stream_metrics() if "print" in metric.places]
    lines: list[tuple[str, list[Any]]] = [(note, [*group]) for note, group in groupby(shown, lambda each: each.note)]
    if "strategy" in result:
        lines.append(("", [*metrics.active_metrics()]))
    for note, group in lines:
        figures = "  ".join(f"{metric.title} {metric.text(result[metric.name])}" for metric in group)
        print_line(f"{figures}  ({note})" if note else figures)
