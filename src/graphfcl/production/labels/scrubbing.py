"""Taking nodes out of what a history tells."""

from collections.abc import Sequence
from typing import Any

from graphfcl.graph.ids import normal, text_of
from graphfcl.production.labels.history import Entry

ID_LISTS = ("agreed", "known", "nodes")  # keys of an entry that may hold a list of ids
OPTIONAL = ("agreed", "known", "statements", "conflicts")  # keys that are left out where they would be empty


class Scrubber:
    """Takes some nodes out of entries; ``erased`` of an entry says how many it named. met: ids that entries named.

    An id is known by its cleaned text, whatever form an older version wrote it in.
    """

    def __init__(self, ids: Sequence[Any]) -> None:
        self._texts = {normal(text_of(each)) for each in ids}
        self.met: set[str] = set()

    def scrubbed(self, entry: Entry) -> Entry:
        """The entry without the nodes; itself if it names none of them."""
        gone: set[str] = set()
        found = {key: self._value(key, value, gone) for key, value in entry.items()}
        if not gone:
            return entry
        self.met |= gone
        for key in OPTIONAL:
            if found.get(key) == []:
                del found[key]
        if "conflicts" not in found:
            found.pop("on_conflict", None)
        return {**found, "erased": entry.get("erased", 0) + len(gone)}

    def _value(self, key: str, value: Any, gone: set[str]) -> Any:
        if key == "supports" and isinstance(value, dict):
            return {name: self._kept(nodes, gone) for name, nodes in value.items()}
        if key in ID_LISTS:
            return self._kept(value, gone)
        if isinstance(value, list):
            return [each for each in value if not (isinstance(each, dict) and self._is_erased(each.get("node"), gone))]
        return value

    def _kept(self, nodes: Any, gone: set[str]) -> Any:
        return [each for each in nodes if not self._is_erased(each, gone)] if isinstance(nodes, list) else nodes

    def _is_erased(self, node: Any, gone: set[str]) -> bool:
        if not isinstance(node, str | int) or isinstance(node, bool):
            return False
        text = normal(text_of(node))
        if text not in self._texts:
            return False
        gone.add(text)
        return True
