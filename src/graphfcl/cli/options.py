"""Options that several verbs share, groups of options, and how their texts become values."""

import inspect
import os
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from graphfcl.cli.completion import choices, graphs, methods, models
from graphfcl.errors import InputError
from graphfcl.runtime.devices import best_device, checked_device
from graphfcl.runtime.tasks import Tasks, find_backend
from graphfcl.runtime.tasks.submitit_backend import options_from


def option(flag: str, text: str, complete: Callable[[str], list[str]] | None = None, **more: Any) -> Any:
    """A typer option. text: its help. complete: what a shell offers for it."""
    return typer.Option(flag, help=text, autocompletion=complete, **more)


PROTOCOLS, TRACKS = ("strict", "paper"), ("transductive", "isolated", "open", "active")
STRATEGIES = choices("auto", "typical", "uncertain", "unknown", "random")
GRAPH_HELP = "Graph: a name from `data list`, an .npz file, a folder of tables, or a graph folder."
BY_GRAPH = "(default: set by the graph)."
CLASSES_HELP = f"a number, or names separated by commas ('a,' for one name) {BY_GRAPH}"

Device = Annotated[
    str,
    option(
        "--device",
        "Device: auto, cpu, cuda, or cuda:1 for the second GPU.",
        choices("auto", "cpu", "cuda", "cuda:0", "cuda:1"),
    ),
]
Graph = Annotated[str | None, option("--graph", GRAPH_HELP, graphs)]
DataDir = Annotated[Path | None, option("--data-dir", "Folder with the data files (default: $GRAPHFCL_DATA).")]
Seed = Annotated[int, option("--seed", "Random seed.", min=0)]
Settings = Annotated[
    list[str] | None, option("--set", "Change a setting of the method; repeatable.", metavar="KEY=VALUE")
]
Model = Annotated[Path, option("--model", "Model folder.", models)]
ModelArgument = Annotated[Path | None, typer.Argument(metavar="MODEL", help="Model folder.", autocompletion=models)]
ModelOption = Annotated[Path | None, option("--model", "Model folder; same as the argument MODEL.", models)]
OwnMethod = Annotated[str | None, option("--method", "The model's method as module:Class, if it is your own.", methods)]
GraphPlace = Annotated[Path | None, option("--graph", "New place of the model's graph folder, if it was moved.")]
Wait = Annotated[float, option("--wait", "Seconds to wait while another process changes the model.", min=0)]
StandardiseOption = Annotated[
    bool | None,
    option(
        "--standardise/--no-standardise",
        "Scale dense features to mean 0 and standard deviation 1 over session 0 (default: yes).",
    ),
]
TrackOption = Annotated[
    str | None,
    option(
        "--track",
        "What of the graph is visible: transductive, isolated, open, or active (strategy selects labels) "
        "(default: transductive).",
        choices(*TRACKS),
    ),
]


