"""Changes a model again and again in forked processes and kills them; called by test_kills.py."""

import json
import os
import random
import signal
import sys
import time

import torch

from graphfcl import GraphClassifier, ModelFolder
from tests.production.models import fitted, graph_in_memory, members

torch.set_num_threads(1)  # threads do not survive a fork
folder, rounds = ModelFolder(sys.argv[1]), int(sys.argv[2])
fitted("anchor").save(sys.argv[1])
first = members("class-08") + members("class-09")
draw = random.Random(0)


def change(kind: str, number: int) -> None:
    if kind == "learn":
        with folder.editing() as model:
            labelled = model.node_ids_[model.graph_.visible.rows(model.label_store_.nodes)].tolist()
            model.learn({f"new {number}": [node for node in first if node not in set(labelled)][:1]})
    elif kind == "grow":
        with folder.editing() as model:
            fresh = [100000 + number]
            model.grow(nodes=(fresh, graph_in_memory(model).features[:1], None), edges=(fresh, [first[0]], None))
    else:
        model = GraphClassifier.load(sys.argv[1])
        model.rename(model.classes_[0], f"name {number}")
        model.save(sys.argv[1])


def child(kind: str, number: int, acknowledge: int) -> None:
    try:
        change(kind, number)
        os.write(acknowledge, b"done")
    finally:
        os._exit(0)


lengths = {}
for kind in ("learn", "grow", "save"):
    start = time.perf_counter()
    change(kind, 10000)
    lengths[kind] = time.perf_counter() - start
outcome = {"old": 0, "new": 0, "acknowledged": 0}
for number in range(rounds):
    kind = ("learn", "grow", "save")[number % 3]
    before = folder.current()
    if number % 30 == 29:
        before = folder.rollback(1)
    read, write = os.pipe()
    process = os.fork()
    if process == 0:
        child(kind, number, write)
    os.close(write)
    time.sleep(draw.uniform(0, 2.2 * lengths[kind]))
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    acknowledged = os.read(read, 4) == b"done"
    os.close(read)
    model = GraphClassifier.load(sys.argv[1])
    assert len(model.predict()) == model.graph_.node_count
    there = {
        "learn": f"new {number}" in model.classes_,
        "grow": 100000 + number in model.node_ids_.tolist(),
        "save": f"name {number}" in model.classes_,
    }[kind]
    assert model.version == before + there, (number, kind, model.version, before, there)
    assert there or not acknowledged, (number, kind, "an acknowledged change is gone")
    assert [entry["version"] for entry in model.history] == sorted(entry["version"] for entry in model.history)
    outcome["new" if there else "old"] += 1
    outcome["acknowledged"] += acknowledged
print(json.dumps(outcome))
