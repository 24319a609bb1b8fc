"""Options that several verbs share, groups of options, and the conversion of their texts to values."""

import copy
import inspect
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, get_args, get_type_hints

import typer

import graphfcl.datasets as datasets
import graphfcl.graph as graphs
import graphfcl.stream as streams
from graphfcl.cli.completion import choices, graph_names, method_names, model_folders
from graphfcl.errors import InputError
from graphfcl.graph.tables import DATABASE_VARIABLE, NO_DATABASE, SQL, name_of_tables
from graphfcl.runtime.devices import best_device, checked_device
from graphfcl.runtime.tasks import Tasks, find_backend
from graphfcl.runtime.tasks.submitit_backend import options_from

if TYPE_CHECKING:
    from graphfcl.graph.tables.columns import ReadColumns

KEYWORD, REQUIRED = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.empty


def argument(text: str, complete: Callable[[str], list[str]] | None = None, **more: Any) -> Any:
    """Make a typer argument from its help text. ``complete`` returns the completions that a shell offers."""
    return typer.Argument(help=text, autocompletion=complete, **more)


def option(text: str, complete: Callable[[str], list[str]] | None = None, flag: str | None = None, **more: Any) -> Any:
    """Make a typer option from its help text. ``complete`` returns the completions that a shell offers.

    ``flag`` is the name of the option if it differs from that of the parameter. A switch without ``flag`` also gets a
    ``--no-`` form.
    """
    return typer.Option(*([flag] if flag else []), help=text, autocompletion=complete, **more)


PROTOCOLS, TRACKS = choices("strict", "paper"), choices("transductive", "isolated", "open", "active")
DEVICES = choices("auto", "cpu", "cuda", "cuda:0", "cuda:1")
STRATEGIES = choices("auto", "typical", "uncertain", "unknown", "random")
GRAPH_HELP = "Graph: a name from `data list`, an .npz file, a folder of tables, or a graph folder."
BY_GRAPH = "(default: set by the graph)."
CLASSES_HELP = f"a number, or names separated by commas ('a,' for one name) {BY_GRAPH}"

Device = Annotated[str, option("Device: auto, cpu, cuda, or cuda:1 for the second GPU.", DEVICES)]
Graph = Annotated[str | None, option(GRAPH_HELP, graph_names)]
DataDir = Annotated[Path | None, option("Folder with the data files (default: $GRAPHFCL_DATA).")]
Database = Annotated[
    str | None,
    option(
        "Database for queries: a SQLite or DuckDB file, or a connection string that DuckDB can attach "
        f"(default: ${DATABASE_VARIABLE})."
    ),
]
Seed = Annotated[int, option("Random seed.", min=0)]
Settings = Annotated[list[str] | None, option("Change a setting; repeatable.", metavar="KEY=VALUE", flag="--set")]
Model = Annotated[Path, option("Model folder.", model_folders)]
ModelArgument = Annotated[Path | None, argument("Model folder.", model_folders, metavar="MODEL")]
ModelOption = Annotated[Path | None, option("Model folder; same as the argument MODEL.", model_folders)]
OwnMethod = Annotated[str | None, option("The model's method as module:Class, if it is your own.", method_names)]
GraphPlace = Annotated[Path | None, option("New path of the model's graph folder, if it was moved.")]
Wait = Annotated[float, option("Seconds to wait while another process changes the model.", min=0)]
DryRun = Annotated[bool, option("Show what the change would do; write nothing.", flag="--dry-run")]
StandardiseOption = Annotated[bool | None, option("Standardise dense features over session 0 (default: yes).")]
TrackOption = Annotated[
    str | None, option("What is visible: transductive, isolated, open or active (default: transductive).", TRACKS)
]


class OptionGroup:
    """Options of several verbs, as the fields of a frozen dataclass. Help pages show them under the title ``panel``."""

    panel: ClassVar[str] = ""

    def used_flags(self) -> list[str]:
        """The flags of options whose value is not the default."""
        changed = [f for f in fields(self) if getattr(self, f.name) not in (f.default, [])]  # type: ignore[arg-type]
        return [f"--{field.name.replace('_', '-')}" for field in changed]


