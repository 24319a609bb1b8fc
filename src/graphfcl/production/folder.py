"""The folder of one model: locks it, hands out classifiers and keeps what becomes of them."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from graphfcl.errors import InputError
from graphfcl.methods import SILENT, Progress
from graphfcl.methods.progress import progress_of
from graphfcl.production.classifier import GraphClassifier
from graphfcl.production.graph.place import AS_BEFORE, FolderUse, work_folder
from graphfcl.production.labels.history import Entry
from graphfcl.production.model.fit_checkpoints import FitCheckpoints
from graphfcl.production.model.pruning import Pruned, prune
from graphfcl.production.model.versions import FITTING, Versions
from graphfcl.production.store.database import Busy

if TYPE_CHECKING:
    from graphfcl.graph.interfaces import AnyGraph
    from graphfcl.production.changes.effects import Effect
    from graphfcl.production.changes.refitting import Refit
    from graphfcl.production.erasing import Erased
    from graphfcl.production.model.card import ModelCard
    from graphfcl.production.model.info import ModelInfo


class _Free(InputError):
    """No model has claimed a folder."""


class ModelFolder:
    """A model as numbered versions on disk; ``versions.py`` says how they are kept.

    use: of a model on a graph folder, where that is and what may be used to compute on it, if it is not as it was.
    """

    def __init__(self, path: str | Path, use: FolderUse = AS_BEFORE) -> None:
        self.path, self._use = Path(path), use
        self._versions = Versions(self.path, use)

    # Reading

    def exists(self) -> bool:
        """Whether there is a model in the folder."""
        return self._versions.exists()

    def current(self) -> int:
        """The number of the newest version."""
        return self._versions.current()

    def manifest(self, version: int) -> dict[str, Any]:
        """The verified manifest of a version."""
        return self._versions.manifest(version)

    def load(self, version: int | None = None, *, device: str = "cpu") -> GraphClassifier:
        """A version, the newest if none is named."""
        return GraphClassifier.load(self.path, version=version, device=device, use=self._use)

    def history(self, upto: int | None = None) -> list[Entry]:
        """Every change, oldest first, with the version that holds it."""
        return self._versions.history(upto)

    def info(self, *, full: bool = False) -> "ModelInfo":
        """What the newest version is, and whether a refit is due. See :meth:`GraphClassifier.info`."""
        model = self.load()
        info = model.info(full=full)
        model.wait()
        return info

    def card(self) -> "ModelCard":
        """A model card of the newest version. See :meth:`GraphClassifier.card`."""
        model = self.load()
        card = model.card()
        model.wait()
        return card

    def bytes_read(self) -> int:
        """How many bytes this object has read of the folder; a model that it loaded counts for itself."""
        return self._versions.bytes_read()

    # Writing

    def writing(self, wait: float = 60.0) -> AbstractContextManager[Any]:
        """Only one process writes at a time; another waits so many seconds, then it is refused."""
        return self._versions.writing(wait)

    @contextmanager
    def editing(
        self, wait: float = 60.0, *, device: str = "cpu", write_cache: bool = True
    ) -> Iterator[GraphClassifier]:
        """The newest version, to be changed; what was changed becomes the next version, or nothing does.

        write_cache: whether a thread of the model writes the cache afterwards; otherwise the next reader does.
        """
        if not self.exists():
            raise InputError(f"{self.path} holds no model: make one with `graphfcl fit --model {self.path}`.")
        with self.writing(wait):
            model = GraphClassifier.from_version(self._versions, device=device, whole=True)
            yield model
            if model.history.unsaved():
                model.write_version(self._versions, write_cache=write_cache)

    def dry_run(self, apply: Callable[[GraphClassifier], object], *, device: str = "cpu") -> "Effect":
        """What a change of the newest version would do. Nothing is written, and no other process waits.

        apply: makes the change on a copy of the model. Whatever refuses the change raises here, too.
        """
        from graphfcl.production.changes.effects import Effect

        with self._traceless() as versions:
            model = GraphClassifier.from_version(versions, device=device, whole=True)
            before = model.snapshot()
            if before.has_graph_folder:
                stored = self.load(device=device)
                before = stored if stored.has_answers else before
            apply(model)
            return Effect.of(before._current(), model._current(), model.history.unsaved())

    def dry_rollback(self, version: int, *, device: str = "cpu") -> "Effect":
        """What :meth:`rollback` would do."""
        from graphfcl.production.changes.effects import Effect

        with self._traceless() as versions:
            change = versions.rollback_entry(versions.load(version))
            before, after = (
                GraphClassifier.from_version(versions, number, device=device, whole=True) for number in (None, version)
            )
            return Effect.of(before._current(), after._current(), [{"version": None, **change}])

    @contextmanager
    def _traceless(self) -> Iterator[Versions]:
        """The versions, to compute with and to write nothing: a temporary work folder is used for a graph folder.

        It lies in the work folder that the user named, or where the system keeps temporary files.
        """
        if work_folder(self.path) is None:
            yield self._versions
            return
        with TemporaryDirectory(prefix="graphfcl-", dir=self._use.work) as work:
            yield Versions(self.path, replace(self._use, work=Path(work)))

    def check_free(self) -> None:
        """Refuse a folder that holds a model, or that cannot be written, before anything is computed for it."""
        with suppress(_Free), self.creating():
            raise _Free

    @contextmanager
    def creating(self, wait: float = 0.0, *, write_cache: bool = True) -> Iterator[Callable[[GraphClassifier], int]]:
        """Claim a folder without a model for a new one, as long as the context lasts; a second claim is refused.

        Gives the function that writes the new model there as version 1. If it is refused, nothing is left behind,
        unless the fit can go on from what it has.
        """
        from graphfcl.production.graph.work_files import LeavingNothing

        self._refuse_model()
        tidy = LeavingNothing(self.path, keep=self.has_fit)
        with ExitStack() as stack:
            try:
                stack.enter_context(self._versions.writing(wait))
            except Busy as error:
                raise InputError(
                    f"{self.path} is being made by another process: choose another folder, or wait until it is done."
                ) from error
            stack.enter_context(tidy)
            self._refuse_model()  # it may have been finished a moment ago
            yield lambda model: model.write_version(self._versions, write_cache=write_cache)

    def has_fit(self) -> bool:
        """Whether there is a model, or a fit that was stopped and can go on."""
        return self.exists() or any((self.path / FITTING).glob("*.safetensors"))

    def fit_checkpoints(self, *, resume: bool) -> FitCheckpoints:
        """Where a fit of this model leaves what it has. resume: go on from what one that was stopped left there."""
        return FitCheckpoints(self.path / FITTING, resume=resume)

    def was_just_fitted(self) -> bool:
        """Whether a fit was stopped after it had written its model, before it removed what it had left on the way."""
        return self.exists() and (self.path / FITTING).is_dir()

    def _refuse_model(self) -> None:
        if self.exists():
            raise InputError(
                f"{self.path} holds a model already: choose another folder, or `graphfcl learn` to teach it more."
            )

    def save(self, model: GraphClassifier, *, wait: float = 60.0) -> int:
        """Write a model as the next version. Refused if the folder has moved on since the model was loaded."""
        return model.save(self.path, wait=wait)

    def rollback(self, version: int, *, wait: float = 60.0) -> int:
        """Write a new version equal to an old one; returns its number. Works also if newer versions are damaged."""
        return self._versions.rollback(version, wait=wait)

    def refit(
        self,
        graph: "AnyGraph | None" = None,
        *,
        anyway: bool = False,
        progress: bool | Progress = SILENT,
        device: str = "cpu",
        wait: float = 60.0,
    ) -> "Refit":
        """Train again on the current graph and labels; the next version if it is better, or ``anyway``.

        See :meth:`GraphClassifier.refit`. No other process writes meanwhile; all may read.
        """
        with self.editing(wait, device=device, write_cache=False) as model, progress_of(progress) as watching:
            return model.refit(graph, anyway=anyway, progress=watching)

    def prune(self, keep: int, *, wait: float = 60.0, dry_run: bool = False) -> Pruned:
        """Remove all versions but the newest so many, and the chunks that none of these needs.

        dry_run: only report what would be removed; nothing is written.
        """
        return prune(self._versions, keep, wait, dry_run=dry_run)

    def erase(
        self, nodes: Sequence[Any], *, wait: float = 60.0, device: str = "cpu", dry_run: bool = False
    ) -> "Erased":
        """Remove nodes, their labels, features, edges and what was said of them from every version and from the cache.

        nodes: ids of nodes that some version has, or tells of. All or nothing; what says how much was removed also says
        what the weights still remember. dry_run: only report what would be removed; nothing is written.
        """
        from graphfcl.production.erasing import dry_erase, erase

        if dry_run:
            with self._traceless() as versions:
                return dry_erase(versions, nodes, device=device)
        return erase(self._versions, nodes, wait=wait, device=device)
