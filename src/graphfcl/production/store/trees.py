"""A tree: plain values and the indexes of some arrays, itself an object. A version is a handful of trees."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from graphfcl.production.store.block_arrays import BlockArrays, Index, block_names
from graphfcl.production.store.damage import Damaged, need
from graphfcl.production.store.objects import Objects
from graphfcl.production.store.strict_json import read_json, whole_number
from graphfcl.runtime.files import canonical_json

LARGEST_TREE = 1 << 24  # bytes: those of a tree become many more in memory

TreeName = list[Any]  # its checksum and its size, as a manifest holds them


@dataclass(frozen=True)
class Tree:
    """arrays: indexes by name. values: whatever JSON can hold."""

    arrays: dict[str, Index] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)

    def index(self, name: str) -> Index:
        """The index of an array that must be there."""
        if name not in self.arrays:
            raise Damaged(f"it lacks the array {name!r}")
        return self.arrays[name]

    def value(self, name: str) -> Any:
        """A value that must be there."""
        if name not in self.values:
            raise Damaged(f"it lacks the value {name!r}")
        return self.values[name]

    def objects(self) -> set[str]:
        """The names of all blocks."""
        return set().union(*(block_names(index) for index in self.arrays.values()))


def write_tree(objects: Objects, tree: Tree) -> TreeName:
    """Keep a tree; what a manifest calls it."""
    content = canonical_json({"arrays": tree.arrays, "values": tree.values})
    read_json(content)  # what cannot be read again is not kept
    need(len(content) <= LARGEST_TREE, f"a list of its arrays and values is longer than {LARGEST_TREE:,} bytes")
    return [objects.put(content), len(content)]


def read_tree(objects: Objects, name: Any) -> Tree:
    """The reverse."""
    need(isinstance(name, list) and len(name) == 2, "it does not say what it consists of")
    size = whole_number(name[1], "the size of a file", 0, LARGEST_TREE)
    found = read_json(objects.get(name[0], size))
    need(isinstance(found, dict), "a file of it lists nothing")
    arrays, values = found.get("arrays"), found.get("values")
    need(isinstance(arrays, dict) and isinstance(values, dict), "a file of it lists nothing")
    return Tree(arrays, values)


def write_once(arrays: BlockArrays, owner: Any, others: tuple[Any, ...], encode: Callable[[], Tree]) -> TreeName:
    """The tree of objects that never change, written unless it lies there already.

    owner, others: the objects that it is made of, known by identity.
    """
    known = arrays.recall(owner)
    if known is not None and all(mine is theirs for mine, theirs in zip(known[0], others, strict=True)):
        name, names = known[1], known[2]
        try:
            arrays.objects.stored_bytes(names)
            return name
        except Damaged:
            pass  # somebody removed a file: write it again
    tree = encode()
    name = write_tree(arrays.objects, tree)
    remember_tree(arrays, owner, others, name, tree)
    return name


def remember_tree(arrays: BlockArrays, owner: Any, others: tuple[Any, ...], name: TreeName, tree: Tree) -> None:
    """Let :func:`write_once` know how objects that were read are stored."""
    arrays.remember(owner, (others, name, {name[0], *tree.objects()}))