@dataclass(frozen=True)
class GraphOptions(OptionGroup):
    """A graph: its name, or its two tables."""

    panel: ClassVar[str] = "Graph"
    graph: Graph = None
    nodes: Annotated[str | None, option("Instead of --graph: table of nodes, a file or 'sql:SELECT ...'.")] = None
    edges: Annotated[str | None, option("With --nodes: table of edges, a file or 'sql:SELECT ...'.")] = None
    columns: Annotated[str | None, option("With --nodes: roles of columns, such as label=category,text=title.")] = None
    database: Database = None
    name: Annotated[str | None, option("Name to give to the graph of --nodes and --edges, or to an imported one.")] = (
        None
    )
    data_dir: DataDir = None

    def given(self) -> bool:
        """Whether the user named a graph or a table."""
        return not (self.graph is None and self.nodes is None and self.edges is None)

    def check(self, *, renames: bool = False) -> None:
        """Refuse options that exclude each other. With ``renames``, --name is allowed together with --graph."""
        if self.graph is not None or (self.nodes is None and self.edges is None):
            needed_graph(self.graph)
            others = ("nodes", "edges", "columns", "database", *(["name"] * (not renames)))
            other = next((each for each in others if getattr(self, each) is not None), None)
            if other is not None:
                raise InputError(f"--graph and --{other} exclude each other: give --graph, or --nodes and --edges.")
        elif self.nodes is None or self.edges is None:
            raise InputError("a graph needs two tables: give --nodes and --edges.")
        elif self.data_dir is not None:
            raise InputError("--data-dir applies only to --graph: leave it out.")

    @contextmanager
    def source(self) -> "Iterator[str | graphs.TableFiles]":
        """Yield the name of the graph, or its tables."""
        self.check(renames=True)
        if self.graph is not None:
            yield self.graph
            return
        with self._tables() as files:
            yield files

    @contextmanager
    def _tables(self) -> "Iterator[graphs.TableFiles]":
        columns = datasets.columns_from(self.columns)
        tables = self.nodes or "", self.edges or ""
        with graphs.open_tables(*tables, columns, database=self.database, name=self.name) as files:
            yield files

    def dataset(self, columns: "ReadColumns | None" = None) -> "tuple[datasets.Dataset, dict[str, str]]":
        """Return the dataset and its options. ``columns`` is that of :func:`find_dataset`."""
        self.check()
        if self.graph is not None:
            return datasets.find_dataset(self.graph, columns)
        name = name_of_tables(self.nodes or "", self.edges or "")
        made = datasets.Dataset(self.name or name, "tables of nodes and edges", lambda _, __: self._read(columns), name)
        return made, {}

    def load(self, columns: "ReadColumns | None" = None) -> "tuple[graphs.Graph, streams.Protocol | None]":
        """Load the graph into memory, with its default rules. ``columns`` is that of :func:`find_dataset`."""
        dataset, options = self.dataset(columns)
        return dataset.read(self.data_dir, options), dataset.protocol

    def _read(self, columns: "ReadColumns | None") -> "graphs.Graph":
        options = datasets.option_pairs(self.columns) if self.columns else {}
        with self._tables() as tables:
            return datasets.graph_of_tables(tables, options, columns, "--columns")


