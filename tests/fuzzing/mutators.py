"""Changes to a tree of values that know nothing of the format the tree comes from.

A tree consists of dictionaries, lists, plain values and NumPy arrays. A mutator changes one place of it in place.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Tree = Any
Place = tuple[Any, Any]  # a dictionary or a list, and a key of it

LISTED = 4  # items of a list that are visited
ODD: tuple[Any, ...] = (
    None, True, False, -1, 0, 1, 2, 3, 1.0, 0.5, -0.0, 7.5, 1e-300, 1e300, 10**6, 10**12, 2**31, 2**63, -(2**70),
    float("nan"), float("inf"), float("-inf"),
    "", "x", "0", "1", "²", "../x", "/", "\x00", "\ud800", "e\u0301", "\u202e", "a" * 20_000, "ナ",
    [], [[]], [0, 0], [None], {}, {"a": 1}, {"": {}},
)  # fmt: skip
EXTREME = (-1, 0, 1, 2, 127, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63), 1e38, -1e38, 1e300, np.nan, np.inf, -np.inf)
DTYPES = ("|b1", "|i1", "|u1", "<i2", "<i4", "<i8", "<u4", "<f2", "<f4", "<f8", "<c8", "<U3")


def places(tree: Tree) -> Iterator[Place]:
    """Every place of a tree; of long lists the first few and the last."""
    if isinstance(tree, dict):
        keys: list[Any] = list(tree)
    elif isinstance(tree, list):
        keys = [*range(min(len(tree), LISTED)), *([len(tree) - 1] if len(tree) > LISTED else [])]
    else:
        return
    for key in keys:
        yield tree, key
        yield from places(tree[key])


def mutate(tree: Tree, random: np.random.Generator) -> str:
    """Change a tree in place, once or a few times; what was done."""
    said = []
    for _ in range(1 if random.random() < 0.8 else int(random.integers(2, 4))):
        found = list(places(tree))
        if not found:
            break
        arrays = [place for place in found if isinstance(place[0][place[1]], np.ndarray)]
        chosen = arrays if arrays and random.random() < 0.5 else found
        inside, key = chosen[random.integers(len(chosen))]
        known = ARRAY_MUTATORS if isinstance(inside[key], np.ndarray) else MUTATORS
        mutator = known[random.integers(len(known))]
        mutator(inside, key, random)
        said.append(f"{mutator.__name__}({key!r})")
    return ", ".join(said)


# Any value


def replace(inside: Any, key: Any, random: np.random.Generator) -> None:
    """A value of another type or range."""
    inside[key] = ODD[random.integers(len(ODD))]


def convert(inside: Any, key: Any, random: np.random.Generator) -> None:
    """The same value in another type: 1 as "1", 1.0 or [1]."""
    value = inside[key]
    ways: list[Callable[[Any], Any]] = [str, lambda each: [each], lambda each: {"value": each}, bool]
    if isinstance(value, int | float):
        ways += [float, lambda each: -each, lambda each: each + 1, lambda each: each - 1]
    if isinstance(value, list):
        ways += [lambda each: dict(enumerate(map(str, each))), lambda each: each[::-1], lambda each: each[:-1]]
    if isinstance(value, dict):
        ways += [lambda each: list(each.values()), list]
    try:
        inside[key] = ways[random.integers(len(ways))](value)
    except OverflowError:  # a float of a number that is too large
        inside[key] = None


def drop(inside: Any, key: Any, random: np.random.Generator) -> None:  # noqa: ARG001
    """A key or an item is missing."""
    del inside[key]


def duplicate(inside: Any, key: Any, random: np.random.Generator) -> None:
    """An item twice in a list, or the value of one key under another one."""
    if isinstance(inside, list):
        inside.insert(int(random.integers(len(inside) + 1)), inside[key])
    else:
        inside[list(inside)[random.integers(len(inside))]] = inside[key]


def rename(inside: Any, key: Any, random: np.random.Generator) -> None:
    """A key under another name."""
    if isinstance(inside, dict):
        inside[("x", "", "²", f"{key}.", str(key).upper())[random.integers(5)]] = inside.pop(key)
    else:
        replace(inside, key, random)


def swap(inside: Any, key: Any, random: np.random.Generator) -> None:
    """Two values in each other's place."""
    keys = list(inside) if isinstance(inside, dict) else list(range(len(inside)))
    other = keys[random.integers(len(keys))]
    inside[key], inside[other] = inside[other], inside[key]


