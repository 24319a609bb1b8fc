"""Run the released code of TAP on a saved stream: ``python -m scripts.released_tap CODE STREAM.npz --out FILE.csv``.

CODE is the folder ``code`` of TAP's repository, STREAM.npz a file of ``graphfcl stream --out``. The code is not part of
this project and needs ``torch_geometric``. It is run unchanged, but for functions that are replaced before it starts:
those that read a graph and draw a split, one for speed with the same result, and those that report, which also measure
the balanced accuracy on all test nodes. Appends a line to FILE.csv, in the form of ``results/released_code.csv``.
"""

import argparse
import csv
import importlib
import json
import runpy
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import sparse

COLUMNS = (
    "code", "form", "dataset", "seed", "session_0", "last_session", "session_0_classes", "new_classes",
    "its_own_accuracy",
)  # fmt: skip
HOPS = 5  # of the neighbourhoods that calibrate prototypes: published for Amazon-Clothing and CoraFull
FORMS = ("as released", "supports of a class counted by K", "edges between sessions kept")


@dataclass
class SavedStream:
    """The arrays of a stream, and what the code is given of them. A class is its column."""

    arrays: dict[str, np.ndarray]
    balanced: list[dict[str, float]] = field(default_factory=list)  # after each session
    own: float = 0.0  # the code's own accuracy after the last session
    session: int = 0

    @classmethod
    def load(cls, path: Path) -> "SavedStream":
        with np.load(path) as file:
            return cls(dict(file))

    @property
    def about(self) -> dict[str, Any]:
        return json.loads(str(self.arrays["stream"]))

    def classes(self, session: int) -> list[int]:
        return np.flatnonzero(self.arrays["class_session"] == session).tolist()

    def rows(self, part: str, classes: list[int]) -> np.ndarray:
        """Nodes of a part whose class is among these, class by class."""
        rows = self.arrays[part]
        labels = self.arrays["labels"][rows]
        return np.concatenate([rows[labels == column] for column in classes])

    @property
    def last(self) -> int:
        return int(self.arrays["class_session"].max())

    def matrix(self, name: str) -> sparse.csr_array:
        parts = tuple(self.arrays[f"{name}_{part}"] for part in ("data", "indices", "indptr"))
        return sparse.csr_array(parts, shape=tuple(self.arrays[f"{name}_shape"]))

    def load_data(self, _dataset: str, _way: int, _session: int) -> tuple[object, ...]:
        """In place of ``load_data``: graph with self-loops, features, labels and classes of the stream."""
        graph = self.matrix("adj")
        edges = sparse.coo_array(graph + sparse.eye_array(graph.shape[0]))
        places = torch.from_numpy(np.stack((edges.row, edges.col)).astype(np.int64))
        adjacency = torch.sparse_coo_tensor(places, torch.ones(places.shape[1]), graph.shape).coalesce()
        features = self.matrix("attr").toarray() if "attr_data" in self.arrays else self.arrays["attr_matrix"]
        labels = torch.from_numpy(self.arrays["labels"].astype(np.int64))
        nodes = {c: np.flatnonzero(self.arrays["labels"] == c).tolist() for c in range(self.arrays["class_names"].size)}
        base = self.classes(0)
        novel = sorted(nodes.keys() - set(base))
        counts = [len(each) for each in nodes.values()]
        inputs = adjacency, torch.from_numpy(features).float(), labels
        return *inputs, graph.sum(axis=1), nodes, base, novel, counts, graph.shape[0]

    def base_split(self, _nodes: object, base: list[int]) -> tuple[list[int], list[int]]:
        """In place of ``base_train_val_split``. What the code calls validation is only printed: here test nodes."""
        return self.rows("train", base).tolist(), self.rows("test", base).tolist()

    def next_task(self, *_: object, **__: object) -> tuple[np.ndarray, np.ndarray, list[int]]:
        """In place of ``task_generator``: queries, supports and classes of the next session."""
        self.session += 1
        classes = self.classes(self.session)
        return self.rows("test", classes), self.rows("supports", classes), classes

    def edges_to_earlier(self, edges: torch.Tensor) -> torch.Tensor:
        """The (2, m) of these edges that connect the current session's nodes with nodes of earlier sessions."""
        labels = self.arrays["labels"]
        sessions = torch.from_numpy(np.where(labels < 0, self.last + 1, self.arrays["class_session"][labels]))
        first, second = sessions.to(edges.device)[edges]
        return edges[:, (torch.maximum(first, second) == self.session) & (first != second)]

    def edge_shares(self) -> dict[str, float]:
        """Of the edges of nodes of later sessions: which share leads to another session, and which joins one class."""
        graph, labels = self.matrix("adj").tocoo(), self.arrays["labels"]
        first, second = (labels[ends] for ends in graph.coords)
        known = (graph.row < graph.col) & (first >= 0) & (second >= 0)
        sessions = self.arrays["class_session"][np.stack((first, second))[:, known]]
        later = sessions.max(axis=0) > 0
        same, across = (first == second)[known][later], (sessions[0] != sessions[1])[later]
        return {"across sessions": across.mean(), "one class": same.mean(), "one class, within": same[~across].mean()}

    def measure(
        self, encoder: torch.nn.Module, features: torch.Tensor, edges: torch.Tensor, means: torch.Tensor
    ) -> None:
        """Keep the balanced accuracy on all test nodes; prototypes are in the order of sessions and columns."""
        order = [c for session in range(self.session + 1) for c in self.classes(session)]
        nodes = self.rows("test", order)
        encoder.eval()
        with torch.no_grad():
            vectors, _ = encoder(features, edges)
            unit = torch.nn.functional.normalize
            scores = unit(vectors[nodes], dim=-1) @ unit(means, dim=-1).T
        right = np.array(order)[scores.argmax(1).cpu().numpy()] == self.arrays["labels"][nodes]
        recalls = {c: float(right[self.arrays["labels"][nodes] == c].mean()) for c in order}
        parts = {"all": order, "old": self.classes(0), "new": order[len(self.classes(0)) :]}
        self.balanced.append(
            {name: 100 * float(np.mean([recalls[c] for c in part])) for name, part in parts.items() if part}
        )


