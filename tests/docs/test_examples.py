"""Docstrings of public names: arguments, returns and errors in sections, and examples that run."""

import doctest
import importlib
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import graphfcl
from graphfcl.active.registry import REGISTRY as STRATEGIES
from graphfcl.datasets.registry import REGISTRY as DATASETS
from graphfcl.methods.registry import REGISTRY as METHODS
from graphfcl.metrics.built_in import REGISTRY as METRICS

griffe: Any = pytest.importorskip("griffe", reason="the extra docs is not installed")
NEEDED = {
    "to_pyg": "torch_geometric",
    "from_pyg": "torch_geometric",
    "to_networkx": "networkx",
    "from_networkx": "networkx",
    "read_query": "duckdb",
    "open_tables": "duckdb",
    "from_frames": "pandas",
    "MLflowTracker": "mlflow",
    "TensorBoardTracker": "tensorboard",
}
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
OBJECTS = {name: getattr(graphfcl, name) for name in graphfcl.__all__}
NAMES = [name for name, value in OBJECTS.items() if inspect.isclass(value) or inspect.isfunction(value)]


def sections(docstring: str | None) -> dict[str, Any]:
    """The sections of a docstring in Google's style, by kind."""
    parsed = griffe.Docstring(inspect.cleandoc(docstring or "")).parse("google", warnings=False)
    return {section.kind.value: section.value for section in parsed}


def described(docstring: str | None) -> set[str]:
    """The arguments and attributes that a docstring describes."""
    found = sections(docstring)
    return {each.name.lstrip("*") for kind in ("parameters", "attributes") for each in found.get(kind, [])}


def arguments(function: Callable[..., Any]) -> set[str]:
    names = list(inspect.signature(function).parameters)
    return {name for name in names if name not in ("self", "cls") and not name.startswith("_")}


def returns_something(function: Callable[..., Any]) -> bool:
    return inspect.signature(function).return_annotation not in (None, "None", inspect.Signature.empty, "NoReturn")


def public_methods() -> Iterator[Any]:
    """Each public method of the public classes, where it is defined."""
    seen = set()
    for owner in OBJECTS.values():
        for base in owner.__mro__ if inspect.isclass(owner) else ():
            if not base.__module__.startswith("graphfcl"):
                continue
            for name, value in vars(base).items():
                function = getattr(value, "__func__", value)
                if inspect.isfunction(function) and not name.startswith("_") and function not in seen:
                    seen.add(function)
                    yield pytest.param(function, id=f"{base.__module__.split('.')[1]}-{base.__name__}.{name}")


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_describes_its_arguments(name: str) -> None:
    value = OBJECTS[name]
    if inspect.isclass(value):
        own = inspect.isfunction(value.__init__) and value.__init__.__module__.startswith("graphfcl")
        wanted = arguments(value.__init__) if own or hasattr(value, "__dataclass_fields__") else set()
        inherited = {name for base in value.__mro__[1:] if "__doc__" in vars(base) for name in described(base.__doc__)}
        assert wanted - described(value.__doc__) - inherited == set()
    else:
        assert arguments(value) - described(value.__doc__) == set()
        assert "returns" in sections(value.__doc__) or not returns_something(value)


@pytest.mark.parametrize("function", public_methods())
def test_a_public_method_describes_its_arguments(function: Callable[..., Any]) -> None:
    docstring = function.__doc__
    assert docstring or function.__name__ in inherited_docstrings()
    if docstring:
        assert arguments(function) - described(docstring) == set()
        assert "returns" in sections(docstring) or not (arguments(function) and returns_something(function))


def inherited_docstrings() -> set[str]:
    """Methods that keep the docstring of the contract they implement."""
    return {
        name
        for owner in OBJECTS.values()
        if inspect.isclass(owner)
        for base in owner.__mro__
        for name, value in vars(base).items()
        if inspect.isfunction(value) and value.__doc__
    }


@pytest.mark.parametrize("name", NAMES)
def test_the_example_of_a_public_name_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    value = OBJECTS[name]
    examples = doctest.DocTestParser().get_examples(inspect.cleandoc(value.__doc__ or ""))
    assert examples, "there is no example"
    if name in NEEDED:
        pytest.importorskip(NEEDED[name])
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)  # as in the interpreter, where modules of the current folder can be imported
    for registry in (METHODS, DATASETS, STRATEGIES, METRICS):
        monkeypatch.setattr(registry, "registered", dict(registry.registered))
    module = importlib.import_module(value.__module__)
    test = doctest.DocTest(examples, {}, name, module.__file__, 0, None)
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    printed: list[str] = []
    runner.run(test, out=printed.append)
    assert runner.failures == 0, "".join(printed)
