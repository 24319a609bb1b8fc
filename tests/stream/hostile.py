"""Learners that try to answer by anything but the graph they are shown, and the graphs they are tried on."""

import csv
import gc
import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from graphfcl import (
    NO_STORE,
    SILENT,
    BaseSession,
    EncoderStore,
    GraphFolder,
    Learner,
    Progress,
    Session,
    Stream,
    VisibleNodes,
    load_dataset,
    make_stream,
)
from graphfcl.graph.folder.permutation import Shuffle
from graphfcl.graph.folder.visible import VisibleFolder

Places = Callable[[VisibleNodes, np.ndarray], np.ndarray]  # where some nodes may have stood in the source


class NearestPlace(Learner):
    """Gives a node the class of the labelled node whose place is nearest. place: by default the node's number."""

    def __init__(self, place: Places | None = None) -> None:
        super().__init__()
        self.place = place or (lambda _, nodes: nodes)

    def fit(
        self,
        base: BaseSession,
        progress: Progress = SILENT,  # noqa: ARG002
        encoders: EncoderStore = NO_STORE,  # noqa: ARG002
    ) -> None:
        self.classes_ = base.classes
        self.places_ = np.zeros(0, dtype=np.int64)
        self.labels_ = np.zeros(0, dtype=np.int64)
        self._add(base.visible_graph, base.train, base.train_labels)

    def learn(self, session: Session) -> None:
        self.classes_ = self.classes_ + session.new_classes
        self._add(session.visible_graph, session.supports, session.support_labels)

    def _add(self, visible: VisibleNodes, nodes: np.ndarray, labels: np.ndarray) -> None:
        places = np.concatenate([self.places_, self.place(visible, nodes)])
        order = np.argsort(places)
        self.places_, self.labels_ = places[order], np.concatenate([self.labels_, labels])[order]

    def scores(self, visible: VisibleNodes, nodes: np.ndarray) -> np.ndarray:
        places = self.place(visible, nodes)
        after = np.searchsorted(self.places_, places).clip(1, self.places_.size - 1)
        nearer = np.abs(self.places_[after] - places) < np.abs(places - self.places_[after - 1])
        found = self.labels_[np.where(nearer, after, after - 1)]
        return np.eye(len(self.classes_), dtype=np.float32)[found]


def rows_of(visible: Any, nodes: np.ndarray) -> np.ndarray:
    """The order in which a learner reads nodes: rows of a folder on disk, numbers in memory."""
    return visible.rows(nodes) if isinstance(visible, VisibleFolder) else nodes


def unshuffled(count: int, key: int, *, by_rows: bool, forwards: bool) -> Places:
    """Undoes a :class:`Shuffle` of all nodes with a key, or applies it."""
    shuffle = Shuffle(count, key)

    def place(visible: VisibleNodes, nodes: np.ndarray) -> np.ndarray:
        given = rows_of(visible, nodes) if by_rows else nodes
        return shuffle.rows(given) if forwards else shuffle.positions(given)

    return place


def public_keys(folder: GraphFolder, seed: int) -> set[int]:
    """Whole numbers that a learner may read, or guess from the folder's manifest and a stream's seed.

    Of the blocks of a file the first has to do: none of them knows more of the key than another.
    """
    manifest = folder.manifest
    texts = [folder.sha256, folder.rows.key, *(each for file in manifest.files.values() for each in file.checksums[:1])]
    numbers = {manifest.nodes, manifest.edges, manifest.features, manifest.hash_seed, len(manifest.class_names), seed}
    return {*range(10), *numbers, *(int(text, 16) for text in texts), int.from_bytes(folder.name.encode(), "big")}


class Peeking(NearestPlace):
    """Answers with the labels that it finds. labels: (n,) by number, of all nodes; None if it found none."""

    def find(self, visible: VisibleNodes) -> np.ndarray | None:
        """(n,) columns of all nodes by number."""
        raise NotImplementedError

    def scores(self, visible: VisibleNodes, nodes: np.ndarray) -> np.ndarray:
        labels = self.find(visible)
        if labels is None:
            return super().scores(visible, nodes)
        return np.eye(len(self.classes_) + 1, dtype=np.float32)[labels[nodes]][:, :-1]


class FrameReader(Peeking):
    """Reads the evaluator's variables off the stack."""

    def find(self, visible: VisibleNodes) -> np.ndarray | None:  # noqa: ARG002
        frame = sys._getframe()
        while frame.f_back is not None:
            frame = frame.f_back
            for value in frame.f_locals.values():
                if isinstance(value, Stream):
                    return value._columns
        return None


class ObjectCollector(Peeking):
    """Asks the garbage collector for all objects of the process."""

    def find(self, visible: VisibleNodes) -> np.ndarray | None:  # noqa: ARG002
        columns = (each._columns for each in gc.get_objects() if type(each) is Stream)
        large = (each for each in columns if self.places_[-1] < each.size)
        return next((each for each in large if np.array_equal(each[self.places_], self.labels_)), None)


