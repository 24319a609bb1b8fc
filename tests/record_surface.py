"""Write the list of everything that users can name: ``python -m tests.record_surface``.

It holds commands with the names of their options, public Python names with their parameters, HTTP paths, settings of
methods with their defaults, and the names of strategies, datasets and metrics.
"""

import inspect
import tempfile
from collections.abc import Iterator
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import graphfcl
from graphfcl import GraphClassifier, load_dataset
from graphfcl.active import STRATEGIES
from graphfcl.datasets import all_datasets
from graphfcl.methods import METHODS
from graphfcl.metrics import active_metrics, session_metrics, stream_metrics
from graphfcl.service.app import make_app
from tests.cli.verbs import COMMANDS

SURFACE = Path(__file__).parent / "surface.txt"
PUBLIC = (
    "graphfcl",
    "graphfcl.testing",
    "graphfcl.metrics",
    "graphfcl.experiments",
    "graphfcl.runtime.tasks",
    "graphfcl.client",
)
STARS: dict[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


def surface() -> str:
    sections = {
        "Commands": _commands(),
        "Python": _python(),
        "HTTP": _paths(),
        "Settings of methods": _settings(),
        "Strategies": iter(STRATEGIES),
        "Datasets": (f"{dataset.name} {' '.join(dataset.options)}".strip() for dataset in all_datasets()),
        "Metrics": (each.name for each in (*session_metrics(), *stream_metrics(), *active_metrics())),
    }
    return "\n".join(f"# {title}\n" + "\n".join(lines) + "\n" for title, lines in sections.items())


def _commands() -> Iterator[str]:
    for name, command in sorted(COMMANDS.items()):
        words = []
        for each in command.params:
            options = [*each.opts, *each.secondary_opts]
            words.append("/".join(options) if options[0].startswith("-") else each.name.upper())
        yield " ".join([name, *sorted(words)])


def _python() -> Iterator[str]:
    for place in PUBLIC:
        module = import_module(place)
        for name in sorted(module.__all__):
            thing = getattr(module, name)
            yield f"{place}.{name}{_parameters(thing)}"
            if inspect.isclass(thing):
                yield from (f"{place}.{name}.{member}" for member in _members(thing))


def _parameters(thing: Any) -> str:
    """The names of the parameters of what can be called, as ``(graph, *, seed)``; an optional one ends in =."""
    if not callable(thing):
        return ""
    try:
        parameters = inspect.signature(thing).parameters.values()
    except ValueError:  # a class of the interpreter
        return ""
    if [each.name for each in parameters] in (["args", "kwds"], ["args", "kwargs"]):
        return ""  # what is inherited from the interpreter
    words, keywords = [], False
    for each in (each for each in parameters if each.name != "self"):
        if each.kind is each.KEYWORD_ONLY and not keywords:
            words.append("*")
        keywords = keywords or each.kind in (each.KEYWORD_ONLY, each.VAR_POSITIONAL)
        stars = STARS.get(each.kind, "")
        words.append(f"{stars}{each.name}{'' if each.default is each.empty else '='}")
    return f"({', '.join(words)})"


def _members(kind: type) -> Iterator[str]:
    """Public methods and properties of a class, except those that a public base class has too."""
    public = {getattr(graphfcl, name) for name in graphfcl.__all__} - {kind}
    inherited = {name for base in kind.__mro__ if base in public for name in dir(base)}
    for name in sorted(set(dir(kind)) - inherited):
        owner = next((each for each in kind.__mro__ if name in vars(each)), None)
        if name.startswith("_") or owner is None or not owner.__module__.startswith("graphfcl"):
            continue
        found = inspect.getattr_static(kind, name)
        if isinstance(found, staticmethod | classmethod) or inspect.isroutine(found):
            yield f"{name}{_parameters(getattr(kind, name))}"
        elif isinstance(found, property | cached_property):
            yield name


def _paths() -> Iterator[str]:
    graph, _ = load_dataset("synthetic:nodes=200,edges=800,classes=6,features=30,signal=1.0")
    with tempfile.TemporaryDirectory() as folder:
        model = GraphClassifier("sgc-ridge").fit(graph)
        model.save(Path(folder) / "model")
        model.wait()
        paths = make_app(Path(folder) / "model").openapi()["paths"]
    for path, methods in sorted(paths.items()):
        yield from (f"{path} {method} {route['operationId']}" for method, route in sorted(methods.items()))


def _settings() -> Iterator[str]:
    for method in METHODS:
        yield from (f"{method.name} {row.name} = {row.default}" for row in method.settings_rows())


if __name__ == "__main__":
    SURFACE.write_text(surface())
