"""Options that several verbs share, and how their texts become values."""

import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from graphfcl.cli.completion import choices, graphs
from graphfcl.errors import InputError
from graphfcl.runtime.tasks import Tasks, find_backend
from graphfcl.runtime.tasks.submitit_backend import options_from

DEVICES = "Device: auto, cpu, cuda, or cuda:1 for the second GPU."
Device = Annotated[
    str, typer.Option("--device", help=DEVICES, autocompletion=choices("auto", "cpu", "cuda", "cuda:0", "cuda:1"))
]
GRAPH_HELP = "Graph: a name from `data list`, an .npz file, a folder of tables, or a graph folder"
Graph = Annotated[str | None, typer.Option("--graph", help=f"{GRAPH_HELP}.", autocompletion=graphs)]
DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", help="Folder with the data files (default: $GRAPHFCL_DATA).", show_default=False),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Random seed.")]
Way = Annotated[
    int | None,
    typer.Option("--way", help="Number of new classes per session, N (default: set by the graph).", show_default=False),
]
Shot = Annotated[
    int | None,
    typer.Option(
        "--shot", help="Number of labelled nodes per new class, K (default: set by the graph).", show_default=False
    ),
]
Sessions = Annotated[
    int | None,
    typer.Option(
        "--sessions",
        help="Maximum number of sessions after session 0 (default: as many as the classes allow).",
        show_default=False,
    ),
]
PROTOCOLS, TRACKS = ("strict", "paper"), ("transductive", "isolated", "open", "active")
ProtocolOption = Annotated[
    str | None,
    typer.Option(
        "--protocol",
        help="Evaluation protocol: strict or paper (default: strict).",
        show_default=False,
        autocompletion=choices(*PROTOCOLS),
    ),
]
TrackOption = Annotated[
    str | None,
    typer.Option(
        "--track",
        help="What of the graph is visible: transductive, isolated, open, or active (strategy selects labels) "
        "(default: transductive).",
        show_default=False,
        autocompletion=choices(*TRACKS),
    ),
]
ClassOrderOption = Annotated[
    str | None,
    typer.Option(
        "--class-order",
        help="How base classes are chosen: size takes the largest, random draws them (default: size).",
        show_default=False,
        autocompletion=choices("size", "random"),
    ),
]
CLASSES_HELP = "a number, or names separated by commas ('a,' for one name) (default: set by the graph)."
Base = Annotated[str | None, typer.Option("--base", help=f"Base classes: {CLASSES_HELP}", show_default=False)]
PseudoNovel = Annotated[
    str | None,
    typer.Option("--pseudo-novel", help=f"Pseudo-novel classes: {CLASSES_HELP}", show_default=False),
]
Novel = Annotated[str | None, typer.Option("--novel", help=f"Novel classes: {CLASSES_HELP}", show_default=False)]
QueriesOption = Annotated[
    int | None,
    typer.Option(
        "--queries", help="Number of test nodes per class under --protocol paper (default: K).", show_default=False
    ),
]


StandardiseOption = Annotated[
    bool | None,
    typer.Option(
        "--standardise/--no-standardise",
        help="Scale dense features to mean 0 and standard deviation 1 over session 0 (default: yes).",
        show_default=False,
    ),
]


@dataclass(frozen=True)
class StreamOptions:
    """The rules of a stream, where they are to differ from the dataset's."""

    way: Way = None
    shot: Shot = None
    sessions: Sessions = None
    protocol: ProtocolOption = None
    track: TrackOption = None
    base: Base = None
    pseudo_novel: PseudoNovel = None
    novel: Novel = None
    class_order: ClassOrderOption = None
    queries: QueriesOption = None
    standardise: StandardiseOption = None

    def changes(self) -> dict[str, Any]:
        """The rules that options change; None where an option was not given."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        classes = {name: classes_from(given[name]) for name in ("base", "pseudo_novel", "novel")}
        return {"name": given.pop("protocol"), **given, **classes}

    def given(self) -> bool:
        return any(getattr(self, field.name) is not None for field in fields(self))


BackendOption = Annotated[
    str, typer.Option("--backend", help="Where workers run: local, ray or submitit (see docs/engines.md).")
]
RayAddress = Annotated[
    str | None,
    typer.Option(
        "--ray-address", help="Address of a running Ray cluster: auto or HOST:PORT (default: start Ray here)."
    ),
]
SubmititOption = Annotated[
    list[str] | None,
    typer.Option(
        "--submitit-option",
        help="Option for submitit: KEY=VALUE, such as slurm_partition=long or timeout_min=60; repeatable.",
    ),
]


@dataclass(frozen=True)
class BackendOptions:
    """On which engine tasks run."""

    backend: BackendOption = "local"
    ray_address: RayAddress = None
    submitit_option: SubmititOption = None

    def tasks(self, workers: int, *, threads: int | None = None, gpus: float = 0, folder: Path | None = None) -> Tasks:
        """The chosen engine. folder: where submitit keeps tasks and logs; every node must see it."""
        find_backend(self.backend)
        return Tasks(
            self.backend,
            workers,
            threads=threads,
            gpus=gpus,
            ray_address=self.ray_address,
            submitit_options=options_from(self.submitit_option or []),
            folder=folder,
        )

    def refuse(self, fix: str) -> None:
        """They are for graph folders that stay on the disk. fix: what to do otherwise."""
        find_backend(self.backend)
        given = {
            "--backend": self.backend != "local",
            "--ray-address": self.ray_address is not None,
            "--submitit-option": bool(self.submitit_option),
        }
        for name, is_given in given.items():
            if is_given:
                raise InputError(f"{name} is for graph folders that stay on the disk: {fix}.")


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
    def call(**given: Any) -> Any:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        return verb(**given)

    keyword, none = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.empty
    parameters = [
        inspect.Parameter(name, keyword, annotation=hint, default=none if default in (none, MISSING) else default)
        for name, hint, default in flat
    ]
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {name: hint for name, hint, _ in flat}
    return call


def settings_from_options(listed: list[str]) -> dict[str, Any]:
    """Settings of a method from ``--set key=value``."""
    changes: dict[str, Any] = {}
    for pair in listed:
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
    """The name of what a user wrote for a strategy, or of the row that needs an oracle. where: for messages."""
    from graphfcl.active import strategy_from
    from graphfcl.evaluation import needs_oracle

    return text if needs_oracle(text) else strategy_from(text, where).name