def nest(inside: Any, key: Any, random: np.random.Generator) -> None:
    """A value within many lists."""
    for _ in range(int(random.integers(1, 60))):
        inside[key] = [inside[key]]


MUTATORS = (replace, replace, replace, convert, convert, drop, drop, duplicate, rename, swap, nest)


# Arrays


def set_items(inside: Any, key: Any, random: np.random.Generator) -> None:
    """One item or a few are extreme, or equal to others."""
    array = inside[key].copy()
    if array.size:
        flat = array.reshape(-1)
        at = random.integers(0, flat.size, random.integers(1, 5))
        value = EXTREME[random.integers(len(EXTREME))] if random.random() < 0.7 else flat[random.integers(flat.size)]
        with np.errstate(all="ignore"):
            flat[at] = np.array(value).astype(array.dtype, casting="unsafe")
        inside[key] = array


def flip_bytes(inside: Any, key: Any, random: np.random.Generator) -> None:
    """Some bytes are others."""
    raw = np.frombuffer(inside[key].tobytes(), np.uint8).copy()
    if raw.size:
        raw[random.integers(0, raw.size, random.integers(1, 9))] = random.integers(0, 256)
        inside[key] = raw.view(inside[key].dtype).reshape(inside[key].shape)


def fill(inside: Any, key: Any, random: np.random.Generator) -> None:
    """All items are one value."""
    value = EXTREME[random.integers(len(EXTREME))]
    with np.errstate(all="ignore"):
        inside[key] = np.broadcast_to(np.array(value).astype(inside[key].dtype), inside[key].shape).copy()


def truncate(inside: Any, key: Any, random: np.random.Generator) -> None:
    """Some rows are missing, perhaps all."""
    if inside[key].ndim:
        inside[key] = inside[key][: random.integers(0, len(inside[key]) + 1)]


def extend(inside: Any, key: Any, random: np.random.Generator) -> None:
    """Some rows stand twice."""
    if inside[key].ndim:
        inside[key] = np.concatenate([inside[key], inside[key][: random.integers(0, 4)]])


def reorder(inside: Any, key: Any, random: np.random.Generator) -> None:
    """The same rows in another order."""
    if inside[key].ndim:
        inside[key] = inside[key][random.permutation(len(inside[key]))]


def reshape(inside: Any, key: Any, random: np.random.Generator) -> None:
    """The same items in another shape."""
    array = inside[key]
    ways = [array.reshape(-1), array.reshape(1, -1), array.reshape(-1, 1), array[None], array.T, array[..., None]]
    if array.size == 1:
        ways.append(array.reshape(()))
    if array.size and array.size % 2 == 0:
        ways.append(array.reshape(2, -1))
    inside[key] = np.ascontiguousarray(ways[random.integers(len(ways))])


def retype(inside: Any, key: Any, random: np.random.Generator) -> None:
    """The same items, or the same bytes, in another type."""
    array, kind = inside[key], np.dtype(DTYPES[random.integers(len(DTYPES))])
    with np.errstate(all="ignore"):
        if random.random() < 0.7:
            inside[key] = array.astype(kind)
        elif array.nbytes % kind.itemsize == 0 and kind.kind not in "bU":
            inside[key] = np.frombuffer(array.tobytes(), kind)


ARRAY_MUTATORS = (set_items, set_items, set_items, flip_bytes, fill, truncate, extend, reorder, reshape, retype, drop)
