"""How much code there is and how much of it a reader meets: ``python -m scripts.code_size [ROOT]``.

Prints lines of code (without blank lines, comments and docstrings) and files of ``src``, modules with one importer,
imports in the tests, the import closure of modules, and the files whose functions are executed by ``fit``, ``learn``
and ``predict`` of a tiny graph, in memory and on disk.
"""

import ast
import importlib
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import graphfcl
from graphfcl import (
    GraphClassifier,
    GraphFolder,
    Resources,
    find_method,
    import_graph,
    load_dataset,
    make_stream,
)

PACKAGE = "graphfcl"
GRAPH = "synthetic:nodes=300,edges=1200,classes=8,features=60,signal=1.0"
ANCHOR: dict[str, Any] = {"hidden": 16, "size": 8, "rank": 24, "pretraining.epochs": 2}
HOPS = {**ANCHOR, "encoder_input": "hops"}
HAG_META = {"pretraining.epochs": 2, "pretraining.steps_per_epoch": 2, "episodes": 4, "validate_every": 2}


def code_lines(path: Path) -> int:
    """Lines of a file without blank lines, comments and docstrings, those of attributes included."""
    text = path.read_text()
    documented: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            documented |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = enumerate(text.splitlines(), 1)
    return sum(bool(line.strip()) and not line.strip().startswith("#") and at not in documented for at, line in lines)


class Modules:
    """The modules of the package and what each imports, type-checking imports and those of functions included.

    An import of a name from a package is one of the package's ``__init__``, and of the module that its stub names.
    """

    def __init__(self, src: Path) -> None:
        self.paths = {self._name(path.relative_to(src)): path for path in sorted(src.rglob("*.py"))}
        stubs = ((name, path.with_suffix(".pyi")) for name, path in self.paths.items())
        self.stubbed = {name: dict(_imported_names(path, name)) for name, path in stubs if path.exists()}
        self.imports = {name: self._imported(path) - {name} for name, path in self.paths.items()}

    @staticmethod
    def _name(path: Path) -> str:
        parts = path.with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def _imported(self, path: Path) -> set[str]:
        found = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    whole = f"{node.module}.{alias.name}"
                    place = self.stubbed.get(node.module, {}).get(alias.name, node.module)
                    found |= {whole} if whole in self.paths else {node.module, place}
        return found & set(self.paths)

    def closure(self, name: str) -> set[str]:
        """A module and everything that it imports, directly or not."""
        seen: set[str] = set()
        waiting = [name]
        while waiting:
            module = waiting.pop()
            if module not in seen:
                seen.add(module)
                waiting += self.imports[module]
        return seen

    def with_one_importer(self) -> int:
        importers = [sum(name in found for found in self.imports.values()) for name in self.paths]
        return importers.count(1)


def _imported_names(stub: Path, package: str) -> Iterator[tuple[str, str]]:
    """Names that the stub of a package imports, and the modules that they come from."""
    for node in ast.walk(ast.parse(stub.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            module = f"{package}.{node.module}" if node.level else node.module
            yield from ((alias.asname or alias.name, module) for alias in node.names)


def imports_of_tests(tests: Path) -> dict[str, int]:
    """Import statements of the tests: of the package, of public names of a package inside it, of modules inside."""
    counts = {"the package": 0, "public names of inner packages": 0, "modules inside": 0}
    for path in tests.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                modules = [(node.module or "", {alias.name for alias in node.names})]
            else:
                modules = [(alias.name, {""}) for alias in node.names] if isinstance(node, ast.Import) else []
            for module, names in modules:
                if module == PACKAGE:
                    counts["the package"] += 1
                elif module.startswith(f"{PACKAGE}."):
                    public = names <= set(getattr(importlib.import_module(module), "__all__", ()))
                    counts["public names of inner packages" if public else "modules inside"] += 1
    return counts


class Executed:
    """The files of the package whose functions run inside a ``with`` block, module bodies left out."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self._inside = str(Path(graphfcl.__file__).parent)

    def __enter__(self) -> "Executed":
        threading.setprofile(self._called)
        sys.setprofile(self._called)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    def _called(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_name != "<module>" and code.co_filename.startswith(self._inside):
            self.files.add(code.co_filename)


def executed(call: Callable[[], object]) -> int:
    with Executed() as found:
        call()
    return len(found.files)


def model_figures(graph: Any, settings: dict[str, Any], folder: Path) -> dict[str, int]:
    """Files executed by the life of a model: ``predict`` answers one node of a saved model from its cached answers."""
    hidden = graph.class_names[-1]
    supports = graph.node_ids[graph.labels == graph.class_number(hidden)][:5].tolist()
    model = GraphClassifier("anchor", settings)
    figures = {"fit": executed(lambda: model.fit(graph, hide_classes=[hidden]))}
    figures["learn"] = executed(lambda: model.learn({hidden: supports}))
    model.predict()
    model.save(folder)
    model.wait()
    saved = GraphClassifier.load(folder)
    figures["predict"] = executed(lambda: saved.predict(supports[:1]))
    return figures


def episode_figure() -> int:
    """Files executed by the episodes of HAG-Meta: drawing one and computing its loss."""
    found = Executed()
    learner = find_method("hag-meta").make(HAG_META, seed=0)

    def watched(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            with found:
                return function(*given, **named)

        return call

    sampler = learner._sampler  # type: ignore[attr-defined]

    def watched_sampler(*given: Any) -> Any:
        made = sampler(*given)
        object.__setattr__(made, "sample", watched(made.sample))
        return made

    learner._sampler = watched_sampler  # type: ignore[attr-defined]
    learner._episode_loss = watched(learner._episode_loss)  # type: ignore[attr-defined]
    learner.fit(make_stream(load_dataset(GRAPH)[0], seed=0).base)
    return len(found.files)


def figures(root: Path) -> dict[str, object]:
    """Every figure by its title."""
    modules = Modules(root / "src")
    lines = {name: code_lines(path) for name, path in modules.paths.items()}
    imports = imports_of_tests(root / "tests")
    found: dict[str, object] = {
        "lines of code": sum(lines.values()),
        "files": len(lines),
        "modules with one importer": modules.with_one_importer(),
        **{f"test imports of {kind}": count for kind, count in imports.items()},
        "import closure of iCaRL": len(modules.closure("graphfcl.methods.icarl")),
        "files executed by a HAG-Meta episode": episode_figure(),
    }
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        import_graph(GRAPH, work / "graph")
        on_disk = GraphFolder.open(work / "graph", Resources(work / "work", 4 << 30))
        for place, graph, settings in (("memory", load_dataset(GRAPH)[0], ANCHOR), ("disk", on_disk, HOPS)):
            for verb, count in model_figures(graph, settings, work / place).items():
                found[f"files executed by {verb}, {place}"] = count
    return found


if __name__ == "__main__":
    for title, value in figures(Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1])).items():
        print(f"{title:<45}{value:>8,}")
