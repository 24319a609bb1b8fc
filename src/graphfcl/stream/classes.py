"""Choose which classes are base, pseudo-novel and novel classes, and suggest protocols."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from graphfcl.errors import InputError, did_you_mean
from graphfcl.graph.interfaces import AnyGraph
from graphfcl.stream.protocol import Classes, Protocol

PARTS = ("base", "pseudo_novel", "novel")
BASE_TRAIN_NODES = 2  # an episode needs a support and a query of each base class


@dataclass(frozen=True)
class ClassRoles:
    """Class numbers by kind, novel ones in order of arrival, and names of classes that are left out with the reason."""

    base: tuple[int, ...]
    pseudo_novel: tuple[int, ...]
    novel: tuple[int, ...]
    left_out: dict[str, str]


def node_split_sizes(size: int, protocol: Protocol) -> tuple[int, int, int]:
    """Return the numbers of training, validation and test nodes of a base or pseudo-novel class with ``size`` nodes.

    Each is at least 1 if ``size`` is 3 or more.
    """
    validation = max(1, round(size * protocol.validation_share))
    test = max(1, round(size * (1 - protocol.train_share - protocol.validation_share)))
    return size - validation - test, validation, test


def smallest_sizes(protocol: Protocol) -> tuple[int, int, int]:
    """Return the minimum number of nodes of a base, a pseudo-novel and a novel class."""

    def with_train(nodes: int) -> int:
        size = 3
        while node_split_sizes(size, protocol)[0] < nodes:
            size += 1
        return size

    needs = (with_train(BASE_TRAIN_NODES), with_train(protocol.drawn_shot + 1), protocol.drawn_shot + 1)
    return tuple(max(need, protocol.min_class_size) for need in needs)  # type: ignore[return-value]


def choose_classes(graph: AnyGraph, protocol: Protocol, random: np.random.Generator) -> ClassRoles:
    """Choose base, pseudo-novel and novel classes.

    Classes that the protocol names get the role for which they are named. Of the others, the largest ones (or random
    ones) become base classes. The rest, in random order, become pseudo-novel and then novel classes. A class that is
    too small for a role is skipped, and left out if it is too small for all roles.
    """
    needs = dict(zip(PARTS, smallest_sizes(protocol), strict=True))
    sizes = graph.class_sizes
    named = {part: _named_classes(graph, protocol, part, needs[part]) for part in needs}
    taken = [number for numbers in named.values() for number in numbers]
    if len(set(taken)) != len(taken):
        twice = next(number for number in taken if taken.count(number) > 1)
        raise InputError(f"class {graph.class_names[twice]!r} is named for two roles; name it for one.")
    free = [number for number in range(len(sizes)) if number not in set(taken)]
    by_size = sorted(free, key=lambda number: (-sizes[number], number))
    order = by_size if protocol.class_order == "size" else random.permutation(np.array(free, dtype=np.int64)).tolist()
    chosen: dict[str, list[int]] = {}

    def take(part: str, wanted: Classes | None, candidates: list[int]) -> None:
        if isinstance(wanted, tuple):
            chosen[part] = named[part]
            return
        fitting = [number for number in candidates if sizes[number] >= needs[part]]
        if wanted is not None and len(fitting) < wanted:
            raise _too_few_classes(graph, protocol, needs, part)
        chosen[part] = fitting[:wanted]

    take("base", protocol.base, order)
    rest = [number for number in free if number not in set(chosen["base"])]
    drawn = random.permutation(np.array(rest, dtype=np.int64)).tolist()
    take("pseudo_novel", protocol.pseudo_novel, drawn)
    take("novel", protocol.novel, [number for number in drawn if number not in set(chosen["pseudo_novel"])])
    _check_sessions(graph, protocol, len(chosen["novel"]), needs)
    if protocol.sessions is not None:
        chosen["novel"] = chosen["novel"][: protocol.sessions * protocol.way]
    used = {number for part in chosen.values() for number in part}
    left_out = {
        graph.class_names[number]: f"{sizes[number]} nodes, fewer than {needs['novel']}"
        for number in rest
        if number not in used and sizes[number] < needs["novel"]
    }
    return ClassRoles(
        base=tuple(sorted(chosen["base"])),
        pseudo_novel=tuple(sorted(chosen["pseudo_novel"])),
        novel=tuple(chosen["novel"]),
        left_out=left_out,
    )


def _named_classes(graph: AnyGraph, protocol: Protocol, part: str, need: int) -> list[int]:
    names: Any = getattr(protocol, part)
    if not isinstance(names, tuple):
        return []
    numbers = []
    for name in names:
        number = graph.class_number(name)
        if number is None:
            listed = "`graphfcl data show` lists the classes."
            hint = did_you_mean(name, graph.class_names, listed, cutoff=0.6)
            raise InputError(f"{graph.name} has no class {name!r}: {hint}")
        if graph.class_sizes[number] < need:
            raise InputError(
                f"class {name!r} of {graph.name} has {graph.class_sizes[number]} nodes, but a {part.replace('_', '-')} "
                f"class needs {need} with {protocol.drawn_shot} shots: take fewer shots or another class."
            )
        numbers.append(number)
    return numbers


def _too_few_classes(graph: AnyGraph, protocol: Protocol, needs: dict[str, int], part: str) -> InputError:
    titles = {name: name.replace("_", "-") for name in PARTS}
    wanted = {name: getattr(protocol, name) for name in PARTS}
    requested = " + ".join(
        f"{len(size) if isinstance(size, tuple) else size} {titles[name]}"
        for name, size in wanted.items()
        if size is not None
    )
    enough = int((graph.class_sizes >= needs[part]).sum())
    return InputError(
        f"{requested} classes are asked for, but {graph.name} has {enough} classes with the {needs[part]} nodes that a "
        f"{titles[part]} class needs (and {len(graph.class_names)} in all): ask for fewer classes or fewer shots."
    )


def _check_sessions(graph: AnyGraph, protocol: Protocol, novel: int, needs: dict[str, int]) -> None:
    possible = -(-novel // protocol.way)
    if novel == 0:
        raise InputError(
            f"{graph.name} leaves no novel class with {needs['novel']} nodes or more: ask for fewer base and "
            "pseudo-novel classes or fewer shots."
        )
    if protocol.sessions is not None and protocol.sessions > possible:
        raise InputError(
            f"{protocol.sessions} sessions are asked for, but {novel} novel classes of {graph.name} make {possible} "
            f"sessions of {protocol.way}: ask for fewer sessions or fewer classes per session."
        )


def suggest_protocol(graph: AnyGraph, *, shot: int = 5) -> Protocol:
    """Suggest a protocol: about 30/25/45 % of the usable classes, and N for about ten sessions."""
    usable = int((graph.class_sizes >= shot + 1).sum())
    if usable < 2:
        raise InputError(
            f"{graph.name} has {usable} classes with {shot + 1} nodes or more; a stream with {shot} shots needs two."
        )
    base = max(1, round(usable * 0.30))
    pseudo_novel = min(round(usable * 0.25), usable - base - 1)
    way = _way_for_ten_sessions(usable - base - pseudo_novel)
    protocol = Protocol(base=base, pseudo_novel=pseudo_novel, way=way, shot=shot)
    # Some classes may be large enough for novel but not for pseudo-novel classes; then reduce the latter.
    fit = int((graph.class_sizes >= smallest_sizes(protocol)[1]).sum())
    return replace(protocol, base=min(base, max(1, fit)), pseudo_novel=max(0, min(pseudo_novel, fit - base)))


def adapt_protocol(graph: AnyGraph, default: Protocol | None, changes: dict[str, Any]) -> Protocol:
    """Apply the user's changes to the default protocol of a dataset, or to a suggestion. None changes nothing."""
    changed = {key: value for key, value in changes.items() if value is not None}
    if default is not None:
        return replace(default, **changed)
    changed = {"shot": 5, **changed}
    most = changed.get("split_shot", changed["shot"])
    # Check named classes first, so that the error names a class that is too small.
    for part in PARTS:
        if isinstance(changed.get(part), tuple):
            named = Protocol(**{"base": 1, "pseudo_novel": 0, "shot": most, part: changed[part]})
            _named_classes(graph, named, part, dict(zip(PARTS, smallest_sizes(named), strict=True))[part])
    suggested = suggest_protocol(graph, shot=most)
    novel = changed.get("novel")
    if novel is not None and "way" not in changed:
        changed["way"] = _way_for_ten_sessions(novel if isinstance(novel, int) else len(novel))
    return replace(suggested, **changed)


def _way_for_ten_sessions(novel: int) -> int:
    return max(1, round(novel / 10))
