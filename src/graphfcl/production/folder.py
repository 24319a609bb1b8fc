"""The folder of one model: locks it, loads its versions, and writes changed models as new versions."""

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
    """Raised by :meth:`ModelFolder.check_free` to leave a folder that can be claimed."""


class ModelFolder:
    """Model on disk as numbered, immutable versions.

    ``production/model/versions.py`` describes the files. One process writes at a time; any number may read.

    Args:
        path: Path of the folder.
        use: For a model on a graph folder: where that folder is and which resources may be used, if that differs from
            the last time.

    Attributes:
        path: Path of the folder.

    Examples:
        >>> from graphfcl import GraphClassifier, ModelFolder, load_dataset
        >>> graph, _ = load_dataset("synthetic:nodes=200,edges=800,classes=6,features=30")
        >>> folder = ModelFolder("model")
        >>> folder.save(GraphClassifier("sgc-ridge").fit(graph))
        1
        >>> with folder.editing() as model:
        ...     model = model.rename("class-05", "shoes")
        >>> folder.rollback(1)
        3
        >>> [entry["what"] for entry in folder.history()]
        ['fit', 'rename', 'rollback']
    """

    def __init__(self, path: str | Path, use: FolderUse = AS_BEFORE) -> None:
        self.path, self._use = Path(path), use
        self._versions = Versions(self.path, use)

    # Reading

    def exists(self) -> bool:
        """Return whether the folder holds a model."""
        return self._versions.exists()

    def current(self) -> int:
        """Return the number of the newest version.

        Raises:
            InputError: If the folder holds no model.
        """
        return self._versions.current()

    def manifest(self, version: int) -> dict[str, Any]:
        """Return the verified manifest of a version.

        Args:
            version: Number of the version.

        Returns:
            The manifest as JSON values: parts, changes and checksums of the version.

        Raises:
            InputError: If there is no such version, or it is damaged.
        """
        return self._versions.manifest(version)

    def load(self, version: int | None = None, *, device: str = "cpu") -> GraphClassifier:
        """Load a version as a classifier.

        Args:
            version: Number of the version; None: the newest one.
            device: PyTorch device that computes.

        Returns:
            The model.

        Raises:
            InputError: If there is no such version, or it is damaged.
        """
        return GraphClassifier.load(self.path, version=version, device=device, use=self._use)

    def history(self, upto: int | None = None) -> list[Entry]:
        """Return every change, oldest first, with the version that holds it.

        Args:
            upto: Last version to include; None: the newest one.

        Returns:
            Entries of the history as JSON values.
        """
        return self._versions.history(upto)

    def info(self, *, full: bool = False) -> "ModelInfo":
        """Count what the newest version holds, and check whether a refit is due.

        Args:
            full: See :meth:`GraphClassifier.info`.

        Returns:
            Counts, sizes on disk, and signs that the model has aged.

        Raises:
            InputError: If the folder holds no model.
        """
        model = self.load()
        info = model.info(full=full)
        model.wait()
        return info

    def card(self) -> "ModelCard":
        """Return a model card of the newest version. See :meth:`GraphClassifier.card`.

        Raises:
            InputError: If the folder holds no model.
        """
        model = self.load()
        card = model.card()
        model.wait()
        return card

    def bytes_read(self) -> int:
        """Return the bytes that this object has read from the folder; models that it loaded count their own."""
        return self._versions.bytes_read()

    # Writing

    def writing(self, wait: float = 60.0) -> AbstractContextManager[Any]:
        """Hold the lock of the folder (context manager): only one process writes at a time.

        Args:
            wait: Seconds to wait for another process.

        Returns:
            A context manager.

        Raises:
            InputError: If another process writes for longer, or the folder cannot be written.
        """
        return self._versions.writing(wait)

    @contextmanager
    def editing(
        self, wait: float = 60.0, *, device: str = "cpu", write_cache: bool = True
    ) -> Iterator[GraphClassifier]:
        """Change the newest version (context manager).

        Gives the model. When the ``with`` block ends, its changes are written as the next version. After an error
        inside, nothing is written. No other process can write meanwhile.

        Args:
            wait: Seconds to wait for another process that writes.
            device: PyTorch device that computes.
            write_cache: Write the cache afterwards, in a thread of the model; otherwise the next reader writes it.

        Returns:
            A context manager that gives the model.

        Raises:
            InputError: If the folder holds no model, is damaged, or another process writes for longer than ``wait``.
        """
        if not self.exists():
            raise InputError(f"{self.path} holds no model: make one with `graphfcl fit --model {self.path}`.")
        with self.writing(wait):
            model = GraphClassifier.from_version(self._versions, device=device, whole=True)
            yield model
            if model.history.unsaved():
                model.write_version(self._versions, write_cache=write_cache)

    def dry_run(self, apply: Callable[[GraphClassifier], object], *, device: str = "cpu") -> "Effect":
        """Compute what a change of the newest version would do; nothing is written.

        Other processes need not wait.

        Args:
            apply: Function that makes the change on a copy of the model.
            device: PyTorch device that computes.

        Returns:
            Classes and accuracy before and after, and the nodes whose predicted class changes.

        Raises:
            InputError: If the change would be refused.
            AccuracyLossError: If a guard would refuse the change.
        """
        from graphfcl.production.changes.effects import Effect

        with self._read_only_versions() as versions:
            model = GraphClassifier.from_version(versions, device=device, whole=True)
            before = model.snapshot()
            if before.has_graph_folder:
                stored = self.load(device=device)
                before = stored if stored.has_answers else before
            apply(model)
            return Effect.of(before._current(), model._current(), model.history.unsaved())

    def dry_rollback(self, version: int, *, device: str = "cpu") -> "Effect":
        """Compute what :meth:`rollback` would do; nothing is written.

        Args:
            version: Number of the version to go back to.
            device: PyTorch device that computes.

        Returns:
            Classes and accuracy before and after, and the nodes whose predicted class changes.

        Raises:
            InputError: If there is no such version, or it is damaged.
        """
        from graphfcl.production.changes.effects import Effect

        with self._read_only_versions() as versions:
            change = versions.rollback_entry(versions.load(version))
            before, after = (
                GraphClassifier.from_version(versions, number, device=device, whole=True) for number in (None, version)
            )
            return Effect.of(before._current(), after._current(), [{"version": None, **change}])

    @contextmanager
    def _read_only_versions(self) -> Iterator[Versions]:
        """Versions to compute with but not to write: a model on a graph folder uses a temporary work folder.

        The temporary folder lies in the work folder that the user named, or where the system keeps temporary files.
        """
        if work_folder(self.path) is None:
            yield self._versions
            return
        with TemporaryDirectory(prefix="graphfcl-", dir=self._use.work) as work:
            yield Versions(self.path, replace(self._use, work=Path(work)))

    def check_free(self) -> None:
        """Refuse a folder that holds a model or cannot be written, before anything is computed for it.

        Raises:
            InputError: If the folder holds a model, is being made by another process, or cannot be written.
        """
        with suppress(_Free), self.creating():
            raise _Free

    @contextmanager
    def creating(self, wait: float = 0.0, *, write_cache: bool = True) -> Iterator[Callable[[GraphClassifier], int]]:
        """Claim a folder without a model for a new one (context manager).

        If an error occurs inside, the folder is left as it was, except that an interrupted fit keeps the state from
        which it can be resumed.

        Args:
            wait: Seconds to wait for another process that writes.
            write_cache: Write the cache afterwards, in a thread of the model.

        Returns:
            A context manager. It gives a function that writes a new model as version 1 and returns that number.

        Raises:
            InputError: If the folder holds a model, is being made by another process, or cannot be written.
        """
        from graphfcl.production.graph.work_files import CleanUpOnRefusal

        self._refuse_model()
        cleanup = CleanUpOnRefusal(self.path, keep=self.has_fit)
        with ExitStack() as stack:
            try:
                stack.enter_context(self._versions.writing(wait))
            except Busy as error:
                raise InputError(
                    f"{self.path} is being made by another process: choose another folder, or wait until it is done."
                ) from error
            stack.enter_context(cleanup)
            self._refuse_model()  # again: another process may have finished one before we had the lock
            yield lambda model: model.write_version(self._versions, write_cache=write_cache)

    def has_fit(self) -> bool:
        """Return whether the folder holds a model, or an interrupted fit that can be resumed."""
        return self.exists() or any((self.path / FITTING).glob("*.safetensors"))

    def fit_checkpoints(self, *, resume: bool) -> FitCheckpoints:
        """Return the checkpoints with which a fit of this model stores its state, for ``fit(checkpoints=...)``.

        Args:
            resume: Resume from the state that an interrupted fit left there.

        Returns:
            The checkpoints.
        """
        return FitCheckpoints(self.path / FITTING, resume=resume)

    def was_just_fitted(self) -> bool:
        """Return whether a fit was interrupted after it had written its model, before it removed its checkpoints."""
        return self.exists() and (self.path / FITTING).is_dir()

    def _refuse_model(self) -> None:
        if self.exists():
            raise InputError(
                f"{self.path} holds a model already: choose another folder, or `graphfcl learn` to teach it more."
            )

    def save(self, model: GraphClassifier, *, wait: float = 60.0) -> int:
        """Write a model as the next version.

        Args:
            model: A fitted model.
            wait: Seconds to wait for another process that writes.

        Returns:
            The number of the new version.

        Raises:
            InputError: If the folder has a newer version than the one that the model was loaded from, another process
                writes for longer than ``wait``, or the folder cannot be written.
        """
        return model.save(self.path, wait=wait)

    def rollback(self, version: int, *, wait: float = 60.0) -> int:
        """Write a new version that equals an old one.

        This also works if newer versions are damaged.

        Args:
            version: Number of the old version.
            wait: Seconds to wait for another process that writes.

        Returns:
            The number of the new version.

        Raises:
            InputError: If there is no such version, it is damaged, or another process writes for longer than ``wait``.
        """
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
        """Train again on the current graph and labels, and write the next version if the new model is better.

        See :meth:`GraphClassifier.refit`. No other process can write meanwhile; all may read.

        Args:
            graph: New graph with the same ids; None: the graph of the model.
            anyway: Keep the new model even if it is not better.
            progress: True prints the progress; a :class:`Progress` receives it.
            device: PyTorch device that computes.
            wait: Seconds to wait for another process that writes.

        Returns:
            The comparison, and whether the new model is used.

        Raises:
            InputError: If the folder holds no model, the graph does not fit the model, or another process writes for
                longer than ``wait``.
        """
        with self.editing(wait, device=device, write_cache=False) as model, progress_of(progress) as watching:
            return model.refit(graph, anyway=anyway, progress=watching)

    def prune(self, keep: int, *, wait: float = 60.0, dry_run: bool = False) -> Pruned:
        """Remove old versions, and the data that no kept version needs.

        Args:
            keep: Number of newest versions to keep.
            wait: Seconds to wait for another process that writes.
            dry_run: Only report what would be removed.

        Returns:
            The removed versions, the kept versions, and the bytes freed.

        Raises:
            InputError: If ``keep`` is less than 1, a kept version is damaged, or another process writes for longer than
                ``wait``.
        """
        return prune(self._versions, keep, wait, dry_run=dry_run)

    def erase(
        self, nodes: Sequence[Any], *, wait: float = 60.0, device: str = "cpu", dry_run: bool = False
    ) -> "Erased":
        """Erase nodes from every version and from the cache.

        Their labels, features, edges and mentions in the history are removed in one transaction.

        Args:
            nodes: Ids of nodes that some version or its history contains.
            wait: Seconds to wait for another process that writes.
            device: PyTorch device that computes.
            dry_run: Only report what would be erased.

        Returns:
            What was removed, and in which versions the weights still depend on the nodes.

        Raises:
            InputError: If a node is in no version, a version is damaged, or another process writes for longer than
                ``wait``; nothing is erased then.
        """
        from graphfcl.production.erasing import dry_erase, erase

        if dry_run:
            with self._read_only_versions() as versions:
                return dry_erase(versions, nodes, device=device)
        return erase(self._versions, nodes, wait=wait, device=device)
