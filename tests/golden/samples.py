"""What the golden files are made of: every method on every track of a small graph, with short training."""

from typing import Any

import numpy as np

from graphfcl import LearnerState, Protocol, Stream, find_method, load_dataset, make_stream

GRAPH = "synthetic:nodes=300,edges=1200,classes=9,features=60,signal=0.9,skew=0.4"
TRACKS = ("transductive", "isolated", "open")
TRAINING = {"pretraining.epochs": 3, "pretraining.steps_per_epoch": 4, "pretraining.learning_rate": 0.02}
EPISODES = {"episodes": 8, "validate_every": 4, "learning_rate": 0.02, "validation_window": 1}
STEPS = {"fine_tuning": ((3, 0.005),)}
FIXED = {"fine_tuning_steps": 2, "fine_tuning_rate": 0.005}
# All stages of every method, but few steps of each: other machines then differ in the last digits only.
SHORT: dict[str, dict[str, Any]] = {
    "anchor": {"hidden": 16, "size": 8, "rank": 24, "pretraining.epochs": 3},
    "sgc-ridge": {"rank": 24},
    "ranpac": {"rank": 24, "width": 60},
    "teen": {"rank": 24},
    "fecam": {"rank": 8},
    "hag-meta": {**TRAINING, **EPISODES, **FIXED},
    "proto-gcn": TRAINING,
    "proto-gat": TRAINING,
    "meta-gnn": {**TRAINING, **EPISODES, "inner_steps": 2, **STEPS},
    "gpn": {**TRAINING, **EPISODES},
    "er-gnn": {**TRAINING, **FIXED},
    "icarl": {**TRAINING, **STEPS},
    "cec": {**TRAINING, **EPISODES},
    "geometer": {**TRAINING, **EPISODES, **FIXED, "least_episodes": 0, "hidden": 32, "size": 16},
    "tap": {**TRAINING, "fine_tuning_steps": 2},
    "lpmc": {**TRAINING, **EPISODES, **FIXED, "hidden": 16, "size": 8, "contrast.epochs": 4},
    "mecoin": {
        **TRAINING,
        "hidden": 32,
        "size": 16,
        "books": 4,
        "keys": 12,
        "kept": 6,
        "draws": 2,
        "first_steps": 20,
        "fine_tuning": ((3, 0.01),),
        "adjustments": (0.0, -0.25),
    },
    "tem": {"rank": 24, "budget": 8, "penalties": (1e-2, 1e-3)},
    "closed-set-control": {"rank": 24},
    "finetune": {**TRAINING, **FIXED},
    "joint": {
        **TRAINING,
        "wide_hidden": 16,
        "wide_size": 8,
        "wide_training.epochs": 3,
        "head_training.epochs": 4,
        "rank": 24,
    },
}
# Of methods whose states of before had other settings.
SHORT_BEFORE: dict[str, dict[str, Any]] = {
    **SHORT,
    "joint": TRAINING,
    "er-gnn": {
        **SHORT["er-gnn"],
        "selection": "influence",
        "replay": "printed",
        "fine_tuning": ((5, 0.001), (20, 0.001), (5, 0.005), (20, 0.005)),
    },
    "anchor": {**SHORT["anchor"], "encoder_weight": 0.7, "unit_rows": True, "head_share": 0.0},
}


def golden_stream(track: str) -> Stream:
    rules = Protocol(base=4, pseudo_novel=3, way=1, shot=4, track=track)  # type: ignore[arg-type]
    return make_stream(load_dataset(GRAPH)[0], rules, seed=0)


def walk(method: str, track: str) -> tuple[np.ndarray, LearnerState]:
    """Scores of some test nodes after the last session, and the state then."""
    stream = golden_stream(track)
    learner = find_method(method).make(SHORT[method], seed=0)
    learner.fit(stream.base)
    for number in range(1, len(stream) + 1):
        learner.learn(stream.session(number, with_pool_labels=learner.uses_pool_labels))
    last = len(stream)
    return learner.scores(stream.evaluation_graph(last), stream.queries(last).nodes[::3]), learner.state()


def outline(state: LearnerState) -> dict[str, Any]:
    """Names, shapes and kinds of the tensors of a state, and the names of its values."""
    tensors = {name: [list(t.shape), str(t.dtype)] for name, t in sorted(state.tensors.items())}
    return {"tensors": tensors, "values": sorted(state.values)}
