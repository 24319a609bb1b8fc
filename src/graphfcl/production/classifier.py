"""A classifier that lives on a growing graph: fitted once, taught classes for years."""

import datetime
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from graphfcl.errors import InputError
from graphfcl.graph import Graph
from graphfcl.methods import Learner, Progress, find_method
from graphfcl.methods.learner import SILENT
from graphfcl.production.calibration import Calibration
from graphfcl.production.carried_embeddings import carry_embeddings
from graphfcl.production.fitting import train
from graphfcl.production.growing_graph import GrowingGraph
from graphfcl.production.ledger import Ledger, Part, Support
from graphfcl.production.monitoring import accuracy_of, class_recalls, last_accuracy, leave_one_out, lost
from graphfcl.stream import Session

DEFAULT_METHOD = "anchor"

Predictions = dict[str, np.ndarray]


class GraphClassifier:
    """In scikit-learn's manner: the constructor's arguments are the whole configuration, learned state ends in ``_``.

    method, settings: any method of this project, and its settings that differ from the defaults.
    way, shot: how many classes with how many supports training rehearses. seed: repeats everything.
    max_loss: a change that costs older classes more balanced accuracy than this on validation nodes leaves a warning.

    Names and ids are the user's own. Every change is all or nothing: after an error the model is what it was.
    """

    graph_: GrowingGraph
    learner_: Learner
    ledger_: Ledger
    calibration_: Calibration

    def __init__(
        self,
        method: str = DEFAULT_METHOD,
        settings: Mapping[str, Any] | None = None,
        *,
        way: int = 2,
        shot: int = 5,
        seed: int = 0,
        max_loss: float = 0.05,
        device: str = "cpu",
    ) -> None:
        self.method, self.settings = find_method(method).name, dict(settings or {})
        self.way, self.shot, self.seed, self.max_loss, self.device = way, shot, seed, max_loss, device
        self.history: list[dict[str, Any]] = []
        self.version: int | None = None  # of the folder it was last loaded from or saved to
        self._scores: np.ndarray | None = None  # (n, columns) of every node of the graph

    def __repr__(self) -> str:
        if not self._is_fitted:
            return f"GraphClassifier({self.method!r}, not fitted)"
        return f"GraphClassifier({self.method!r}, {len(self.classes_)} classes, {self.graph_.node_count:,} nodes)"

    @property
    def classes_(self) -> tuple[str, ...]:
        """Names of all classes it can answer, in the order in which they were learned."""
        return self._fitted().ledger_.classes

    # Training

    def fit(self, graph: Graph, *, hide_classes: Sequence[str] = (), progress: Progress = SILENT) -> "GraphClassifier":
        """Train on all labelled nodes of a graph; nodes without a label are there too, without one.

        hide_classes: classes to treat as if their nodes had no label, to be learned later.
        """
        if self._is_fitted:
            raise InputError("this classifier is fitted: make a new one to fit it to another graph.")
        found = train(
            graph,
            self.method,
            self.settings,
            hide_classes=hide_classes,
            way=self.way,
            shot=self.shot,
            seed=self.seed,
            device=self.device,
            progress=progress,
        )
        self.learner_, self.ledger_ = found.learner, found.ledger
        self.calibration_, self.graph_ = found.calibration, found.graph
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
        fitted = self._fitted()
        graph, ledger = fitted.graph_, self.ledger_
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
            self.ledger_ = ledger.with_supports(nodes[order], columns[order], ())
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
            self.ledger_, emptied = self.ledger_.without_nodes(numbers).without_empty_classes()
            change = {"what": "unlearn", "nodes": [_plain(node) for node in nodes], "retired": emptied}
            self.learner_.drop_nodes(numbers)
            self._settle({**change, "exact": self._restate()})
        return self

    def rename(self, old: str, new: str) -> "GraphClassifier":
        """Call a class otherwise; nothing else changes."""
        self._fitted()
        self.ledger_ = self.ledger_.renamed(old, new)
        self._note({"what": "rename", "from": old, "to": new})
        before = last_accuracy(self.history)
        if before:
            classes = {new if name == old else name: value for name, value in before["classes"].items()}
            self.history[-1]["accuracy"] = {**before, "classes": classes}
        return self

    def merge(self, source: str, into: str) -> "GraphClassifier":
        """All nodes of one class become another's."""
        self._fitted()
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
        self._fitted()
        with self._all_or_nothing():
            self.ledger_ = self.ledger_.retired(name)
            self._settle({"what": "retire", "class": name, "exact": self._restate()})
        return self

    def _restate(self) -> bool:
        """Let the learner know what the ledger says, and nothing else; whether nothing else is left in it."""
        restated = self.learner_.restate(self._fitted().graph_.visible, *self.ledger_.knowledge())
        return restated and self.learner_.forgets_exactly

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

    def grow(
        self,
        *,
        nodes: tuple[Sequence[Any], Any, Sequence[str] | None] | None = None,
        edges: tuple[Sequence[Any], Sequence[Any], np.ndarray | None] | None = None,
    ) -> "GraphClassifier":
        """Nodes (ids, features, texts) and edges (sources, targets, weights) in one change."""
        before = self._fitted().graph_
        graph, touched = before, []
        if nodes is not None:
            ids, features, texts = nodes
            graph, fresh = graph.with_nodes(ids, graph.features_of(features, texts=texts))
            touched.append(fresh)
        if edges is not None:
            graph, ends = graph.with_edges(*edges)
            touched.append(ends)
        nodes_more, edges_more = graph.node_count - before.node_count, graph.edge_count - before.edge_count
        self._move(graph, touched, {"what": "grow", "nodes": nodes_more, "edges": edges_more})
        return self

    def remove_edges(self, source: Sequence[Any], target: Sequence[Any]) -> "GraphClassifier":
        return self.shrink(edges=(source, target))

    def remove_nodes(self, ids: Sequence[Any]) -> "GraphClassifier":
        """Nodes leave with their edges and labels; a class that loses its last label is retired."""
        return self.shrink(nodes=ids)

    def shrink(
        self, *, nodes: Sequence[Any] | None = None, edges: tuple[Sequence[Any], Sequence[Any]] | None = None
    ) -> "GraphClassifier":
        """Edges and nodes leave in one change."""
        before = self._fitted().graph_
        graph, touched, gone = before, [], np.zeros(0, dtype=np.int64)
        if edges is not None:
            graph, ends = graph.without_edges(*edges)
            touched.append(ends)
        if nodes is not None:
            graph, gone, around = graph.without_nodes(nodes)
            touched = [ends[~np.isin(ends, gone)] for ends in touched] + [around]
        nodes_less, edges_less = before.node_count - graph.node_count, before.edge_count - graph.edge_count
        self._move(graph, touched, {"what": "shrink", "nodes": nodes_less, "edges": edges_less}, gone)
        return self

    def _move(
        self, graph: GrowingGraph, touched: list[np.ndarray], change: dict[str, Any], gone: np.ndarray | None = None
    ) -> None:
        """Go on with a changed graph: only embeddings within reach of the change are computed anew."""
        old = self._fitted().graph_
        with self._all_or_nothing():
            share = carry_embeddings(self.learner_, old, graph, touched)
            self.graph_ = graph
            if gone is not None and gone.size:
                self.learner_.drop_nodes(gone)
                self.ledger_, change["retired"] = self.ledger_.without_nodes(gone).without_empty_classes()
                change["exact"] = self._restate()
            else:
                self._restate()  # sums are those of the graph of now
            self._settle({**change, "within_reach": round(share, 4)})

    # Asking

    def predict(self, nodes: Sequence[Any] | None = None) -> np.ndarray:
        """(n,) the likeliest class of each node, or of all nodes in the order of ``node_ids_``."""
        return np.array(self.classes_, dtype=object)[self.predict_proba(nodes).argmax(axis=1)]

    def predict_proba(self, nodes: Sequence[Any] | None = None) -> np.ndarray:
        """(n, classes) probabilities in the order of ``classes_``; each row sums to 1."""
        return self._probabilities(self._asked(nodes))

    def unknown_scores(self, nodes: Sequence[Any] | None = None) -> np.ndarray:
        """(n,) the share of known nodes that look less strange; above ``calibration_.threshold`` a node is unknown."""
        return self.calibration_.unknown_scores(self._active(self._asked(nodes)))

    def predictions(self, nodes: Sequence[Any] | None = None) -> Predictions:
        """Columns ``node, class, probability, unknown_score, unknown`` of some nodes, or of all."""
        scores = self._asked(nodes)
        probabilities = self._probabilities(scores)
        best = probabilities.argmax(axis=1)
        unknown = self.calibration_.unknown_scores(self._active(scores))
        ids = self.node_ids_ if nodes is None else self._fitted().graph_.with_own_ids(nodes)
        return {
            "node": ids,
            "class": np.array(self.classes_, dtype=object)[best],
            "probability": probabilities[np.arange(best.size), best],
            "unknown_score": unknown,
            "unknown": unknown > self.calibration_.threshold,
        }

    def explain(self, node: Any, *, top: int = 5) -> dict[str, Any]:
        """Why a node got its class: classes in competition, blocks, features and neighbours that decided.

        Only models of the method ``anchor`` can say. Values are parts of the difference between the logits of the
        first and the second class.
        """
        from graphfcl.production.explanation import explain_node

        return explain_node(self._fitted(), node, top)

    @property
    def node_ids_(self) -> np.ndarray:
        """The user's ids of all nodes."""
        return self._fitted().graph_.ids

    def all_scores(self) -> np.ndarray:
        """(n, columns) the learner's scores of every node; computed once for a state of the model."""
        if self._scores is None:
            graph = self._fitted().graph_
            self.learner_.embedding_table(graph.visible)
            self._scores = self.learner_.scores(graph.visible, graph.numbers)
        return self._scores

    def _asked(self, nodes: Sequence[Any] | None) -> np.ndarray:
        scores = self._fitted().all_scores()
        return scores if nodes is None else scores[self._fitted().graph_.visible.rows(self.numbers_of(nodes))]

    def _active(self, scores: np.ndarray) -> np.ndarray:
        return scores[:, self.ledger_.class_of_column() >= 0]

    def _probabilities(self, scores: np.ndarray) -> np.ndarray:
        of_column = self.ledger_.class_of_column()
        shares = self.calibration_.probabilities(self._active(scores))
        joined = np.zeros((len(scores), len(self.classes_)), dtype=shares.dtype)
        np.add.at(joined.T, of_column[of_column >= 0], shares.T)
        return joined

    # Keeping

    def save(self, folder: Any, *, wait: float = 60.0) -> int:
        """Write the model as the folder's next version; answers its number. See :class:`ModelFolder`."""
        from graphfcl.production.folder import ModelFolder

        return ModelFolder(folder).save(self, wait=wait)

    @classmethod
    def load(cls, folder: Any, *, version: int | None = None, device: str = "cpu") -> "GraphClassifier":
        """The newest version of a model, or an older one."""
        from graphfcl.production.folder import ModelFolder

        return ModelFolder(folder).load(version, device=device)

    # Inside

    def _fitted(self) -> "GraphClassifier":
        if not self._is_fitted:
            raise InputError("this classifier is not fitted: call fit with a graph first.")
        return self

    @property
    def _is_fitted(self) -> bool:
        return hasattr(self, "graph_")

    def numbers_of(self, nodes: Sequence[Any]) -> np.ndarray:
        """Node numbers of the user's ids."""
        graph = self._fitted().graph_
        rows = graph.rows_of_ids(nodes)
        if (rows < 0).any():
            missing = np.asarray(nodes)[rows < 0]
            more = f" (and {missing.size - 1} more)" if missing.size > 1 else ""
            raise InputError(f"node {str(missing[0])!r}{more} is not in the graph: check the ids.")
        return graph.numbers[rows]

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """If anything goes wrong inside, the model is what it was before."""
        graph, ledger, calibration, scores = self._fitted().graph_, self.ledger_, self.calibration_, self._scores
        state, table, count = self.learner_.state(), self.learner_.embedding_table(graph.visible), len(self.history)
        done = False
        try:
            yield
            done = True
        finally:
            if not done:
                self.graph_, self.ledger_, self.calibration_, self._scores = graph, ledger, calibration, scores
                self.learner_.load_state(state)
                self.learner_.use_table(graph.visible, table)
                del self.history[count:]

    def _settle(self, change: dict[str, Any]) -> None:
        """After a change: scores, calibration, accuracy on validation nodes, an entry in the history."""
        self._scores = None
        graph, ledger = self._fitted().graph_, self.ledger_
        scores, of_column = self.all_scores(), ledger.class_of_column()
        active = np.flatnonzero(of_column >= 0)
        place = np.full(of_column.size, -1, dtype=np.int64)
        place[active] = np.arange(active.size)
        nodes, columns = ledger.of_part(Part.VALIDATION)
        rows = graph.visible.rows(nodes)
        few = len({ledger.names[c] for c in active if c >= ledger.many})
        if nodes.size:
            asked = scores[rows][:, active]
            self.calibration_ = self.calibration_.refit(asked, place[columns], few / len(ledger.classes))
        recalls = class_recalls(of_column[columns], of_column[active][scores[rows][:, active].argmax(axis=1)], ledger)
        learned = leave_one_out(self.learner_, graph.visible, ledger, active)
        self._note(change, recalls, learned)

    def _note(
        self, change: dict[str, Any], recalls: dict[str, float] | None = None, learned: dict[str, float] | None = None
    ) -> None:
        entry: dict[str, Any] = {"version": None, "when": _now(), **change}
        if recalls is not None:
            entry["accuracy"] = accuracy_of(recalls, learned)
            warning = lost(self.history, entry, self.max_loss)
            if warning:
                entry["warning"] = warning
        self.history.append(entry)


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