@dataclass(frozen=True)
class StreamOptions(OptionGroup):
    """The rules of a stream that differ from the dataset's; None for an option that was left out."""

    panel: ClassVar[str] = "Stream"
    way: Annotated[int | None, option(f"Number of new classes per session, N {BY_GRAPH}")] = None
    shot: Annotated[int | None, option(f"Number of labelled nodes per new class, K {BY_GRAPH}")] = None
    sessions: Annotated[int | None, option("Maximum number of sessions after session 0 (default: all).")] = None
    protocol: Annotated[str | None, option("Evaluation protocol: strict or paper (default: strict).", PROTOCOLS)] = None
    track: TrackOption = None
    base: Annotated[str | None, option(f"Base classes: {CLASSES_HELP}")] = None
    pseudo_novel: Annotated[str | None, option(f"Pseudo-novel classes: {CLASSES_HELP}")] = None
    novel: Annotated[str | None, option(f"Novel classes: {CLASSES_HELP}")] = None
    class_order: Annotated[
        str | None, option("Choice of base classes: size (the largest; default) or random.", choices("size", "random"))
    ] = None
    queries: Annotated[int | None, option("Number of test nodes per class under --protocol paper (default: K).")] = None
    standardise: StandardiseOption = None

    def changes(self) -> dict[str, Any]:
        """The rules that the options change; None for an option that was left out."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        classes = {name: classes_from(values[name]) for name in ("base", "pseudo_novel", "novel")}
        return {"name": values.pop("protocol"), **values, **classes}


@dataclass(frozen=True)
class BackendOptions(OptionGroup):
    """Where tasks run."""

    panel: ClassVar[str] = "Resources"
    backend: Annotated[str, option("Engine that runs the workers: local, ray or submitit.")] = "local"
    ray_address: Annotated[
        str | None, option("With --backend ray: auto or HOST:PORT of a cluster (default: start Ray here).")
    ] = None
    submitit_option: Annotated[
        list[str] | None,
        option("With --backend submitit: a parameter such as timeout_min=60; repeatable.", metavar="KEY=VALUE"),
    ] = None

    def tasks(self, workers: int, *, folder: Path | None = None) -> Tasks:
        """The chosen engine. submitit writes tasks and logs to ``folder``, which all machines must share."""
        find_backend(self.backend)
        return Tasks(
            self.backend,
            workers,
            ray_address=self.ray_address,
            submitit_options=options_from(self.submitit_option or []),
            folder=folder,
        )


def tables_of(*tables: str | None, database: str | None = None) -> list[Any]:
    """Read the tables that a user named: files become paths, queries Arrow tables; None stays None."""
    is_query = [table is not None and table.startswith(SQL) for table in tables]
    if database is not None and not any(is_query):
        raise InputError(NO_DATABASE)
    queries = [str(table).removeprefix(SQL) for table, queried in zip(tables, is_query, strict=True) if queried]
    read = iter(graphs.read_queries(queries, database) if queries else ())
    return [next(read) if queried else table and Path(table) for table, queried in zip(tables, is_query, strict=True)]


def needed_graph(graph: str | None) -> str:
    """The graph that the user named with ``--graph``; an InputError without it."""
    if graph is None:
        raise InputError("name the graph with --graph: `graphfcl data list` shows the names.")
    return graph


def with_option_groups(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Let a verb take frozen dataclasses of options. Typer sees the fields of each dataclass as single options."""
    hints = get_type_hints(verb, include_extras=True)
    hints.pop("return", None)
    groups = {name: kind for name, kind in hints.items() if isinstance(kind, type) and is_dataclass(kind)}
    flat = []
    for name, parameter in inspect.signature(verb).parameters.items():
        if name in groups:
            inner = get_type_hints(groups[name], include_extras=True)
            for field in fields(groups[name]):
                hint = _with_panel(inner[field.name], _panel_of(groups[name], field.name))
                flat.append((field.name, hint, REQUIRED if field.default is MISSING else field.default))
        else:
            flat.append((name, hints[name], parameter.default))

    @wraps(verb)
    def call(**values: Any) -> Any:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        return verb(**values)

    parameters = [inspect.Parameter(name, KEYWORD, annotation=hint, default=default) for name, hint, default in flat]
    return declare(call, parameters)


def _panel_of(group: type, name: str) -> str:
    """The panel of the class that defines a field."""
    return next(
        (getattr(kind, "panel", "") for kind in group.__mro__ if name in vars(kind).get("__annotations__", {})), ""
    )


def _with_panel(hint: Any, panel: str) -> Any:
    """The annotation of an option, with the panel of help pages under which it is listed."""
    kind, info, *more = get_args(hint)
    info = copy.copy(info)
    info.rich_help_panel = panel or None
    return Annotated[(kind, info, *more)]


def declare(verb: Callable[..., Any], parameters: Sequence[inspect.Parameter]) -> Callable[..., Any]:
    """Give a function the parameters from which typer makes options."""
    verb.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    verb.__annotations__ = {each.name: each.annotation for each in parameters}
    return verb


def settings_from_options(pairs: list[str] | None) -> dict[str, Any]:
    """Parse the settings of a method from ``--set key=value``."""
    changes: dict[str, Any] = {}
    for pair in pairs or []:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise InputError(f"--set {pair!r}: write it as key=value.")
        changes[key.strip().replace("-", "_")] = value.strip()
    return changes


def classes_from(text: str | None) -> Any:
    """Parse a number of classes, or a tuple of names."""
    if text is None:
        return None
    if text.strip().lstrip("-").isdigit():
        return int(text)
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise InputError(f"{text!r} names no class: give a number, or names separated by commas.")
    return names


def strategy_name(text: str, where: str) -> str:
    """Check a strategy that the user named, and return its name. ``where`` is the option, for messages."""
    from graphfcl.active import strategy_from
    from graphfcl.evaluation import needs_oracle

    return text if needs_oracle(text) else strategy_from(text, where).name


def requested_device(device: str) -> str:
    """Check a device. ``auto`` stays: it is resolved when a learner is created, because that needs torch."""
    return checked_device(device, "--device")


def usable_device(device: str) -> str:
    """Check a device, and resolve ``auto`` to the best one."""
    return best_device() if requested_device(device) == "auto" else device


def refuse_file(path: Path | None, flag: str, *, is_folder: bool = True) -> None:
    """Refuse an output file or folder that cannot be written, before anything is computed."""
    if path is None:
        return
    above = path.absolute() if is_folder else path.absolute().parent
    there = next(each for each in (above, *above.parents) if each.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        what = "is a file" if not there.is_dir() else "is not writable for you"
        raise InputError(
            f"{flag} {path} cannot be written ({there} {what}): choose another place. Nothing was computed."
        )