class DatasetLoader(Peeking):
    """Knows the name of the dataset and the seed of the stream, and makes the stream again."""

    def __init__(self, name: str, seed: int, **rules: Any) -> None:
        super().__init__()
        self.stream = make_stream(load_dataset(name)[0], seed=seed, **rules)

    def find(self, visible: VisibleNodes) -> np.ndarray | None:  # noqa: ARG002
        return self.stream._columns


class FileReader(Peeking):
    """Opens the graph folder by the path that tasks open it by."""

    def find(self, visible: Any) -> np.ndarray | None:
        folder = GraphFolder.open(visible.reader.path)
        columns = {folder.class_names.index(name): column for column, name in enumerate(self.classes_)}
        by_row = np.array([columns.get(int(label), -1) for label in folder.labels])
        return by_row[visible.row_of_number]


class FolderReader(Peeking):
    """Looks for labels in everything that it is handed, by name."""

    def find(self, visible: VisibleNodes) -> np.ndarray | None:
        names = ("labels", "node_ids", "ids", "class_names", "manifest", "_files", "graph", "folder", "base", "shuffle")
        waiting, seen = [visible], list[Any]()
        while waiting:
            thing = waiting.pop()
            seen.append(thing)
            assert not any(hasattr(thing, name) for name in names), (thing, names)
            more = [getattr(thing, name) for name in ("reader", "view", "means", "rows") if hasattr(thing, name)]
            waiting += [each for each in more if not callable(each) and each is not None]
        assert len(seen) >= 2
        return None


class Forger(NearestPlace):
    """Answers from copies of its own, and makes every array that it is handed writable, to fill it with zeros."""

    def __init__(self, reachable: Callable[[object], list[object]]) -> None:
        super().__init__()
        self.reachable, self.written, self.refused = reachable, 0, 0

    def fit(self, base: BaseSession, progress: Progress = SILENT, encoders: EncoderStore = NO_STORE) -> None:
        super().fit(base, progress, encoders)
        self._forge(base)

    def learn(self, session: Session) -> None:
        super().learn(session)
        self._forge(session)

    def scores(self, visible: VisibleNodes, nodes: np.ndarray) -> np.ndarray:
        found = super().scores(visible, nodes)
        self._forge((visible, nodes))
        return found

    def _forge(self, handed: object) -> None:
        own = {id(self.places_), id(self.labels_)}
        for thing in self.reachable(handed):
            if isinstance(thing, np.ndarray) and thing.size and id(thing) not in own:
                try:
                    thing.setflags(write=True)
                    thing[...] = 0
                    self.written += 1
                except ValueError:
                    self.refused += 1


def reachable(start: object) -> list[object]:
    """Everything that can be reached from an object: attributes, containers, closures and the bases of arrays."""
    seen: dict[int, object] = {}
    waiting = [start]
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen or isinstance(thing, type) or type(thing).__name__ == "module":
            continue
        seen[id(thing)] = thing
        if type(thing).__name__ == "function":  # its globals are those of a module
            waiting += thing.__closure__ or ()  # type: ignore[attr-defined]
            continue
        waiting += gc.get_referents(thing)
        if isinstance(thing, np.ndarray) and thing.base is not None:
            waiting.append(thing.base)
    return list(seen.values())


def write_sorted_tables(folder: Path, *, of_a_class: int = 4_000, classes: int = 10) -> Path:
    """Tables whose nodes stand class by class; neither features nor edges say anything about classes."""
    random, count = np.random.default_rng(0), of_a_class * classes
    folder.mkdir()
    with open(folder / "nodes.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "label", "size"])
        rows.writerows([n, f"class {n // of_a_class}", f"{random.random():.3f}"] for n in range(count))
    with open(folder / "edges.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["source", "target"])
        rows.writerows(random.permutation(count).reshape(-1, 2).tolist())
    return folder


def repeated_draws(base: BaseSession, seed: int) -> list[int]:
    """Columns of session 0 whose draw of train, validation and test nodes is repeated from the stream's seed.

    The rows of a class's train and validation nodes, in order, must be those of a draw; its test nodes then lie in
    known gaps between them. Class number and size are tried.
    """
    visible, found = base.visible_graph, []
    for column in range(len(base.classes)):
        train = rows_of(visible, base.train[base.train_labels == column])
        validation = rows_of(visible, base.validation[base.validation_labels == column])
        is_train = np.isin(np.sort(np.concatenate([train, validation])), train)
        about = round(is_train.size / 0.8)
        for number, size in itertools.product(range(20), range(about - 3, about + 4)):
            drawn = np.random.default_rng([seed, 1, number]).permutation(size)
            place = np.argsort(drawn)
            labelled = np.sort(drawn[: is_train.size])
            if np.array_equal(place[labelled] < train.size, is_train):
                found.append(column)
                break
    return found
