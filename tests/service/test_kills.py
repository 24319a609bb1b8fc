"""A server that is killed at any moment under load loses nothing that it acknowledged, and does nothing twice."""

import http.client
import random
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from graphfcl import GraphClassifier, ModelFolder
from tests.service.servers import Client, Servers

THREADS = 3


@dataclass
class Teacher:
    """Labels its own nodes again and again; a request without an answer is sent again with its key."""

    name: str
    nodes: list[str]
    step: int = 0
    acknowledged: dict[str, dict[str, Any]] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)

    def body(self, step: int) -> tuple[str, str]:
        return self.nodes[step % len(self.nodes)], f"class-0{step % 5}" if step % 7 else f"new-{self.name}"

    def send(self, server: Client, step: int) -> dict[str, Any]:
        node, name = self.body(step)
        answer = server.teach(
            name, [node], {"Idempotency-Key": f"{self.name}-{step}"}, on_conflict="replace", again=True
        )
        if answer.status == 422:
            assert "already" in answer.json["detail"]  # the node has this label
            return {}
        assert answer.status == 200, answer.content
        return answer.json

    def teach(self, server: Client, stop: threading.Event) -> None:
        while not stop.is_set():
            try:
                answer = self.send(server, self.step)
            except (OSError, http.client.HTTPException):
                return  # killed: the same step again with the next server
            node, name = self.body(self.step)
            if answer:
                self.acknowledged[f"{self.name}-{self.step}"] = answer
            self.labels[node] = name
            self.step += 1


def kill_under_load(servers: Servers, folder: Path, free: list[str], kills: int) -> None:
    teachers = [Teacher(str(number), free[number::THREADS][:3]) for number in range(THREADS)]
    draw = random.Random(0)
    server = servers.start(folder)
    start = time.perf_counter()
    assert server.teach("class-00", free[-1:]).status == 200
    length = time.perf_counter() - start
    server.kill()
    for _ in range(kills):
        server, stop = servers.start(folder), threading.Event()
        threads = [threading.Thread(target=teacher.teach, args=(server, stop)) for teacher in teachers]
        for thread in threads:
            thread.start()
        time.sleep(draw.uniform(0.2, 4) * length)
        server.kill()
        stop.set()
        for thread in threads:
            thread.join()
    server = servers.start(folder)
    version = server.get("/v1/model").json["version"]
    for teacher in teachers:
        for step in range(teacher.step):
            acknowledged = teacher.acknowledged.get(f"{teacher.name}-{step}")
            if acknowledged is not None:
                assert teacher.send(server, step) == acknowledged, "a retry gives the first answer"
    assert server.get("/v1/model").json["version"] == version, "and does nothing"
    # The one request of each teacher that got no answer, which may have been carried out.
    for teacher in teachers:
        last = teacher.step
        answer = teacher.send(server, last)
        if answer:
            teacher.acknowledged[f"{teacher.name}-{last}"] = answer
        teacher.labels[teacher.body(last)[0]] = teacher.body(last)[1]
    keys = [entry["request"]["key"] for entry in ModelFolder(folder).history() if "request" in entry]
    assert len(keys) == len(set(keys)), "no request was carried out twice"
    done = {key: answer["version"] for teacher in teachers for key, answer in teacher.acknowledged.items()}
    assert set(done) == set(keys)
    assert len(set(done.values())) == len(done) > kills // 2
    labels = GraphClassifier.load(folder).label_columns()
    stored = dict(zip(labels["node"].tolist(), labels["class"].tolist(), strict=True))
    for teacher in teachers:
        assert {node: stored[node] for node in teacher.labels} == teacher.labels


@pytest.mark.long
def test_three_kills(servers: Servers, folder: Path, free: list[str]) -> None:
    kill_under_load(servers, folder, free, 3)


@pytest.mark.long
@pytest.mark.soak
def test_fifty_kills(servers: Servers, folder: Path, free: list[str]) -> None:
    kill_under_load(servers, folder, free, 50)
