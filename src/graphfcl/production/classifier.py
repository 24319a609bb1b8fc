"""The entry point of ``production``: a classifier on a growing graph, fitted once and taught classes later.

:class:`GraphClassifier` fits a model, changes its graph, and saves and loads it. Its bases are :class:`TeachableModel`
(``teaching.py``) for changes of labels and classes, :class:`AnsweringModel` (``answering.py``) for queries, and
:class:`LiveModel` (``changes/live_model.py``), which holds the state.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from graphfcl.defaults import MODEL_METHOD
from graphfcl.errors import InputError
from graphfcl.graph.ids import ClassLabel
from graphfcl.methods import SILENT, Learner, Progress
from graphfcl.methods.progress import progress_of
from graphfcl.production.answers.answers import ModelAnswers
from graphfcl.production.graph.place import AS_BEFORE, FolderUse
from graphfcl.production.model.parameters import changed_parameters, refuse_targets, with_settings
from graphfcl.production.model.parts import ModelParts, list_of_names, make_configuration
from graphfcl.production.model.state import AnsweringLearner, ModelState
from graphfcl.production.model.versions import Versions
from graphfcl.production.teaching import TeachableModel

if TYPE_CHECKING:  # predictions do not import what only a change needs
    from graphfcl.production.changes.refitting import Refit
    from graphfcl.production.model.fit_checkpoints import FitCheckpoints


class GraphClassifier(TeachableModel):
    """A classifier on a growing graph, in scikit-learn's manner.

    The constructor's arguments are the whole configuration; learned state ends in ``_``.

    method: the name of a method, or a learner class, which may be your own. settings: those that differ from its
    defaults.
    way, shot: the number of classes and of supports per class that a session is expected to bring. seed: makes a fit
    repeatable.
    max_loss: a change that costs older classes more balanced accuracy than this on validation nodes leaves a warning.
    standardise: dense features get mean 0 and deviation 1 over the train nodes; the model keeps both.

    Classes and ids are the user's own. If those of the fit are integers, ``predict`` and all else that names a class
    give integers, also after saving and loading; wherever a class is taken, 7, 7.0 and "7" are then the same class, and
    a later class may have a name. Truth values are the classes 0 and 1, and a negative number is a node without a
    label. Every change is all or nothing: after an error the model is what it was. Threads may share a model: readers
    see the state before a change until it is complete, and writers wait for each other.
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
        super().__init__(
            make_configuration(
                method, settings, way=way, shot=shot, seed=seed, max_loss=max_loss, standardise=standardise
            ),
            device=device,
        )

    def __repr__(self) -> str:
        if self._state is None:
            return f"GraphClassifier({self.method!r}, not fitted)"
        return f"GraphClassifier({self.method!r}, {len(self.classes_)} classes, {self._current().counts()[0]:,} nodes)"

    # Parameters

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's arguments by name. deep: also every setting of the method, as ``settings__NAME``."""
        parameters = {**self.configuration.parameters(), "settings": dict(self.settings), "device": self.device}
        return with_settings(parameters) if deep else parameters

    def set_params(self, **changes: Any) -> "GraphClassifier":
        """Change some of them, all or none; after a fit only ``way``, ``shot`` and ``max_loss``.

        ``settings__NAME`` changes one setting of the method: ``settings__pretraining__epochs=5``.
        """
        with self._changing:
            parameters = self.get_params(deep=False)
            changed = type(self)(**changed_parameters(parameters, changes, fitted=self._state is not None))
            for name in parameters:
                setattr(self, name, getattr(changed, name))
        return self

    def __sklearn_clone__(self) -> "GraphClassifier":
        """The same classifier, not fitted: what ``sklearn.base.clone`` returns."""
        return type(self)(**self.get_params(deep=False))

    _estimator_type = "classifier"  # what scikit-learn before 1.6 asks for in place of tags

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, Tags, TargetTags

        return Tags("classifier", TargetTags(required=False), classifier_tags=ClassifierTags())

    # Training

    def fit(
        self,
        graph: object,
        y: None = None,
        *,
        hide_classes: Sequence[ClassLabel] = (),
        progress: bool | Progress = SILENT,
        checkpoints: "FitCheckpoints | None" = None,
    ) -> "GraphClassifier":
        """Train on all labelled nodes of a graph; nodes without a label are visible, too.

        graph: in memory, or a :class:`GraphFolder` that stays on disk (``docs/large-models.md``); PyG data and networkx
        graphs are converted as by :func:`from_pyg` and :func:`from_networkx`. hide_classes: classes whose nodes are
        treated as unlabelled, to be learned later. progress: True prints it. checkpoints: where a fit that is stopped
        leaves its state, to be resumed. y: None; a graph holds its classes.
        """
        from graphfcl.graph.convert import as_graph
        from graphfcl.methods.blocks.damaged_files import DamagedFile, computed_again
        from graphfcl.production.graph import kind_of
        from graphfcl.production.model.fit_checkpoints import FitCheckpoints
        from graphfcl.production.model.fitting import Fitted, fit_model

        refuse_targets(y)
        source, hidden = as_graph(graph, "fit"), list_of_names(hide_classes, "the classes to hide")
        configuration = replace(self.configuration, columns=source.columns)
        kept = checkpoints or FitCheckpoints()
        with self._changing, kind_of(source).fitting(source, kept.has_states), progress_of(progress) as watching:
            if self._state is not None:
                raise InputError("this classifier is fitted: make a new one to fit it to another graph.")

            def fit() -> Fitted:
                try:
                    return fit_model(source, configuration, hidden, self.device, watching, kept)
                except DamagedFile:
                    kept.resume = True  # the state of the learner is intact
                    raise

            fitted = computed_again(fit)
            self._begin(fitted.parts, fitted.change, watching)
        return self

    def refit(self, graph: object = None, *, anyway: bool = False, progress: bool | Progress = SILENT) -> "Refit":
        """Train again on the current graph and labels, with the same configuration; keep the result if it is better.

        Classes that have enough labels by now become classes of session 0; word weights and standardisation are fitted
        again. Ids, numbers, names and who gave a label stay. The new model is compared with this one class by class on
        nodes that neither was trained on (``changes/refitting.py``), and replaces it if its balanced accuracy there is
        higher, or with ``anyway``. Otherwise nothing changes.

        graph: a new graph with the same ids, for features or edges that the model does not have, such as new words.
        Labels of the model win over those of the graph; further labels of the graph are used too, except labels that
        were taken back and classes that were retired.
        """
        from graphfcl.graph.convert import as_graph
        from graphfcl.production.changes.refitting import refit_draft

        brought = None if graph is None else as_graph(graph, "refit")
        with self._change() as draft, progress_of(progress) as watching:
            return refit_draft(draft, brought, anyway=anyway, device=self.device, progress=watching)

    # The graph

    def add_nodes(
        self,
        ids: Sequence[Any],
        features: Any = None,
        *,
        texts: Sequence[str] | None = None,
        on_existing: str = "refuse",
    ) -> "GraphClassifier":
        """Add nodes, with this graph's feature columns, or with texts if it was made from text; without edges yet."""
        return self.grow(nodes=(ids, features, texts), on_existing=on_existing)

    def add_edges(
        self,
        source: Sequence[Any],
        target: Sequence[Any],
        weights: np.ndarray | None = None,
        *,
        on_existing: str = "refuse",
    ) -> "GraphClassifier":
        """Add edges between existing nodes, given by the ids of their ends."""
        return self.grow(edges=(source, target, weights), on_existing=on_existing)

    def grow(
        self, *, nodes: Any = None, edges: Any = None, on_existing: str = "refuse", unknown_ends: str | None = None
    ) -> "GraphClassifier":
        """Add nodes (ids, features, texts) and edges (sources, targets, weights) in one change.

        Either may be a DataFrame, or the Path of a table, with the columns of the tables of the fit, or ``node`` and
        the feature columns; ``source`` and ``target``. A node or an edge that is there with the same features or weight
        changes nothing. on_existing: ``refuse`` all if others are there, ``skip`` these, or ``update`` their features
        and weights; a row of nodes replaces all features of its node. unknown_ends: ``refuse`` edges that lead to no
        node, or ``skip`` them; by default as for the tables of the fit.
        """
        from graphfcl.production.changes.graph_changes import as_new_edges, as_new_nodes, grown

        with self._change() as draft:
            columns = self._columns()
            more = as_new_nodes(nodes, draft.graph, columns), as_new_edges(edges, columns)
            repeated, usual = (columns.repeated, columns.unknown_ends) if columns else ("max", "refuse")
            draft.change_graph(grown(draft.graph, *more, on_existing, repeated, unknown_ends or usual))
        return self

    def remove_edges(self, source: Sequence[Any], target: Sequence[Any]) -> "GraphClassifier":
        """Remove edges, given by the ids of their ends."""
        return self.shrink(edges=(source, target))

    def remove_nodes(self, ids: Sequence[Any]) -> "GraphClassifier":
        """Remove nodes with their edges and labels; a class that loses its last label is retired."""
        return self.shrink(nodes=ids)

    def shrink(self, *, nodes: Any = None, edges: Any = None) -> "GraphClassifier":
        """Remove edges (sources, targets) and nodes (ids) in one change; either may be a DataFrame."""
        from graphfcl.production.changes.graph_changes import as_new_edges, shrunk

        with self._change() as draft:
            ends = as_new_edges(edges, self._columns())
            draft.change_graph(shrunk(draft.graph, self._ids(nodes), None if ends is None else ends[:2]))
        return self

    # Keeping

    @classmethod
    def from_parts(cls, parts: ModelParts, *, device: str = "cpu") -> "GraphClassifier":
        """A model of these parts, with an empty history."""
        model = cls(**parts.configuration.parameters(), device=device)
        model._hold(ModelState(AnsweringLearner(parts)))
        return model

    def save(self, folder: Any, *, wait: float = 60.0) -> int:
        """Write the model as the folder's next version; returns its number.

        Refused if the folder has moved on since the model was loaded. See :class:`ModelFolder`. The cache is written
        afterwards, in a thread; :meth:`wait` waits for it, and so does Python before it ends.
        """
        self._current()
        versions = self._versions
        if versions is None or versions.path.absolute() != Path(folder).absolute():
            versions = Versions(folder)
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
        parts = replace(state.copy().parts, configuration=self.configuration)
        manifest = versions.write(parts, state.history, loaded=state.version, request=request)
        self._saved(state, manifest["version"], versions)
        # Answers on disk are those that were computed; the cache of a model in memory always has all.
        answers = state.answering.computed if parts.graph.passes or not write_cache else state.answering.answers()
        if answers is not None:
            versions.keep_answers(manifest, parts, answers, versions.cache.start if write_cache else None)
        return manifest["version"]

    def write_cache(self) -> None:
        """Write the cache of the version that the model is, if that is the newest one of its folder."""
        state, versions = self._current(), self._versions
        if versions is None or state.version is None or state.history.unsaved() or state.passes:
            return
        if versions.shows(state.version):
            manifest, answers = versions.manifest(state.version), state.answering.answers()
            versions.keep_answers(manifest, state.copy().parts, answers, versions.cache.write)

    def wait(self) -> None:
        """Until the cache of the folder is written."""
        if self._versions is not None:
            self._versions.cache.wait()

    @classmethod
    def load(
        cls, folder: Any, *, version: int | None = None, device: str = "cpu", use: FolderUse = AS_BEFORE
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

        def keep(answers: ModelAnswers) -> None:
            # A model that is about to change leaves the cache to the next reader, which computes them again.
            with suppress(InputError, OSError):
                versions.keep_answers(stored.manifest, stored.parts, answers, None if whole else versions.cache.start)

        model = cls.from_parts(stored.parts, device=device)
        answering = AnsweringLearner(stored.parts, stored=stored, keep=keep)
        model._hold(ModelState(answering, versions.stored_history(stored.manifest), stored.version), versions)
        return model

    def bytes_read(self) -> int:
        """How many bytes of its folder were read, the cache included."""
        return 0 if self._versions is None else self._versions.bytes_read()
