"""A classifier that lives on a growing graph: fitted once, taught classes for years."""

import datetime
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from graphfcl.defaults import MODEL_METHOD
from graphfcl.errors import InputError
from graphfcl.graph.ids import listed, normal
from graphfcl.methods import SILENT, Learner, Progress, find_method
from graphfcl.printing import quoted
from graphfcl.production.answering import AnsweringModel
from graphfcl.production.answers import Answers
from graphfcl.production.arguments import shown
from graphfcl.production.calibration import Readings
from graphfcl.production.graph_place import FolderUse
from graphfcl.production.model_parts import Configuration, ModelParts
from graphfcl.production.model_state import ModelState
from graphfcl.production.packing import name_of_method
from graphfcl.production.stored_version import StoredVersion
from graphfcl.production.supports import Statement, Support
from graphfcl.production.version_cache import CacheContents, CacheKeys, cache_keys
from graphfcl.production.versions import Versions

if TYPE_CHECKING:  # whoever only asks need not wait for what a change needs
    from graphfcl.graph import Graph
    from graphfcl.graph.folder_graph import AnyGraph
    from graphfcl.production.fit_checkpoints import FitCheckpoints
    from graphfcl.production.graph_changes import EdgeEnds, NewEdges, NewNodes
    from graphfcl.production.grouping import Group
    from graphfcl.production.refitting import Refit