@dataclass(frozen=True)
class StreamOptions:
    """The rules of a stream where they differ from the dataset's; None where an option was not given."""

    way: Annotated[int | None, option("--way", f"Number of new classes per session, N {BY_GRAPH}")] = None
    shot: Annotated[int | None, option("--shot", f"Number of labelled nodes per new class, K {BY_GRAPH}")] = None
    sessions: Annotated[
        int | None,
        option("--sessions", "Maximum number of sessions after session 0 (default: as many as the classes allow)."),
    ] = None
    protocol: Annotated[
        str | None,
        option("--protocol", "Evaluation protocol: strict or paper (default: strict).", choices(*PROTOCOLS)),
    ] = None
    track: TrackOption = None
    base: Annotated[str | None, option("--base", f"Base classes: {CLASSES_HELP}")] = None
    pseudo_novel: Annotated[str | None, option("--pseudo-novel", f"Pseudo-novel classes: {CLASSES_HELP}")] = None
    novel: Annotated[str | None, option("--novel", f"Novel classes: {CLASSES_HELP}")] = None
    class_order: Annotated[
        str | None,
        option(
            "--class-order",
            "How base classes are chosen: size takes the largest, random draws them (default: size).",
            choices("size", "random"),
        ),
    ] = None
    queries: Annotated[
        int | None, option("--queries", "Number of test nodes per class under --protocol paper (default: K).")
    ] = None
    standardise: StandardiseOption = None

    def changes(self) -> dict[str, Any]:
        """The rules that options change; None where an option was not given."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        classes = {name: classes_from(values[name]) for name in ("base", "pseudo_novel", "novel")}
        return {"name": values.pop("protocol"), **values, **classes}

    def given(self) -> bool:
        return self != StreamOptions()


@dataclass(frozen=True)
class BackendOptions:
    """Where tasks run."""

    backend: Annotated[str, option("--backend", "Where workers run: local, ray or submitit (see docs/engines.md).")] = (
        "local"
    )
    ray_address: Annotated[
        str | None,
        option("--ray-address", "Address of a running Ray cluster: auto or HOST:PORT (default: start Ray here)."),
    ] = None
    submitit_option: Annotated[
        list[str] | None,
        option(
            "--submitit-option",
            "Option for submitit: KEY=VALUE, such as slurm_partition=long or timeout_min=60; repeatable.",
        ),
    ] = None

    def tasks(self, workers: int, *, folder: Path | None = None) -> Tasks:
        """The chosen engine. folder: where submitit keeps tasks and logs; every node must see it."""
        find_backend(self.backend)
        return Tasks(
            self.backend,
            workers,
            ray_address=self.ray_address,
            submitit_options=options_from(self.submitit_option or []),
            folder=folder,
        )

    def refuse(self, fix: str) -> None:
        """Refuse these options, which are for graph folders that stay on the disk. fix: what to do instead."""
        find_backend(self.backend)
        for field in fields(BackendOptions):
            if getattr(self, field.name) not in (field.default, []):
                flag = f"--{field.name.replace('_', '-')}"
                raise InputError(f"{flag} is for graph folders that stay on the disk: {fix}.")


def needed_graph(graph: str | None) -> str:
    """The graph that a user named with ``--graph``."""
    if graph is None:
        raise InputError("name the graph with --graph: `graphfcl data list` has the names.")
    return graph


def with_option_groups(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Let a verb take frozen dataclasses of options: typer sees their fields in place of the dataclass."""
    hints = get_type_hints(verb, include_extras=True)
    hints.pop("return", None)
    groups = {name: kind for name, kind in hints.items() if isinstance(kind, type) and is_dataclass(kind)}
    flat = []
    for name, parameter in inspect.signature(verb).parameters.items():
        if name in groups:
            inner = get_type_hints(groups[name], include_extras=True)
            flat += [(field.name, inner[field.name], field.default) for field in fields(groups[name])]
        else:
            flat.append((name, hints[name], parameter.default))

    @wraps(verb)
    def call(**values: Any) -> Any:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        return verb(**values)

    keyword, none = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.empty
    parameters = [
        inspect.Parameter(name, keyword, annotation=hint, default=none if default in (none, MISSING) else default)
        for name, hint, default in flat
    ]
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {name: hint for name, hint, _ in flat}
    return call


def settings_from_options(pairs: list[str] | None) -> dict[str, Any]:
    """Settings of a method from ``--set key=value``."""
    changes: dict[str, Any] = {}
    for pair in pairs or []:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise InputError(f"--set {pair!r}: write it as key=value.")
        changes[key.strip().replace("-", "_")] = value.strip()
    return changes


def classes_from(text: str | None) -> Any:
    """A count, or a tuple of names."""
    if text is None:
        return None
    if text.strip().lstrip("-").isdigit():
        return int(text)
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise InputError(f"{text!r} names no class: give a count or names separated by commas.")
    return names


def strategy_name(text: str, where: str) -> str:
    """The name of the strategy, or of the oracle row, that a user wrote. where: for messages."""
    from graphfcl.active import strategy_from
    from graphfcl.evaluation import needs_oracle

    return text if needs_oracle(text) else strategy_from(text, where).name


def requested_device(device: str) -> str:
    """auto, cpu, cuda or cuda:1; ``auto`` is decided when a learner is created, since only torch knows the devices."""
    return checked_device(device, "--device")


def usable_device(device: str) -> str:
    """cpu, cuda or cuda:1."""
    return best_device() if requested_device(device) == "auto" else device


def refuse_file(path: Path | None, flag: str, *, is_folder: bool = True) -> None:
    """Refuse an output that cannot be written, before anything is computed.

    is_folder: whether a folder is written there, or a file.
    """
    if path is None:
        return
    above = path.absolute() if is_folder else path.absolute().parent
    there = next(each for each in (above, *above.parents) if each.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        what = "is a file" if not there.is_dir() else "is not yours to write to"
        raise InputError(f"{flag} {path} cannot be written ({there} {what}): choose another; nothing was computed.")
