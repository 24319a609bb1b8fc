"""How rows look: a colour and a mark for each, the same in every picture and on the page.

``styles.json`` lists slots (a colour on light ground, one on dark ground, a mark) and the slots of the methods of this
package. Its colours are apart in normal sight and in the three kinds of colour blindness; two slots with the same mark
have colours that nobody confuses. Each other row takes a slot that follows from its name.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True)
class Style:
    """slot: number of the colour. light, dark: the colour as ``#rrggbb`` on light and on dark ground.

    mark: a shape of ``MARKERS``.
    """

    slot: int
    light: str
    dark: str
    mark: str


MARKERS: Mapping[str, str] = {  # shape → matplotlib's sign for it; that of a hollow shape is the same
    "circle": "o",
    "square": "s",
    "triangle": "^",
    "diamond": "D",
    "cross": "X",
    "star": "*",
    "plus": "P",
    "triangle down": "v",
    "circle hollow": "o",
    "square hollow": "s",
    "triangle hollow": "^",
    "diamond hollow": "D",
}
FAINT = "#ced4da"  # rows of a picture with too many


def read_slots() -> tuple[list[Style], dict[str, int]]:
    """All slots, and the slot of each method of this package."""
    stored = json.loads(files("graphfcl.report").joinpath("styles.json").read_text(encoding="utf-8"))
    return [Style(place, **slot) for place, slot in enumerate(stored["slots"])], stored["methods"]


def row_styles(groups: Iterable[Sequence[str]]) -> dict[str, Style]:
    """A style for each name; names of one group are shown together.

    Two names of one group never have the same colour and mark, and share a colour only if the group has more names than
    there are colours. A method of this package has the same style everywhere. Any other name goes through the slots in
    an order that its hash gives, those of no method first, and takes the first that nobody in its groups has.
    """
    slots, fixed = read_slots()
    together: dict[str, set[str]] = {}
    for group in groups:
        for name in group:
            together.setdefault(name, set()).update(group)
    found = {name: slots[fixed[name]] for name in together if name in fixed}
    for name in sorted(together.keys() - fixed.keys()):
        beside = [found[other] for other in together[name] if other in found]
        found[name] = _first_free(name, slots, set(fixed.values()), beside)
    return found


def _first_free(name: str, slots: Sequence[Style], of_methods: set[int], beside: Sequence[Style]) -> Style:
    """The first style, in the order of this name, whose colour is free; if none is, whose colour with a mark is."""
    order = sorted(slots, key=lambda slot: (slot.slot in of_methods, _hash(f"{name} {slot.slot}")))
    colours = {style.slot for style in beside}
    taken = {(style.slot, style.mark) for style in beside}
    for slot in order:
        if slot.slot not in colours:
            return slot
    marks = sorted(MARKERS, key=lambda mark: _hash(f"{name} {mark}"))
    for mark in marks:
        for slot in order:
            if (slot.slot, mark) not in taken:
                return Style(slot.slot, slot.light, slot.dark, mark)
    return order[0]  # more names than colours times marks


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def colour_rules() -> str:
    """The colours as CSS: class ``colour-N`` sets ``--own``; paper is light."""
    slots, _ = read_slots()
    light = "".join(f".colour-{slot.slot}{{--own:{slot.light}}}" for slot in slots)
    dark = "".join(f".colour-{slot.slot}{{--own:{slot.dark}}}" for slot in slots)
    return f"{light}\n@media screen and (prefers-color-scheme: dark){{{dark}}}"
