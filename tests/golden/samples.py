"""What the golden files hold: every method on every track of a small graph, strategies and models.

Training is short: all stages of every method, but few steps of each, so that other machines differ in the last digits
only.
"""

from typing import Any

import numpy as np

from graphfcl import (
    GraphClassifier,
    Protocol,
    Stream,
    evaluate_active,
    find_method,
    find_strategy,
    load_dataset,
    make_stream,
)

GRAPH = "synthetic:nodes=300,edges=1200,classes=9,features=60,signal=0.9,skew=0.4"
# By name: the rules of a stream that differ from the defaults.
TRACKS: dict[str, dict[str, Any]] = {
    "transductive": {"track": "transductive"},
    "isolated": {"track": "isolated"},
    "open": {"track": "open"},
    "active": {"track": "active"},
    "paper": {"name": "paper"},
    "paper-open": {"name": "paper", "track": "open"},
}
SUGGESTING = ("anchor", "sgc-ridge", "icarl")  # models whose suggestions and groups are recorded
TRAINING = {
    "hidden": 32,
    "size": 16,
    "pretraining.epochs": 3,
    "pretraining.steps_per_epoch": 4,
    "pretraining.learning_rate": 0.02,
}
EPISODES = {"episodes": 8, "validate_every": 4, "learning_rate": 0.02, "validation_window": 1}
STEPS = {"fine_tuning": ((3, 0.005),)}
FIXED = {"fine_tuning_steps": 2, "fine_tuning_rate": 0.005}
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
    "geometer": {**TRAINING, **EPISODES, **FIXED, "least_episodes": 0},
    "tap": {**TRAINING, "fine_tuning_steps": 2},
    "lpmc": {**TRAINING, **EPISODES, **FIXED, "hidden": 16, "size": 8, "contrast.epochs": 4},
    "mecoin": {
        **TRAINING,
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
}
SHORT["anchor-pool"] = SHORT["joint"] = SHORT["anchor"]


def golden_stream(track: str) -> Stream:
    rules = Protocol(base=4, pseudo_novel=3, way=1, shot=4, **TRACKS[track])
    return make_stream(load_dataset(GRAPH)[0], rules, seed=0)


def learned_scores(method: str, track: str) -> np.ndarray:
    """Scores of some test nodes after the last session.

    Under the track ``active`` nodes are selected at random: a selection by scores could turn on the last digit.
    """
    stream = golden_stream(track)
    learner = find_method(method).make(SHORT[method], seed=0)
    if track == "active":
        evaluate_active(learner, stream, find_strategy("random").make())
    else:
        learner.fit(stream.base)
        for number in range(1, len(stream) + 1):
            learner.learn(stream.session(number, with_pool_labels=learner.uses_pool_labels))
    last = len(stream)
    return learner.scores(stream.evaluation_graph(last), stream.queries(last).nodes[::3])


def selected_nodes(strategy: str) -> np.ndarray:
    """Numbers of the nodes that a strategy selects over a stream of SGC-ridge, session by session."""
    learner = find_method("sgc-ridge").make(SHORT["sgc-ridge"], seed=0)
    return np.concatenate(evaluate_active(learner, golden_stream("active"), find_strategy(strategy).make()).answered)


def model_answers(method: str) -> dict[str, np.ndarray]:
    """What a production model answers after a class was learned and the graph has grown."""
    graph = load_dataset(GRAPH)[0]
    hidden = graph.class_names[-2:]
    model = GraphClassifier(method, SHORT[method]).fit(graph, hide_classes=hidden)
    supports = [graph.node_ids[graph.labels == graph.class_number(name)][:4].tolist() for name in hidden]
    model.learn({hidden[0]: supports[0], hidden[1]: supports[1]})
    model.unlearn(supports[1][:1])
    model.remove_nodes(graph.node_ids[:2].tolist())
    model.add_edges(graph.node_ids[2:4].tolist(), graph.node_ids[8:10].tolist())
    answers = {"probabilities": model.predict_proba()[::3], "unknown": model.unknown_scores()[::3]}
    if method in SUGGESTING:
        answers["suggestions"] = np.array([each.node for each in model.suggest(5)])
        answers["groups"] = np.array([node for group in model.groups() for node in sorted(group.nodes)])
    return answers
