"""Options that several verbs share, and how their texts become values."""

from pathlib import Path
from typing import Annotated, Any

import typer

from graphfcl.errors import InputError

DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", help="Folder of data files [default: $GRAPHFCL_DATA].", show_default=False),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Draws classes and nodes.")]
Way = Annotated[int | None, typer.Option("--way", help="N: new classes a session.", show_default=False)]
Shot = Annotated[int | None, typer.Option("--shot", help="K: supports a class.", show_default=False)]
Sessions = Annotated[
    int | None,
    typer.Option("--sessions", help="T: novel sessions [default: all the classes allow].", show_default=False),
]
ProtocolOption = Annotated[str | None, typer.Option("--protocol", help="strict or paper.", show_default=False)]
TrackOption = Annotated[str | None, typer.Option("--track", help="transductive, isolated or open.", show_default=False)]
ClassOrderOption = Annotated[
    str | None, typer.Option("--class-order", help="size (largest are base) or random.", show_default=False)
]
CLASSES_HELP = "how many, or names: a,b ('a,' for one)."
Base = Annotated[str | None, typer.Option("--base", help=f"Base classes: {CLASSES_HELP}", show_default=False)]
PseudoNovel = Annotated[
    str | None,
    typer.Option("--pseudo-novel", help=f"Pseudo-novel classes: {CLASSES_HELP}", show_default=False),
]
Novel = Annotated[str | None, typer.Option("--novel", help=f"Novel classes: {CLASSES_HELP}", show_default=False)]
QueriesOption = Annotated[
    int | None,
    typer.Option("--queries", help="m: queries a class, under 'paper' [default: K].", show_default=False),
]


def protocol_changes(
    way: int | None,
    shot: int | None,
    sessions: int | None,
    protocol: str | None,
    track: str | None,
    base: str | None,
    pseudo_novel: str | None,
    novel: str | None,
    class_order: str | None,
    queries: int | None,
) -> dict[str, Any]:
    """The rules that options change; None where an option was not given."""
    return {
        "way": way,
        "shot": shot,
        "sessions": sessions,
        "name": protocol,
        "track": track,
        "base": classes_from(base),
        "pseudo_novel": classes_from(pseudo_novel),
        "novel": classes_from(novel),
        "class_order": class_order,
        "queries": queries,
    }


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
