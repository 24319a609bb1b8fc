"""Hashes of the source code of a class and of this package, which distinguish results of different code."""

import ast
import hashlib
import inspect
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from graphfcl.errors import InputError

OWN = "graphfcl"  # not hashed with a class, because results store its version
COMMIT_VARIABLE = "GRAPHFCL_COMMIT"
NO_PART_OF_RUNS = ("cli", "production", "report", "service")  # subpackages on which results of runs do not depend


def reference_of(kind: Any) -> str:
    """Return ``module:Name`` of a class or function, or of the class of another object."""
    kind = kind if hasattr(kind, "__qualname__") else type(kind)
    module = "__main__" if kind.__module__ == "__mp_main__" else kind.__module__  # the script's name in a worker
    return f"{module}:{kind.__qualname__}"


def source_hash(kind: type) -> str:
    """Return the SHA-256 of the files of a class, its bases, and the modules beside them that they import.

    Installed packages are skipped, except the package of the class: they change by version, not by edits. Data files
    and modules imported by a computed name are not included.
    """
    own = kind.__module__.split(".")[0]
    digest, read = hashlib.sha256(), 0
    for base in kind.__mro__:
        module = sys.modules.get(base.__module__)
        top = base.__module__.split(".")[0]
        if top in (OWN, *sys.builtin_module_names, *sys.stdlib_module_names) or base is object:
            continue
        file = getattr(module, "__file__", None)
        if file is None:
            digest.update(_text_of(base).encode())
        elif top == own or not _is_installed(Path(file)):
            for name, content in _files(_full_name(base.__module__), Path(file)):
                digest.update(f"{name}:{len(content)}:".encode() + content)
        else:
            continue
        read += 1
    if not read:
        raise InputError(f"{reference_of(kind)} has no source file: define it in a module of your own.")
    return digest.hexdigest()


@cache
def package_digest() -> str:
    """Return the SHA-256 of all Python files of this package, by which processes check that they run the same code."""
    return _digest(())


@cache
def run_digest() -> str:
    """Return the SHA-256 of the Python files of this package on which results of runs depend."""
    return _digest(NO_PART_OF_RUNS)


def _digest(without: tuple[str, ...]) -> str:
    """Hash all Python files of the package except these subpackages."""
    root, digest = Path(__file__).parents[1], hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root)
        if name.parts[0] not in without:
            content = path.read_bytes()
            digest.update(f"{name.as_posix()}:{len(content)}:".encode() + content)
    return digest.hexdigest()


@cache
def package_commit() -> str | None:
    """Return the Git commit of this package, with ``+changes`` if its files were edited since.

    Without a repository, return the environment variable ``GRAPHFCL_COMMIT``, or None if it is not set.
    """
    root = Path(__file__).parents[1]

    def git(*words: str) -> str:
        found = subprocess.run(("git", "-C", str(root), *words), capture_output=True, text=True, check=True, timeout=20)
        return found.stdout.strip()

    with suppress(OSError, subprocess.SubprocessError):
        git("ls-files", "--error-unmatch", "version.py")  # fails if the package is installed inside another checkout
        return git("rev-parse", "--short=10", "HEAD") + "+changes" * bool(git("status", "--porcelain", "--", "."))
    return os.environ.get(COMMIT_VARIABLE) or None


def _is_installed(file: Path) -> bool:
    return any(part in ("site-packages", "dist-packages") for part in file.parts)


def _full_name(module: str) -> str:
    """Return the full name of a module, also if it was started as ``python -m package.script``."""
    if module not in ("__main__", "__mp_main__"):
        return module
    spec = getattr(sys.modules.get(module), "__spec__", None)
    return spec.name if spec is not None and spec.name not in ("__main__", "__mp_main__") else "__main__"


def _text_of(kind: type) -> str:
    """Return the source of a class without a file, as in a notebook."""
    try:
        return inspect.getsource(kind)
    except (OSError, TypeError) as error:
        raise InputError(
            f"the source of {reference_of(kind)} cannot be read, so results of edited code could not be distinguished: "
            "define it in a file."
        ) from error


def _files(module: str, file: Path) -> list[tuple[str, bytes]]:
    """Return name and content of a module's file and of all files beside it that it imports, also indirectly."""
    depth = module.count(".") + (file.name == "__init__.py")
    root = file.resolve().parents[depth]
    top = module.split(".")[0] if root.name in ("site-packages", "dist-packages") else None
    contents: dict[Path, bytes] = {}
    left = [file.resolve()]
    while left:
        path = left.pop()
        if path in contents:
            continue
        contents[path] = path.read_bytes()
        left += [each for each in _imported(path, contents[path], root) if top is None or _is_below(each, root / top)]
    return sorted((path.relative_to(root).as_posix(), content) for path, content in contents.items())


def _is_below(path: Path, folder: Path) -> bool:
    return path.is_relative_to(folder) or path == folder.with_suffix(".py")


def _imported(path: Path, content: bytes, root: Path) -> Iterator[Path]:
    """Yield the files under ``root`` that a file imports, without running it."""
    try:
        tree = ast.parse(content)
    except SyntaxError:
        return
    package = path.relative_to(root).parent.parts
    for node in ast.walk(tree):
        names: list[tuple[str, ...]] = []
        if isinstance(node, ast.Import):
            names = [tuple(alias.name.split(".")) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else ()
            module = (*start, *(node.module.split(".") if node.module else ()))
            names = [module, *((*module, alias.name) for alias in node.names)]
        for name in names:
            for length in range(1, len(name) + 1):  # parent packages are imported too
                below = root.joinpath(*name[:length])
                for file in (below / "__init__.py", below.with_suffix(".py") if below.name else below):
                    if file.is_file():
                        yield file
