"""One run: evaluate a learner on a stream, save checkpoints on the way, and write the result."""

import contextlib
import gc
import hashlib
import json
import platform
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from graphfcl.active import find_strategy
from graphfcl.errors import GraphfclWarning, InputError
from graphfcl.evaluation import Evaluation, active_record, evaluate, evaluate_active, find_chooser, needs_oracle
from graphfcl.experiments.encoders import EncoderFolder
from graphfcl.methods import SILENT, Learner, Progress, find_method, settings_as_json
from graphfcl.methods.blocks.damaged_files import DamagedFile, computed_again
from graphfcl.methods.learner import DeclaredFlags
from graphfcl.methods.progress import progress_of
from graphfcl.methods.shared.checkpoint import load_checkpoint, save_checkpoint
from graphfcl.methods.state import NO_STORE
from graphfcl.metrics import compute_active_metrics
from graphfcl.runtime.files import read_bytes, write_bytes
from graphfcl.runtime.memory import peak_bytes
from graphfcl.runtime.source_code import package_commit, run_digest
from graphfcl.stream import Stream, refuse_other_version, save_stream, stream_hash
from graphfcl.version import __version__

RESULT_FILE, CHECKPOINT_FILE, STREAM_FILE = "result.json", "checkpoint.safetensors", "stream.json"
SECONDS_BETWEEN_CHECKPOINTS = 2.0
STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")  # exist on Linux


@dataclass(frozen=True, eq=False)
class Run:
    """A method with its settings on a stream.

    Args:
        stream: Stream to evaluate on. Its seed is also the learner's.
        method: Name of the method.
        changes: Settings that differ from the method's defaults.
        device: Device that the learner uses.
        strategy: Strategy under the track ``active``; empty under other tracks.
    """

    stream: Stream
    method: str
    changes: dict[str, Any]
    device: str = "cpu"
    strategy: str = ""

    def __post_init__(self) -> None:
        if bool(self.strategy) != (self.stream.protocol.track == "active"):
            fix = "name a strategy" if not self.strategy else "use that track, or leave the strategy out"
            raise InputError(f"only the track 'active' has a strategy, and it needs one: {fix}.")

    @property
    def seed(self) -> int:
        """Seed of the stream, which is also the learner's."""
        return self.stream.seed

    def identity(self) -> dict[str, Any]:
        """The values that identify a run. The device is not part of them."""
        method = find_method(self.method)
        return {
            "dataset": self.stream.graph.name,
            "graph_sha256": self.stream.graph.sha256,
            "method": self.method,
            **({"source": method.source} if method.source else {}),
            "settings": settings_as_json(method.settings_with(self.changes)),
            "seed": self.seed,
            "protocol_version": self.stream.protocol.protocol_version,
            "protocol": self.stream.protocol.as_json(),
            "protocol_hash": self.stream.protocol.hash,
            "stream": stream_hash(self.stream),
            **self._strategy(),
        }

    def _strategy(self) -> dict[str, Any]:
        if not self.strategy:
            return {}
        if needs_oracle(self.strategy):
            return {"strategy": self.strategy, "needs_oracle": True}
        strategy = find_strategy(self.strategy)
        source = {"strategy_source": strategy.source} if strategy.source else {}
        return {"strategy": strategy.name, **source, "needs_oracle": False}

    def short_name(self) -> str:
        """Make a folder name that contains a hash of the identity."""
        digest = hashlib.sha256(json.dumps(self.identity(), sort_keys=True).encode()).hexdigest()
        named = f"{self.method}-{self.strategy}" if self.strategy else self.method
        return f"{self.stream.graph.name}-{named}-seed{self.seed}-{digest[:8]}"


