"""What a shell offers when a user presses Tab. None of it waits for torch: it must answer at once.

Where nothing is offered, the shell offers files.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

LOOKED_AT = 500  # folders at most
DEPTH = 3  # of folders below the one that was written


def choices(*words: str) -> Callable[[str], list[str]]:
    """Completion of an option that takes one of a few words."""

    def complete(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return complete


def method_names(incomplete: str) -> list[str]:
    """Names of methods, installed plug-ins included, which are not imported."""
    from graphfcl.methods.registry import REGISTRY

    return [name for name in REGISTRY.names() if name.startswith(incomplete)]


def graph_names(incomplete: str) -> list[str]:
    """Names of graphs, installed plug-ins included; a path is left to the shell."""
    from graphfcl.datasets.registry import REGISTRY

    return [name for name in REGISTRY.names() if name.startswith(incomplete)]


def listed(complete: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    """Completion of the last of several names with commas between them."""

    def complete_last(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        return [f"{before}{comma}{name}" for name in complete(last)]

    return complete_last


def model_folders(incomplete: str) -> list[str]:
    """Model folders, at most a few levels below what was written."""
    written = Path(incomplete)
    folder = written if incomplete.endswith("/") else written.parent
    names = sorted(str(path) for path in islice(_folders(folder, DEPTH), LOOKED_AT) if _is_model(path))
    before = "./" if incomplete.startswith("./") else ""  # which a path does not keep
    return [f"{before}{name}" for name in names if f"{before}{name}".startswith(incomplete)]


def _is_model(path: Path) -> bool:
    return (path / "model.sqlite").is_file()


def _folders(folder: Path, depth: int) -> Iterator[Path]:
    """Those below a folder, the nearest first as far as one level goes."""
    try:
        inside = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    except OSError:
        return
    yield from inside
    if depth > 1:
        for path in inside:
            if not _is_model(path):  # there is no model in a model
                yield from _folders(path, depth - 1)
