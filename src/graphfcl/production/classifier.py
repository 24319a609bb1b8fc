"""A classifier that lives on a growing graph: fitted once, taught classes for years."""

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphfcl.defaults import MODEL_METHOD
from graphfcl.errors import InputError
from graphfcl.graph import Graph
from graphfcl.graph.ids import listed, normal
from graphfcl.methods import LEARNERS, SILENT, Learner, Progress, find_method, register_method
from graphfcl.printing import quoted
from graphfcl.production.answers import Predictions, class_probabilities, predictions, unknown_scores
from graphfcl.production.explanation import explain_node
from graphfcl.production.fitting import fit_model
from graphfcl.production.graph_changes import EdgeEnds, NewEdges, NewNodes, grown, shrunk
from graphfcl.production.history import last_accuracy, new_entry, unsaved
from graphfcl.production.label_table import Columns, label_table
from graphfcl.production.ledger import Ledger
from graphfcl.production.lesson import prepare, supports_of
from graphfcl.production.live_model import LiveModel
from graphfcl.production.model_parts import Configuration, ModelParts
from graphfcl.production.supports import Statement, Support
from graphfcl.production.versions import Versions


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

    def __repr__(self) -> str:
        if not self._is_fitted:
            return f"GraphClassifier({self.method!r}, not fitted)"
        return f"GraphClassifier({self.method!r}, {len(self.classes_)} classes, {self.graph_.node_count:,} nodes)"

    @property
    def classes_(self) -> tuple[str, ...]:
        """Names of all classes it can answer, in the order in which they were learned."""
        return self._fitted().ledger_.classes

    @property
    def node_ids_(self) -> np.ndarray:
        """The user's ids of all nodes."""
        return self._fitted().graph_.ids

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

    def learn(
        self,
        supports: Mapping[str, Sequence[Any]],
        *,
        by: str = "",
        when: str | datetime.date = "",
        on_conflict: str = "refuse",
    ) -> "GraphClassifier":
        """Learn classes from labelled nodes: ``{"class name": [node ids]}``; a known class gets more supports.

        by, when: who says so and when, kept with the labels. on_conflict: see :meth:`learn_listed`.
        """
        statement = Statement.of(by, when, {}, "the supports")
        listed = supports_of(supports, statement, self._fitted().ledger_)
        return self.learn_listed(listed, on_conflict=on_conflict)

    def learn_listed(self, supports: Sequence[Support], *, on_conflict: str = "refuse") -> "GraphClassifier":
        """The same from a list of supports, each of which says where it was written, and by whom if it is known.

        on_conflict: of a node that has another label, ``refuse`` all supports, ``keep`` the label it has, or
        ``replace`` it. A label that somebody else says again stands once, with both names.
        """
        graph = self._fitted().graph_
        lesson = prepare(supports, graph, self.ledger_, on_conflict)
        change: dict[str, Any] = {"what": "learn", "new": [], **lesson.as_json()}
        if not lesson.learned:
            return self._record(self.ledger_.with_statements(lesson.statements), change)
        with self._all_or_nothing():
            if lesson.replaced:
                self.ledger_, change["retired"] = self.ledger_.without_nodes(lesson.taken_back).without_empty_classes()
                self.learner_.drop_nodes(lesson.taken_back)
                change["exact"] = self._restate()
            taught = lesson.teach(self.learner_, self.ledger_, graph.visible, len(self.history))
            self.ledger_, change["new"] = taught
            self._settle(change)
        return self

    def _record(self, ledger: Ledger, change: dict[str, Any]) -> "GraphClassifier":
        """A change that no answer depends on."""
        entry, before = new_entry(change), last_accuracy(self.history)
        self.ledger_ = ledger
        self.history.append({**entry, "accuracy": before} if before else entry)
        return self

    def unlearn(self, nodes: Sequence[Any]) -> "GraphClassifier":
        """Take back the labels of some nodes; a class that loses its last one is retired."""
        numbers = self.numbers_of(nodes)
        unknown = ~np.isin(numbers, self.ledger_.nodes)
        if unknown.any():
            missing = listed(nodes)[int(np.flatnonzero(unknown)[0])]
            raise InputError(f"node {quoted(missing)} has no label to take back; nothing was changed.")
        with self._all_or_nothing():
            self.ledger_, emptied = self.ledger_.without_nodes(numbers).without_empty_classes()
            change = {"what": "unlearn", "nodes": self.graph_.with_own_ids(nodes).tolist(), "retired": emptied}
            self.learner_.drop_nodes(numbers)
            self._settle({**change, "exact": self._restate()})
        return self

    def rename(self, old: str, new: str) -> "GraphClassifier":
        """Call a class otherwise; nothing else changes."""
        ledger = self._fitted().ledger_
        after = ledger.renamed(old, new)
        old, new = ledger.resolved(old), normal(new)
        entry, before = new_entry({"what": "rename", "from": old, "to": new}), last_accuracy(self.history)
        if before:
            classes = {new if name == old else name: value for name, value in before["classes"].items()}
            entry["accuracy"] = {**before, "classes": classes}
        self.ledger_ = after
        self.history.append(entry)
        return self

    def merge(self, source: str, into: str) -> "GraphClassifier":
        """All nodes of one class become another's."""
        source, into = (self._fitted().ledger_.resolved(name) for name in (source, into))
        with self._all_or_nothing():
            before = self.ledger_
            self.ledger_ = before.merged(source, into)
            exact = self._restate()
            if not exact:
                self.ledger_ = before.united(source, into)
                self._restate()
            self._settle({"what": "merge", "from": source, "into": into, "exact": exact})
        return self

    def retire(self, name: str) -> "GraphClassifier":
        """Never answer a class again, and let its nodes be without a label."""
        name = self._fitted().ledger_.resolved(name)
        with self._all_or_nothing():
            self.ledger_ = self.ledger_.retired(name)
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
        return class_probabilities(self.parts(), self._scores_of(nodes))

    def unknown_scores(self, nodes: Sequence[Any] | None = None) -> np.ndarray:
        """(n,) the share of known nodes that look less strange; above ``calibration_.threshold`` a node is unknown."""
        return unknown_scores(self.parts(), self._scores_of(nodes))

    def predictions(self, nodes: Sequence[Any] | None = None) -> Predictions:
        """Columns ``node, class, probability, unknown_score, unknown`` of some nodes, or of all."""
        parts, scores = self.parts(), self._scores_of(nodes)
        return predictions(parts, self.node_ids_ if nodes is None else parts.graph.with_own_ids(nodes), scores)

    def labels(self, nodes: Sequence[Any] | None = None) -> Columns:
        """Columns ``node, class, part, by, when`` and those kept with labels, of some nodes, or of all with a label."""
        return label_table(self._fitted().ledger_, self.graph_, nodes)

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

        Refused if the folder has moved on since the model was loaded. See :class:`ModelFolder`.
        """
        self._fitted()
        versions = Versions(folder)
        versions.refuse_lost_pointer()
        with versions.writing(wait):
            versions.refuse_unrelated(self.version)
            if versions.exists() and not unsaved(self.history):
                return versions.current()
            return self.write_version(versions)

    def write_version(self, versions: Versions) -> int:
        """Write the model as the next version; the caller holds the lock of the folder."""
        parts = self.parts()
        manifest = versions.write(parts, self.history, loaded=self.version)
        number = manifest["version"]
        for entry in self.history if number == 1 else unsaved(self.history):
            entry["version"] = number
        self.version = number
        versions.cache.write(manifest, parts, self.all_scores())
        return number

    @classmethod
    def load(cls, folder: Any, *, version: int | None = None, device: str = "cpu") -> "GraphClassifier":
        """The newest version of a model, or an older one."""
        stored = Versions(folder).load(version, device=device)
        model = cls.from_parts(stored.parts, device=device)
        model.history, model.version, model._scores = stored.history, stored.version, stored.scores
        return model
