"""The entry point of ``production``: a classifier on a growing graph, fitted once and taught new classes later.

:class:`GraphClassifier` fits a model, saves and loads it. It inherits changes of the graph from :class:`GrowingModel`
(``growing.py``), changes of labels and classes from :class:`TeachableModel` (``teaching.py``), advice from
:class:`AdvisingModel` (``advising.py``), queries from :class:`AnsweringModel` (``answering.py``), and the state of the
model from :class:`LiveModel` (``changes/live_model.py``).
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphfcl.defaults import MODEL_METHOD
from graphfcl.errors import InputError
from graphfcl.graph.ids import ClassLabel
from graphfcl.methods import SILENT, Learner, Progress
from graphfcl.methods.progress import progress_of
from graphfcl.production.answers.answers import ModelAnswers
from graphfcl.production.graph.place import AS_BEFORE, FolderUse
from graphfcl.production.growing import GrowingModel
from graphfcl.production.model.parameters import changed_parameters, refuse_targets, with_settings
from graphfcl.production.model.parts import ModelParts, list_of_names, make_configuration
from graphfcl.production.model.state import AnsweringLearner, ModelState
from graphfcl.production.model.versions import Versions

if TYPE_CHECKING:  # predictions do not import what only a change needs
    from graphfcl.production.changes.refitting import Refit
    from graphfcl.production.model.fit_checkpoints import FitCheckpoints


class GraphClassifier(GrowingModel):
    """Node classifier on a growing graph, with scikit-learn's verbs.

    The constructor's arguments are the whole configuration. Learned attributes end in ``_``.

    - Classes and ids are the user's own. If the classes of the fit are integers, every method that returns a class
      returns integers, also after saving and loading. 7, 7.0 and "7" are then the same class, and a later class may be
      a text.
    - Truth values are the classes 0 and 1. A negative number means that a node has no label.
    - Every change is all or nothing: after an error the model is what it was before.
    - Threads may share a model. Readers see the state before a change until the change is complete; writers wait for
      each other.

    Args:
        method: Name of a method, or a subclass of :class:`Learner`, which may be your own. ``graphfcl methods`` lists
            the names.
        settings: Settings of the method that differ from its defaults, such as ``{"pretraining.epochs": 5}``.
        way: Number of classes that a session is expected to bring.
        shot: Number of labelled nodes (supports) per class that a session is expected to bring.
        seed: Seed of the random generators. The same seed repeats a fit.
        max_loss: A change that costs older classes more balanced accuracy than this share on validation nodes adds a
            warning to the history.
        standardise: Scale dense features to mean 0 and standard deviation 1 over the training nodes. The model stores
            both and scales later nodes with them.
        device: PyTorch device that computes, such as ``"cpu"`` or ``"cuda"``.

    Attributes:
        classes_: Classes that the model can predict, in the order in which they were learned.
        node_ids_: (n,) ids of all nodes.
        graph_: Graph of the model.
        learner_: The fitted learner. Do not change it: other threads may use it.
        label_store_: Labelled nodes and their classes.
        calibration_: How scores become probabilities, prediction sets and unknown scores.
        history: All changes, oldest first.
        version: Version of the folder that the model was last loaded from or saved to; None before that.

    Raises:
        InputError: If an argument is unusable, or the method is unknown.

    Examples:
        >>> from graphfcl import GraphClassifier, load_dataset
        >>> graph, _ = load_dataset("synthetic:nodes=200,edges=800,classes=6,features=30")
        >>> model = GraphClassifier("sgc-ridge").fit(graph, hide_classes=["class-05"])
        >>> model.predict([0, 1, 2]).tolist()
        ['class-01', 'class-00', 'class-03']
        >>> model = model.learn({"class-05": graph.node_ids[graph.labels == 5][:5]})
        >>> len(model.classes_)
        6
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
        """Return the constructor's arguments by name.

        Args:
            deep: Also return every setting of the method, as ``settings__NAME``.

        Returns:
            Values by name.
        """
        parameters = {**self.configuration.parameters(), "settings": dict(self.settings), "device": self.device}
        return with_settings(parameters) if deep else parameters

    def set_params(self, **changes: Any) -> "GraphClassifier":
        """Change parameters, all of them or, after an error, none.

        Args:
            **changes: New values by name. ``settings__NAME`` changes one setting of the method, such as
                ``settings__pretraining__epochs=5``. A fitted classifier accepts only ``way``, ``shot`` and
                ``max_loss``.

        Returns:
            The classifier.

        Raises:
            InputError: If a name is unknown, a value is unusable, or a fitted classifier cannot change the parameter.
        """
        with self._changing:
            parameters = self.get_params(deep=False)
            changed = type(self)(**changed_parameters(parameters, changes, fitted=self._state is not None))
            for name in parameters:
                setattr(self, name, getattr(changed, name))
        return self

    def __sklearn_clone__(self) -> "GraphClassifier":
        """Return the same classifier, not fitted, for ``sklearn.base.clone``."""
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
        """Train on all labelled nodes of a graph.

        Nodes without a label take part in training, too: their features and edges are visible.

        Args:
            graph: Graph in memory, or a :class:`GraphFolder`, which stays on disk (see ``docs/large-models.md``). PyG
                data and networkx graphs are converted as by :func:`from_pyg` and :func:`from_networkx`.
            y: Always None: a graph holds its classes. The argument exists for scikit-learn.
            hide_classes: Classes whose nodes are treated as unlabelled, to be learned later.
            progress: True prints the progress; a :class:`Progress` receives it.
            checkpoints: Folder in which the fit stores its state from time to time, so that an interrupted fit can be
                resumed. See :meth:`ModelFolder.fit_checkpoints`.

        Returns:
            The fitted classifier.

        Raises:
            InputError: If the classifier is fitted already, or the graph cannot be used, for example because it has
                fewer than two classes with enough labels.
            DivergenceError: If training diverges.
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
        """Train again on the current graph and labels, and keep the new model if it is better.

        The configuration stays. Classes that have enough labels by now become classes of session 0; word weights and
        standardisation are computed again. Ids, node numbers, class names and who gave each label stay.

        The new model is compared with the current one, class by class, on nodes that neither was trained on
        (``changes/refitting.py``). It replaces the current one if its balanced accuracy on these nodes is higher.
        Otherwise nothing changes.

        Args:
            graph: New graph with the same ids, for features or edges that the model does not have, such as new words.
                Labels of the model take precedence over labels of the graph. Further labels of the graph are used, too,
                except labels that were taken back and classes that were retired.
            anyway: Keep the new model even if it is not better.
            progress: True prints the progress; a :class:`Progress` receives it.

        Returns:
            The comparison, and whether the new model is used.

        Raises:
            InputError: If the classifier is not fitted, or the graph does not fit the model.
        """
        from graphfcl.graph.convert import as_graph
        from graphfcl.production.changes.refitting import refit_draft

        new_graph = None if graph is None else as_graph(graph, "refit")
        with self._change() as draft, progress_of(progress) as watching:
            return refit_draft(draft, new_graph, anyway=anyway, device=self.device, progress=watching)

    # Keeping

    @classmethod
    def from_parts(cls, parts: ModelParts, *, device: str = "cpu") -> "GraphClassifier":
        """Make a model of existing parts, with an empty history.

        Args:
            parts: Configuration, graph, learner, labels and calibration.
            device: PyTorch device that computes.

        Returns:
            The model.
        """
        model = cls(**parts.configuration.parameters(), device=device)
        model._hold(ModelState(AnsweringLearner(parts)))
        return model

    def save(self, folder: Any, *, wait: float = 60.0) -> int:
        """Write the model as the next version of a folder.

        The cache of the folder is written afterwards, in a thread. :meth:`wait` waits for it, and so does Python before
        it exits.

        Args:
            folder: Path of a :class:`ModelFolder`. A folder that does not exist is made.
            wait: Seconds to wait while another process writes.

        Returns:
            The number of the new version. If nothing changed since the last version, its number.

        Raises:
            InputError: If the folder has a newer version than the one that the model was loaded from, another process
                writes for longer than ``wait``, or the folder cannot be written.
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

        Args:
            versions: Versions of the folder.
            write_cache: Write the cache afterwards, in a thread.
            request: JSON values that the entry of the last change stores about the request that caused it.

        Returns:
            The number of the new version.
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
        """Write the cache of the version that this model equals, if it is the newest one of its folder."""
        state, versions = self._current(), self._versions
        if versions is None or state.version is None or state.history.unsaved() or state.passes:
            return
        if versions.shows(state.version):
            manifest, answers = versions.manifest(state.version), state.answering.answers()
            versions.keep_answers(manifest, state.copy().parts, answers, versions.cache.write)

    def wait(self) -> None:
        """Wait until the cache of the folder is written."""
        if self._versions is not None:
            self._versions.cache.wait()

    @classmethod
    def load(
        cls, folder: Any, *, version: int | None = None, device: str = "cpu", use: FolderUse = AS_BEFORE
    ) -> "GraphClassifier":
        """Load a model from a folder.

        Graph, learner and labels are read when they are first needed.

        Args:
            folder: Path of a :class:`ModelFolder`.
            version: Number of a version; None: the newest one.
            device: PyTorch device that computes.
            use: For a model on a graph folder: where that folder is and which resources may be used, if that differs
                from the last time.

        Returns:
            The model.

        Raises:
            InputError: If the folder has no such version, or the version is damaged.
        """
        return cls.from_version(Versions(folder, use), version, device=device)

    @classmethod
    def from_version(
        cls, versions: Versions, version: int | None = None, *, device: str = "cpu", whole: bool = False
    ) -> "GraphClassifier":
        """Load a model from opened versions; see :meth:`load`.

        Args:
            versions: Versions of a folder.
            version: Number of a version; None: the newest one.
            device: PyTorch device that computes.
            whole: Read and verify everything now.

        Returns:
            The model.

        Raises:
            InputError: If there is no such version, or the version is damaged.
        """
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
        """Return the number of bytes read from the folder, including its cache."""
        return 0 if self._versions is None else self._versions.bytes_read()
