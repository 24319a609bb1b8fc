"""A classifier that lives on a growing graph: fitted once, taught classes for years."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphfcl.defaults import MODEL_METHOD
from graphfcl.errors import InputError
from graphfcl.graph import Graph
from graphfcl.methods import LEARNERS, SILENT, Learner, Progress, find_method, register_method
from graphfcl.production.answers import Predictions, class_probabilities, predictions, unknown_scores
from graphfcl.production.explanation import explain_node
from graphfcl.production.fitting import fit_model
from graphfcl.production.graph_changes import EdgeEnds, NewEdges, NewNodes, grown, shrunk
from graphfcl.production.history import new_entry
from graphfcl.production.ledger import Support
from graphfcl.production.live_model import LiveModel
from graphfcl.production.model_parts import Configuration, ModelParts
from graphfcl.production.stored_version import StoredVersion
from graphfcl.production.version_cache import cache_key
from graphfcl.production.versions import Versions
from graphfcl.stream import Session


class GraphClassifier(LiveModel):
    """A classifier on a growing graph, in scikit-learn's manner.

    The constructor's arguments are the whole configuration; learned state ends in ``_``.

    method: the name of a method, or a learner class, which may be your own. settings: those that differ from its
    defaults.
    way, shot: how many classes with how many supports a session is expected to bring. seed: repeats everything.
    max_loss: a change that costs older classes more balanced accuracy than this on validation nodes leaves a warning.
    standardise: dense features get mean 0 and deviation 1 over the train nodes; the model keeps both.

    Names and ids are the user's own. Every change is all or nothing: after an error the model is what it was.
    """

    def __init__(
        self,
        method: str | type[Learner] = MODEL_METHOD,
        settings: Mapping[str, Any] | None = None,
        *,
        way: int = 2,
        shot: int = 5,
        seed: int = 0,
        max_loss: float = 0.05,
        standardise: bool = True,
        device: str = "cpu",
    ) -> None:
        if not isinstance(method, str):
            method = method.name if method in LEARNERS else register_method(method).name
        name = find_method(method).name
        configuration = Configuration(name, dict(settings or {}), way, shot, seed, max_loss, standardise)
        super().__init__(configuration, device=device)
        self.version: int | None = None  # of the folder it was last loaded from or saved to
        self._versions: Versions | None = None  # that folder

    def __repr__(self) -> str:
        if not self._is_fitted:
            return f"GraphClassifier({self.method!r}, not fitted)"
        return f"GraphClassifier({self.method!r}, {len(self.classes_)} classes, {len(self.node_ids_):,} nodes)"

    @property
    def classes_(self) -> tuple[str, ...]:
        """Names of all classes it can answer, in the order in which they were learned."""
        return self.parts().for_answers().ledger.classes

    @property
    def node_ids_(self) -> np.ndarray:
        """The user's ids of all nodes."""
        return self._fitted()._ids()

    # Training

    def fit(self, graph: Graph, *, hide_classes: Sequence[str] = (), progress: Progress = SILENT) -> "GraphClassifier":
        """Train on all labelled nodes of a graph; nodes without a label are there too, without one.

        hide_classes: classes to treat as if their nodes had no label, to be learned later.
        """
        if self._is_fitted:
            raise InputError("this classifier is fitted: make a new one to fit it to another graph.")
        found = fit_model(graph, self.configuration, hide_classes=hide_classes, device=self.device, progress=progress)
        self._take(found.parts)
        self._settle(found.change)
        return self

    # Learning

    def learn(self, supports: Mapping[str, Sequence[Any]]) -> "GraphClassifier":
        """Learn classes from labelled nodes: ``{"class name": [node ids]}``; a known class gets more supports."""
        empty = [name for name, nodes in supports.items() if len(nodes) == 0]
        if empty:
            raise InputError(f"class {empty[0]!r} has no node: give at least one; nothing was learned.")
        return self.learn_listed(
            [Support(node, str(name), f"class {name!r}") for name, nodes in supports.items() for node in nodes]
        )

    def learn_listed(self, supports: Sequence[Support]) -> "GraphClassifier":
        """The same from a list of supports, each of which says where it was written."""
        graph, ledger = self._fitted().graph_, self.ledger_
        nodes = ledger.check(supports, graph)
        names = list(dict.fromkeys(support.class_name for support in supports))
        new = [name for name in names if ledger.column_of(name) is None]
        ledger = ledger.with_supports(np.zeros(0, np.int64), np.zeros(0, np.int64), new)
        columns = np.array([ledger.require(support.class_name) for support in supports], dtype=np.int64)
        order = np.argsort(columns, kind="stable")
        session = Session(len(self.history), tuple(new), nodes[order], columns[order], graph.visible, "open")
        listed = {name: [_plain(s.node) for s in supports if s.class_name == name] for name in names}
        with self._all_or_nothing():
            self.learner_.learn(session)
            self._change(ledger=ledger.with_supports(nodes[order], columns[order], ()))
            self._settle({"what": "learn", "supports": listed, "new": new})
        return self

    def unlearn(self, nodes: Sequence[Any]) -> "GraphClassifier":
        """Take back the labels of some nodes; a class that loses its last one is retired."""
        numbers = self.numbers_of(nodes)
        unknown = ~np.isin(numbers, self.ledger_.nodes)
        if unknown.any():
            missing = np.asarray(nodes)[unknown][0]
            raise InputError(f"node {str(missing)!r} has no label to take back; nothing was changed.")
        with self._all_or_nothing():
            ledger, emptied = self.ledger_.without_nodes(numbers).without_empty_classes()
            self._change(ledger=ledger)
            change = {"what": "unlearn", "nodes": [_plain(node) for node in nodes], "retired": emptied}
            self.learner_.drop_nodes(numbers)
            self._settle({**change, "exact": self._restate()})
        return self

    def rename(self, old: str, new: str) -> "GraphClassifier":
        """Call a class otherwise; nothing else changes."""
        self._fitted()._change(ledger=self.ledger_.renamed(old, new))
        entry, before = new_entry({"what": "rename", "from": old, "to": new}), self.history.last_accuracy()
        if before:
            classes = {new if name == old else name: value for name, value in before["classes"].items()}
            entry["accuracy"] = {**before, "classes": classes}
        self.history.append(entry)
        return self

    def merge(self, source: str, into: str) -> "GraphClassifier":
        """All nodes of one class become another's."""
        self._fitted()
        with self._all_or_nothing():
            before = self.ledger_
            self._change(ledger=before.merged(source, into))
            exact = self._restate()
            if not exact:
                self._change(ledger=before.united(source, into))
                self._restate()
            self._settle({"what": "merge", "from": source, "into": into, "exact": exact})
        return self

    def retire(self, name: str) -> "GraphClassifier":
        """Never answer a class again, and let its nodes be without a label."""
        self._fitted()
        with self._all_or_nothing():
            self._change(ledger=self.ledger_.retired(name))
            self._settle({"what": "retire", "class": name, "exact": self._restate()})
        return self

    # The graph

    def add_nodes(
        self, ids: Sequence[Any], features: Any = None, *, texts: Sequence[str] | None = None
    ) -> "GraphClassifier":
        """New nodes, with this graph's feature columns, or with texts if it was made from text; without edges yet."""
        return self.grow(nodes=(ids, features, texts))

    def add_edges(
        self, source: Sequence[Any], target: Sequence[Any], weights: np.ndarray | None = None
    ) -> "GraphClassifier":
        """New edges between nodes that are there, given by the ids of their ends."""
        return self.grow(edges=(source, target, weights))

    def grow(self, *, nodes: NewNodes | None = None, edges: NewEdges | None = None) -> "GraphClassifier":
        """Nodes (ids, features, texts) and edges (sources, targets, weights) in one change."""
        return self._move(grown(self._fitted().graph_, nodes, edges))

    def remove_edges(self, source: Sequence[Any], target: Sequence[Any]) -> "GraphClassifier":
        """Edges leave, given by the ids of their ends."""
        return self.shrink(edges=(source, target))

    def remove_nodes(self, ids: Sequence[Any]) -> "GraphClassifier":
        """Nodes leave with their edges and labels; a class that loses its last label is retired."""
        return self.shrink(nodes=ids)

    def shrink(self, *, nodes: Sequence[Any] | None = None, edges: EdgeEnds | None = None) -> "GraphClassifier":
        """Edges and nodes leave in one change."""
        return self._move(shrunk(self._fitted().graph_, nodes, edges))

    # Asking

    def predict(self, nodes: Sequence[Any] | None = None) -> np.ndarray:
        """(n,) the likeliest class of each node, or of all nodes in the order of ``node_ids_``."""
        return np.array(self.classes_, dtype=object)[self.predict_proba(nodes).argmax(axis=1)]

    def predict_proba(self, nodes: Sequence[Any] | None = None) -> np.ndarray:
        """(n, classes) probabilities in the order of ``classes_``; each row sums to 1."""
        return class_probabilities(self.parts().for_answers(), self._asked(nodes)[1])

    def unknown_scores(self, nodes: Sequence[Any] | None = None) -> np.ndarray:
        """(n,) the share of known nodes that look less strange; above ``calibration_.threshold`` a node is unknown."""
        return unknown_scores(self.parts().for_answers(), self._asked(nodes)[1])

    def predictions(self, nodes: Sequence[Any] | None = None) -> Predictions:
        """Columns ``node, class, probability, unknown_score, unknown`` of some nodes, or of all."""
        ids, scores = self._asked(nodes)
        return predictions(self.parts().for_answers(), ids, scores)

    def explain(self, node: Any, *, top: int = 5) -> dict[str, Any]:
        """Why a node got its class: classes in competition, blocks, features and neighbours that decided.

        Only some methods can say. Values are parts of the difference between the logits of the
        first and the second class.
        """
        return explain_node(self.parts(), int(self.numbers_of([node])[0]), top)

    # Keeping

    @classmethod
    def from_parts(cls, parts: ModelParts, *, device: str = "cpu") -> "GraphClassifier":
        """A model of these parts, with an empty history."""
        chosen = parts.configuration
        model = cls(
            chosen.method,
            chosen.settings,
            way=chosen.way,
            shot=chosen.shot,
            seed=chosen.seed,
            max_loss=chosen.max_loss,
            standardise=chosen.standardise,
            device=device,
        )
        model._take(parts)
        return model

    def save(self, folder: Any, *, wait: float = 60.0) -> int:
        """Write the model as the folder's next version; returns its number.

        Refused if the folder has moved on since the model was loaded. See :class:`ModelFolder`. The cache is written
        afterwards, in a thread; :meth:`wait` waits for it, and so does the next change, and Python before it ends.
        """
        self._fitted()
        versions = self._versions if self._versions and self._versions.is_at(folder) else Versions(folder)
        versions.refuse_lost_pointer()
        with versions.writing(wait):
            versions.refuse_unrelated(self.version)
            if versions.exists() and not self.history.unsaved():
                return versions.current()
            return self.write_version(versions)

    def write_version(self, versions: Versions, *, write_cache: bool = True) -> int:
        """Write the model as the next version; the caller holds the lock of the folder."""
        self.wait()
        parts = self.parts().read()
        manifest = versions.write(parts, self.history, loaded=self.version)
        number = manifest["version"]
        for entry in self.history if number == 1 else self.history.unsaved():
            entry["version"] = number
        self.version, self._versions = number, versions
        key = cache_key(manifest, parts.configuration.method)
        if write_cache and versions.cache.open(key, len(parts.ledger.names)) is None:
            table = parts.learner.embeddings(parts.graph.visible)
            self._cache_thread.start(versions.cache, key, parts.graph.ids, table, self.all_scores())
        return number

    def wait(self) -> None:
        """Until the cache of the folder is written."""
        self._cache_thread.wait()

    @classmethod
    def load(cls, folder: Any, *, version: int | None = None, device: str = "cpu") -> "GraphClassifier":
        """The newest version of a model, or an older one; what it consists of is read when it is needed."""
        return cls.from_version(Versions(folder), version, device=device)

    @classmethod
    def from_version(
        cls, versions: Versions, version: int | None = None, *, device: str = "cpu", whole: bool = False
    ) -> "GraphClassifier":
        """The same. whole: read and verify everything."""
        stored = versions.load(version, device=device)
        if whole:
            stored.verify()
        model = cls.from_parts(stored.parts, device=device)
        model.history, model.version = versions.stored_history(stored.manifest), stored.version
        model._stored, model._versions = stored, versions
        return model

    def bytes_read(self) -> int:
        """How many bytes of its folder were read, the cache included."""
        return 0 if self._versions is None else self._versions.counter.read

    def _keep_cache(self, stored: StoredVersion, scores: np.ndarray) -> None:
        versions, parts = self._versions, stored.parts
        if versions is not None and versions.exists() and versions.current() == stored.version:
            table = parts.learner.embeddings(parts.graph.visible)
            self._cache_thread.start(versions.cache, stored.cache_key, parts.graph.ids, table, scores)


def _plain(value: Any) -> Any:
    """A NumPy scalar as the Python value that JSON can hold."""
    return value.item() if isinstance(value, np.generic) else value
