"""What was erased, and what weights still remember, in words."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphfcl.production.erasing import Erased


def print_erased(done: "Erased", model: Path) -> None:
    from graphfcl.cli.show import say

    labels = f"{done.labels:,} of them with a label" if done.labels else "none of them with a label"
    plural = "s" if done.nodes != 1 else ""
    say(f"Erased {done.nodes:,} node{plural} ({labels}) from {_versions(done.versions)} of {model}, and the cache.")
    say(f"Version {done.version} equals the newest one without them.")
    for sentence in remains(done):
        say(sentence)


def remains(done: "Erased") -> list[str]:
    """What an erasure could not take back."""
    said = []
    if done.remembering:
        said.append(
            f"{done.method} cannot take back what it learned: labels of these nodes stay in the weights of "
            f"{_versions(done.remembering)}."
        )
    else:
        said.append(f"{done.method}: what it knows of classes is as if these nodes had never been there.")
    if done.seen:
        trained = f"{done.trained:,} of them with a label" if done.trained else "none of them with a label"
        said.append(
            f"`graphfcl fit` saw {done.seen:,} of them, {trained}: what it trained, scaled and chose by them stays; "
            "fit again, without them, to be rid of that."
        )
    if done.in_graph_folder:
        said.append(
            f"The graph folder still holds ids and features of {done.in_graph_folder:,} of them: import the graph "
            "without them, `graphfcl refit --graph NEW --anyway`, `graphfcl prune --keep 1`, and delete the old folder."
        )
    return said


def _versions(numbers: Sequence[int]) -> str:
    """Version 4, versions 1, 3, versions 1 to 5."""
    if not numbers:
        return "no version"
    if len(numbers) == 1:
        return f"version {numbers[0]}"
    if numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"versions {numbers[0]} to {numbers[-1]}"
    return f"versions {', '.join(map(str, numbers))}"