def run(
    job: Run,
    folder: str | Path | None = None,
    *,
    resume: bool = False,
    progress: bool | Progress | None = None,
    encoders: str | Path | None = None,
    after: Callable[[Learner], dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """Run a learner on a stream and return the result as plain values.

    If a file of a work folder is damaged, it is computed again and the run continues from its checkpoint.

    Args:
        job: Stream, method and settings.
        folder: Folder for the result (``result.json``), the stream and the checkpoint. By default nothing is written.
        resume: Continue from the checkpoint in the folder. The results equal those of an uninterrupted run.
        progress: True shows progress bars. A :class:`Progress` receives what the learner reports.
        encoders: Folder of pre-trained encoders, shared by all methods. Without it the encoder is computed again.
        after: Function that is called with the learner after its last session. Its values are added to the result.

    Returns:
        Metrics, confusion matrices, costs and versions, as plain values.

    Raises:
        InputError: If the folder has the result or checkpoint of another run, or an unfinished run and ``resume`` is
            False.
    """

    def attempt() -> dict[str, Any]:
        nonlocal resume
        try:
            return _run(job, None if folder is None else Path(folder), resume, progress, encoders, after)
        except DamagedFile:
            resume = folder is not None and (Path(folder) / CHECKPOINT_FILE).exists()
            raise

    return computed_again(attempt)


def _run(
    job: Run,
    folder: Path | None,
    resume: bool,
    progress: bool | Progress | None,
    encoders: str | Path | None,
    after: Callable[[Learner], dict[str, Any]] | None,
) -> dict[str, Any]:
    method = find_method(job.method)
    learner = method.make(job.changes, seed=job.seed, device=job.device)
    forget_peaks(job.device)
    identity = job.identity()
    recorder = _Recorder(folder, identity, Evaluation.start(learner, job.stream))
    if folder is not None:
        _refuse_another_run(folder, identity)
        if (folder / CHECKPOINT_FILE).exists():
            if resume:
                recorder.restore(learner, job.stream)
            elif not (folder / RESULT_FILE).exists():
                raise InputError(f"{folder} has an unfinished run: continue it with --resume, or choose another --out.")
        elif resume:
            warnings.warn(f"{folder} has no checkpoint: the run starts from the beginning.", GraphfclWarning, 2)
        save_stream(job.stream, folder / STREAM_FILE)
    evaluate_stream = (
        partial(evaluate_active, chooser=partial(find_chooser, job.strategy)) if job.strategy else evaluate
    )
    with progress_of(progress) as recorder.outer:
        evaluation = evaluate_stream(
            learner,
            job.stream,
            progress=recorder,
            done=recorder.evaluation,
            on_session=lambda so_far: recorder.session(learner, so_far),
            encoders=NO_STORE if encoders is None else EncoderFolder(encoders, job.stream, method.source),
        )
    result = {**identity, **result_values(evaluation, job, learner), "versions": versions(job.device)}
    result |= {"total_seconds": recorder.elapsed(), "peak_memory_mb": recorder.peak()}
    if after is not None:
        result |= after(learner)
    if folder is not None:
        write_bytes(folder / RESULT_FILE, json.dumps(result, indent=1).encode())
    return result


class _Recorder(Progress):
    """Forward progress, and save checkpoints of the learner and the evaluation so far."""

    outer: Progress = SILENT

    def __init__(self, folder: Path | None, identity: dict[str, Any], evaluation: Evaluation) -> None:
        self.folder, self.identity, self.evaluation = folder, identity, evaluation
        self.started_at = time.perf_counter()
        self.earlier_seconds = 0.0  # of the earlier parts of an interrupted run
        self.earlier_peak = 0.0  # in MB, of the earlier parts
        self.saved_at = -SECONDS_BETWEEN_CHECKPOINTS

    def elapsed(self) -> float:
        return self.earlier_seconds + time.perf_counter() - self.started_at

    def peak(self) -> float:
        """Peak memory of the host in MB, over all parts of an interrupted run."""
        return max(self.earlier_peak, peak_memory_mb())

    def step(self, stage: str, step: int, total: int, *, loss: float | None = None, score: float | None = None) -> None:
        self.outer.step(stage, step, total, loss=loss, score=score)

    def checkpoint(self, learner: Learner) -> None:
        if time.perf_counter() - self.saved_at >= SECONDS_BETWEEN_CHECKPOINTS:
            self._save(learner)
        self.outer.checkpoint(learner)

    def session(self, learner: Learner, so_far: Evaluation) -> None:
        if not self.evaluation.confusions and self.earlier_seconds:
            # The fit was interrupted: add the time of its earlier parts.
            so_far = replace(so_far, seconds=(self.earlier_seconds + so_far.seconds[0],))
        self.evaluation = so_far
        self._save(learner)

    def _save(self, learner: Learner) -> None:
        if self.folder is None:
            return
        done = self.evaluation
        values = {
            "identity": self.identity,
            "elapsed": self.elapsed(),
            "peak_memory_mb": self.peak(),
            "flags": asdict(done.flags),
            "confusions": [matrix.tolist() for matrix in done.confusions],
            "seconds": list(done.seconds),
            "answered": [nodes.tolist() for nodes in done.answered],
        }
        if learner.last_tables is not None:
            values["tables"] = learner.last_tables.names
        save_checkpoint(self.folder / CHECKPOINT_FILE, learner.state(), values)
        self.saved_at = time.perf_counter()

    def restore(self, learner: Learner, stream: Stream) -> None:
        assert self.folder is not None
        path = self.folder / CHECKPOINT_FILE
        state, values = load_checkpoint(path)
        if values["identity"] != self.identity:
            refuse_other_version(values["identity"].get("protocol_version"), str(path), "choose another --out")
            raise InputError(f"{path} belongs to another run: {self._remedy(values['identity'])} another --out.")
        learner.load_state(state)
        if learner.last_tables is not None:
            learner.last_tables.recall(values.get("tables", ()))
        self.earlier_seconds = values["elapsed"]
        self.earlier_peak = values["peak_memory_mb"]
        matrices = tuple(np.array(matrix, dtype=np.int64) for matrix in values["confusions"])
        answered = tuple(np.array(nodes, dtype=np.int64) for nodes in values["answered"])
        flags = DeclaredFlags(**values["flags"])
        self.evaluation = Evaluation(matrices, tuple(values["seconds"]), stream.session_of_class, answered, flags)

    def _remedy(self, there: dict[str, Any]) -> str:
        """Words for a message about the checkpoint of another run: what the user can do."""
        for part, key, source in (("method", "method", "source"), ("strategy", "strategy", "strategy_source")):
            same = there.get(key) == self.identity.get(key)
            if same and there.get(source) != self.identity.get(source):
                return f"the code of its {part} was edited, so choose"
        return "repeat its options, or choose"


def _refuse_another_run(folder: Path, identity: dict[str, Any]) -> None:
    path = folder / RESULT_FILE
    if not path.exists():
        return
    try:
        there = json.loads(read_bytes(path, "the result"))
    except ValueError:
        there = {}
    if not isinstance(there, dict):
        raise InputError(f"{path} is not the result of a run: choose another --out.")
    if there:
        refuse_other_version(there.get("protocol_version"), str(path), "choose another --out")
    if any(there.get(key) != value for key, value in identity.items()):
        raise InputError(f"{folder} has the result of another run: choose another --out.")


def result_values(evaluation: Evaluation, job: Run, learner: Learner) -> dict[str, Any]:
    """Convert metrics, matrices and costs to plain values."""
    metrics, flags = evaluation.metrics, evaluation.flags
    sessions = [
        {"session": session.session, "classes": session.classes, **session.values, "seconds": seconds}
        for session, seconds in zip(metrics.sessions, evaluation.seconds, strict=True)
    ]
    return {
        "sessions": sessions,
        **metrics.values,
        **(_active_values(evaluation, job, sessions) if job.strategy else {}),
        "matrix": _plain(metrics.matrix),
        "plain_matrix": _plain(metrics.plain_matrix),
        "confusion_matrices": [matrix.tolist() for matrix in evaluation.confusions],
        "n_train": job.stream.n_train,
        "n_supports": job.stream.n_supports,
        "n_test": job.stream.n_test,
        "classes": list(job.stream.classes),
        "session_of_class": job.stream.session_of_class.tolist(),
        "flags": asdict(flags),
        "uses_pool_labels": flags.uses_pool_labels and not job.strategy,  # the track `active` has no pool
        "pretraining": {
            "seconds": learner.pretraining_seconds_,
            "reused": learner.pretraining_reused_,
        },
        "trained_on_query_labels": job.stream.protocol.name == "paper" and flags.trains_on_query_labels,
        "chosen": learner.chosen(),
        "stored": learner.stored(),
        "stored_bytes": sum(learner.stored().values()),
        "peak_gpu_memory_mb": peak_gpu_memory_mb(job.device),
        "device": job.device,
    }


def _active_values(evaluation: Evaluation, job: Run, sessions: list[dict[str, Any]]) -> dict[str, Any]:
    """Metrics of the track ``active`` and the labelled ids. The counts of each session are added to ``sessions``."""
    record = active_record(evaluation, job.stream)
    for session, labels, classes in zip(sessions, record.labels.tolist(), record.classes_found.tolist(), strict=True):
        session |= {"labels": labels, "novel_classes_found": classes}
    graph = job.stream.graph
    labelled = [graph.node_ids[job.stream.node_of_number[nodes]].tolist() for nodes in evaluation.answered]
    return {**compute_active_metrics(record), "budget": record.budget, "labelled_nodes": labelled}


def _plain(matrix: np.ndarray) -> list[list[float | None]]:
    return [[None if np.isnan(value) else float(value) for value in row] for row in matrix]


def versions(device: str) -> dict[str, str]:
    """Versions of the software, and the machine, that computed a result."""
    import scipy
    import torch

    used = {
        "graphfcl": __version__,
        "code": run_digest()[:10],
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "machine": platform.machine(),
        "threads": str(torch.get_num_threads()),
    }
    if (commit := package_commit()) is not None:
        used["commit"] = commit
    if device.startswith("cuda"):
        used["gpu"] = torch.cuda.get_device_name(device)
    return used


def forget_peaks(device: str) -> None:
    """Reset the peak memory counters. The counter of the host can be reset only on Linux."""
    with contextlib.suppress(OSError):
        CLEAR.write_text("5")
    if device.startswith("cuda"):
        import torch

        torch.cuda.init()  # torch refuses to reset the counter before
        torch.cuda.reset_peak_memory_stats(device)


def peak_memory_mb() -> float:
    """Peak memory of this process in MB since :func:`forget_peaks`; 0 where the system does not report it."""
    with contextlib.suppress(OSError, StopIteration, ValueError):
        line = next(line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) / 1024
    return peak_bytes() / 2**20


def peak_gpu_memory_mb(device: str) -> float | None:
    """Peak memory of tensors on the GPU in MB since :func:`forget_peaks`; None on a CPU."""
    if not device.startswith("cuda"):
        return None
    import torch

    return torch.cuda.max_memory_allocated(device) / 2**20


def release_gpu_memory(device: str) -> None:
    """Release the GPU memory that torch caches, so that other processes can use it."""
    if device.startswith("cuda"):
        import torch

        gc.collect()  # learners contain reference cycles
        torch.cuda.empty_cache()