def use(stream: SavedStream, form: str, device: str) -> None:
    """Import the code's modules and let them use a stream.

    They import each other's names, so the functions of ``data_split`` are replaced before ``trainer`` is imported.
    """
    data: Any = importlib.import_module("data_split")
    data.load_data, data.base_train_val_split, data.task_generator = (
        stream.load_data,
        stream.base_split,
        stream.next_task,
    )
    grown = data.update_incremental_adj
    trainer: Any = importlib.import_module("trainer")
    test_base, test_later, first = trainer.test_base, trainer.test_incremental, trainer.get_base_prototypes
    hops, prototypes = trainer.k_hop_subgraph, trainer.compute_prototypes

    def base(encoder: Any, features: Any, edges: Any, nodes: Any, means: Any, *rest: Any) -> Any:
        stream.measure(encoder, features, edges, means)
        return test_base(encoder, features, edges, nodes, means, *rest)

    def later(encoder: Any, features: Any, edges: Any, *rest: Any) -> Any:
        stream.measure(encoder, features, edges, rest[6])
        found = test_later(encoder, features, edges, *rest)
        stream.own = 100 * float(found[0])
        return found

    def listed_hops(*words: Any) -> Any:
        nodes, *others = hops(*words)
        return nodes.tolist(), *others  # numbers are indexed much faster than a list of tensors

    def counted_by_shot(*words: Any, **options: Any) -> Any:  # released: by the number of classes
        return prototypes(*words[:6], stream.about["protocol"]["shot"], *words[7:], **options)

    def connected(adjacency: torch.Tensor, *words: Any, **options: Any) -> torch.Tensor:  # released: no such edges
        return torch.cat((grown(adjacency, *words, **options), stream.edges_to_earlier(adjacency.indices())), dim=1)

    trainer.test_base, trainer.test_incremental, trainer.k_hop_subgraph = base, later, listed_hops
    trainer.get_base_prototypes = lambda *words: first(*words, device=torch.device(device))
    if form == FORMS[1]:
        trainer.compute_prototypes = counted_by_shot
    if form == FORMS[2]:
        trainer.update_incremental_adj = connected


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("code", type=Path)
    parser.add_argument("stream", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--form", choices=FORMS, default=FORMS[0])
    parser.add_argument("--epochs", type=int, default=1000, help="of the base stage (published: 1000)")
    options = parser.parse_args(words)
    stream = SavedStream.load(options.stream)
    about = stream.about
    print("edges of nodes of later sessions:", stream.edge_shares())
    sys.path.insert(0, str(options.code))
    use(stream, options.form, "cuda" if torch.cuda.is_available() else "cpu")
    settings = {
        "seed": about["seed"],
        "episodes": options.epochs,
        "way": about["protocol"]["way"],
        "shot": about["protocol"]["shot"],
        "session": stream.last,
        "kmean_hops": HOPS,
    }
    sys.argv = ["main.py", *(f"--{name}={value}" for name, value in settings.items())]
    runpy.run_path(str(options.code / "main.py"), run_name="__main__")
    first, last = stream.balanced[0], stream.balanced[-1]
    figures = [first["all"], last["all"], last["old"], last["new"], stream.own]
    new = not options.out.exists()
    with open(options.out, "a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(COLUMNS)
        name = "TAP" if options.epochs == 1000 else f"TAP, {options.epochs} epochs"
        writer.writerow([name, options.form, about["graph"], about["seed"], *(round(each, 3) for each in figures)])


if __name__ == "__main__":
    main()