class GraphClassifier(AnsweringModel):
    """A classifier on a growing graph, in scikit-learn's manner.

    The constructor's arguments are the whole configuration; learned state ends in ``_``.

    method: the name of a method, or a learner class, which may be your own. settings: those that differ from its
    defaults.
    way, shot: how many classes with how many supports a session is expected to bring. seed: repeats everything.
    max_loss: a change that costs older classes more balanced accuracy than this on validation nodes leaves a warning.
    standardise: dense features get mean 0 and deviation 1 over the train nodes; the model keeps both.

    Names and ids are the user's own. Every change is all or nothing: after an error the model is what it was. Threads
    may share a model: those that ask see the state before a change until it is whole, those that change it wait for
    each other.
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
            method = name_of_method(method)
        name = find_method(method).name
        if not math.isfinite(max_loss):
            raise InputError(f"max_loss is {max_loss:g}: give a share of accuracy, such as 0.05.")
        configuration = Configuration(name, dict(settings or {}), way, shot, seed, max_loss, standardise)
        super().__init__(configuration, device=device)

    def __repr__(self) -> str:
        if self._state is None:
            return f"GraphClassifier({self.method!r}, not fitted)"
        return f"GraphClassifier({self.method!r}, {len(self.classes_)} classes, {self._current().node_count:,} nodes)"

    # Training

    def fit(
        self,
        graph: "AnyGraph",
        *,
        hide_classes: Sequence[str] = (),
        progress: Progress = SILENT,
        checkpoints: "FitCheckpoints | None" = None,
    ) -> "GraphClassifier":
        """Train on all labelled nodes of a graph; nodes without a label are there too, without one.

        graph: in memory, or a :class:`FolderGraph` that stays on the disk (``docs/large-models.md``). hide_classes:
        classes to treat as if their nodes had no label, to be learned later. checkpoints: where a fit that is stopped
        leaves what it has, and finds it again.
        """
        from graphfcl.production.fit_checkpoints import FitCheckpoints
        from graphfcl.production.fitting import fit_model

        chosen = self.configuration
        with self._changing:
            if self._state is not None:
                raise InputError("this classifier is fitted: make a new one to fit it to another graph.")
            found = fit_model(
                graph,
                chosen,
                hide_classes=hide_classes,
                device=self.device,
                progress=progress,
                checkpoints=checkpoints or FitCheckpoints(),
            )
            self._begin(found.parts, found.change, progress)
        return self

    def refit(self, graph: "Graph | None" = None, *, anyway: bool = False, progress: Progress = SILENT) -> "Refit":
        """Train anew on the graph and the labels of today, with the same configuration; take it if it is better.

        Classes that have enough labels by now become classes of session 0; words are weighed and columns standardised
        again. Ids, numbers, names and who gave a label stay. The new model is compared with this one class by class on
        nodes that neither was trained on (``comparison.py``), and takes its place if its balanced accuracy there is
        higher, or ``anyway``. Otherwise nothing changes.

        graph: brought anew with the same ids, for features or edges that the model does not have, such as new words.
        Labels of the model win over those of the graph; what it has beyond them is used too, but for labels that were
        taken back and classes that were retired.
        """
        from graphfcl.production.brought_graph import Decisions
        from graphfcl.production.history import lineage, written_by_graphfcl
        from graphfcl.production.refitting import Refit, refit_model

        with self._change() as draft:
            state = self._in_memory()
            before = replace(state.parts.read(), learner=draft.learner, configuration=self.configuration)
            with written_by_graphfcl():
                decisions = Decisions.of(lineage(state.history.entries()))
            found = refit_model(before, state.asked.scores(), graph, decisions, device=self.device, progress=progress)
            result = Refit(found.comparison, anyway or found.comparison.better)
            if result.taken:
                draft.exchange(found.parts)
                # What older classes lost is in the comparison: the accuracy of before is of other nodes.
                draft.settle({**found.change, "why": result.why, "compared": found.comparison.as_json()}, max_loss=1.0)
        return result

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
        from graphfcl.production.lesson import supports_of

        statement = Statement.of(by, when, {}, "the supports")
        listed = supports_of(supports, statement, self._current().parts.ledger)
        return self.learn_listed(listed, on_conflict=on_conflict)

    def learn_listed(self, supports: Sequence[Support], *, on_conflict: str = "refuse") -> "GraphClassifier":
        """The same from a list of supports, each of which says where it was written, and by whom if it is known.

        on_conflict: of a node that has another label, ``refuse`` all supports, ``keep`` the label it has, or
        ``replace`` it. A label that somebody else says again stands once, with both names.
        """
        from graphfcl.production.lesson import prepare

        with self._change() as draft:
            lesson = prepare(supports, draft.graph, draft.ledger, on_conflict)
            change: dict[str, Any] = {"what": "learn", "new": [], **lesson.as_json()}
            if not lesson.learned:
                draft.ledger = draft.ledger.with_statements(lesson.statements)
                draft.record(change)
                return self
            if lesson.replaced:
                draft.ledger, change["retired"] = draft.ledger.without_nodes(lesson.taken_back).without_empty_classes()
                draft.learner.drop_nodes(lesson.taken_back)
                change["exact"] = draft.restate()
            taught = lesson.teach(draft.learner, draft.ledger, draft.graph.visible, len(draft.history))
            draft.ledger, change["new"] = taught
            self._settle(draft, change)
        return self

    def name_group(self, group: "Group", name: str, *, by: str = "") -> "GraphClassifier":
        """Teach a group that :meth:`groups` found as a class: typical, spread members become its supports.

        They are ``shot`` many, those that the group shows as typical before others.
        """
        from graphfcl.production.grouping import supports_of_group

        if not isinstance(name, str):
            raise InputError(f"the name of the class is {shown(name)}: give a text.")
        return self.learn({name: supports_of_group(self._current(), group, self.shot)}, by=by)

    def unlearn(self, nodes: Sequence[Any]) -> "GraphClassifier":
        """Take back the labels of some nodes; a class that loses its last one is retired."""
        with self._change() as draft:
            numbers = draft.graph.numbers_of(nodes)
            unknown = ~np.isin(numbers, draft.ledger.nodes)
            if unknown.any():
                missing = listed(nodes)[int(np.flatnonzero(unknown)[0])]
                raise InputError(f"node {quoted(missing)} has no label to take back; nothing was changed.")
            draft.ledger, emptied = draft.ledger.without_nodes(numbers).without_empty_classes()
            change = {"what": "unlearn", "nodes": draft.graph.with_own_ids(nodes).tolist(), "retired": emptied}
            draft.learner.drop_nodes(numbers)
            self._settle(draft, {**change, "exact": draft.restate()})
        return self

    def rename(self, old: str, new: str) -> "GraphClassifier":
        """Call a class otherwise; nothing else changes."""
        with self._change() as draft:
            before = draft.ledger
            draft.ledger = before.renamed(old, new)
            old, new = before.resolved(old), normal(new)
            accuracy = draft.history.last_accuracy()
            if accuracy:
                classes = {new if name == old else name: value for name, value in accuracy["classes"].items()}
                accuracy = {**accuracy, "classes": classes}
            draft.record({"what": "rename", "from": old, "to": new}, accuracy)
        return self

    def merge(self, source: str, into: str) -> "GraphClassifier":
        """All nodes of one class become another's."""
        with self._change() as draft:
            before = draft.ledger
            source, into = before.resolved(source), before.resolved(into)
            draft.ledger = before.merged(source, into)
            exact = draft.restate()
            if not exact:
                draft.ledger = before.united(source, into)
                draft.restate()
            self._settle(draft, {"what": "merge", "from": source, "into": into, "exact": exact})
        return self

    def retire(self, name: str) -> "GraphClassifier":
        """Never answer a class again, and let its nodes be without a label."""
        with self._change() as draft:
            name = draft.ledger.resolved(name)
            draft.ledger = draft.ledger.retired(name)
            self._settle(draft, {"what": "retire", "class": name, "exact": draft.restate()})
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

    def grow(self, *, nodes: "NewNodes | None" = None, edges: "NewEdges | None" = None) -> "GraphClassifier":
        """Nodes (ids, features, texts) and edges (sources, targets, weights) in one change."""
        from graphfcl.production.graph_changes import grown

        with self._change() as draft:
            return self._move(draft, grown(draft.graph, nodes, edges))

    def remove_edges(self, source: Sequence[Any], target: Sequence[Any]) -> "GraphClassifier":
        """Edges leave, given by the ids of their ends."""
        return self.shrink(edges=(source, target))

    def remove_nodes(self, ids: Sequence[Any]) -> "GraphClassifier":
        """Nodes leave with their edges and labels; a class that loses its last label is retired."""
        return self.shrink(nodes=ids)

    def shrink(self, *, nodes: Sequence[Any] | None = None, edges: "EdgeEnds | None" = None) -> "GraphClassifier":
        """Edges and nodes leave in one change."""
        from graphfcl.production.graph_changes import shrunk

        with self._change() as draft:
            self._in_memory()
            return self._move(draft, shrunk(draft.graph, nodes, edges))

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
        model._hold(ModelState.of(parts))
        return model

    def save(self, folder: Any, *, wait: float = 60.0) -> int:
        """Write the model as the folder's next version; returns its number.

        Refused if the folder has moved on since the model was loaded. See :class:`ModelFolder`. The cache is written
        afterwards, in a thread; :meth:`wait` waits for it, and so does Python before it ends.
        """
        self._current()
        versions = self._versions if self._versions and self._versions.is_at(folder) else Versions(folder)
        versions.refuse_lost_pointer()
        with versions.writing(wait):
            state = self._current()
            versions.refuse_unrelated(state.version)
            if versions.exists() and not state.history.unsaved():
                return versions.current()
            return self.write_version(versions)

    def write_version(
        self, versions: Versions, *, write_cache: bool = True, request: dict[str, Any] | None = None
    ) -> int:
        """Write the model as the next version; the caller holds the lock of the folder.

        request: what the entry of the last change says of the request that asked for it, as JSON values.
        """
        self.wait()
        state = self._current()
        parts = state.copy().parts.configured(self.configuration)
        manifest = versions.write(parts, state.history, loaded=state.version, request=request)
        number: int = manifest["version"]
        self._saved(state, number, versions)
        if state.on_disk is not None:
            state.on_disk.keep_for(cache_keys(manifest, parts.configuration.method))
        elif write_cache:
            keys = cache_keys(manifest, parts.configuration.method)
            contents = _contents(keys, parts, state.asked.answers())
            self._cache_thread.start(versions.cache, contents, lambda: versions.shows(number))
        return number

    def write_cache(self) -> None:
        """Write the cache of the version that the model is, if that is the newest one of its folder."""
        versions, state = self._versions, self._current()
        number = state.version
        saved = number is not None and not state.history.unsaved() and state.on_disk is None
        if versions is None or number is None or not saved or not versions.shows(number):
            return
        parts = state.copy().parts
        keys = cache_keys(versions.manifest(number), parts.configuration.method)
        versions.cache.write(_contents(keys, parts, state.asked.answers()), lambda: versions.shows(number))

    def wait(self) -> None:
        """Until the cache of the folder is written."""
        self._cache_thread.wait()

    @classmethod
    def load(
        cls,
        folder: Any,
        *,
        version: int | None = None,
        device: str = "cpu",
        use: FolderUse = FolderUse(),  # noqa: B008  # it is frozen
    ) -> "GraphClassifier":
        """The newest version of a model, or an older one; what it consists of is read when it is needed.

        use: of a model on a graph folder, where that is and what may be used to compute on it, if it is not as it was.
        """
        return cls.from_version(Versions(folder, use), version, device=device)

    @classmethod
    def from_version(
        cls, versions: Versions, version: int | None = None, *, device: str = "cpu", whole: bool = False
    ) -> "GraphClassifier":
        """The same. whole: read and verify everything."""
        stored = versions.load(version, device=device)
        if whole:
            stored.verify()
        model = cls.from_parts(stored.parts, device=device)
        history = versions.stored_history(stored.manifest)
        # Whoever is about to change a model leaves the cache to the next reader.
        keep = None if whole else model._keep_cache
        model._hold(ModelState.of_version(stored, history, keep), versions)
        return model

    def bytes_read(self) -> int:
        """How many bytes of its folder were read, the cache included."""
        return 0 if self._versions is None else self._versions.counter.read

    def _keep_cache(self, stored: StoredVersion, answers: Answers) -> None:
        """Let the next reader find what had to be computed."""
        versions = self._versions
        with suppress(InputError, OSError):  # the answer is there; only the next reader has less
            if versions is not None and versions.shows(stored.version):
                contents = _contents(stored.keys, stored.parts, answers)
                self._cache_thread.start(versions.cache, contents, lambda: versions.shows(stored.version))


def _contents(keys: CacheKeys, parts: ModelParts, answers: Answers) -> CacheContents:
    table = parts.learner.embeddings(parts.graph.visible)
    readings = Readings(answers.strangeness, answers.temperatures)
    return CacheContents(keys, parts.graph.ids, table, answers.scores, readings)
