"""Real servers for tests, and a client that knows nothing of the service but HTTP, besides the one of the package."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from graphfcl.client import Client as TypedClient

TOKEN = "token-of-the-tests-0123456789"


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content)


@dataclass(frozen=True)
class Client:
    """One server: a request is a connection of its own."""

    port: int
    process: int = 0
    token: str | None = TOKEN

    def send(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None, raw: bytes | None = None
    ) -> Answer:
        authorization = {} if self.token is None else {"Authorization": f"Bearer {self.token}"}
        content = raw if raw is not None else None if body is None else json.dumps(body).encode()
        if content is not None:
            authorization["Content-Type"] = "application/json"
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, content, authorization | (headers or {}))
            answer = connection.getresponse()
            return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Answer:
        return self.send("GET", path, headers=headers)

    def node(self, node: Any, what: str = "") -> Answer:
        return self.get(f"/v1/nodes/{quote(str(node), safe='')}{what}")

    def teach(self, name: str | int, nodes: list[Any], headers: dict[str, str] | None = None, **more: Any) -> Answer:
        labels = [{"id": node, "class": name} for node in nodes]
        return self.send("POST", "/v1/labels", {"labels": labels, **more}, headers)

    def typed(self, **options: Any) -> TypedClient:
        """The client of the package."""
        return TypedClient(f"http://127.0.0.1:{self.port}", self.token, **options)

    def plain(self, request: bytes) -> bytes:
        """Bytes as they are, and all that comes back."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as connection:
            connection.sendall(request)
            with suppress(OSError):  # the server has closed the connection already
                connection.shutdown(socket.SHUT_WR)
            parts = []
            with suppress(ConnectionResetError):  # that is an answer too
                while part := connection.recv(65536):
                    parts.append(part)
            return b"".join(parts)

    def kill(self) -> None:
        os.kill(self.process, signal.SIGKILL)

    def wait_for_version(self, version: int, seconds: float = 20) -> None:
        until = time.monotonic() + seconds
        while self.get("/v1/model").json["version"] != version:
            assert time.monotonic() < until, f"version {version} was not seen"
            time.sleep(0.05)


@dataclass
class Servers:
    """Starts servers; all of them end with it."""

    token_file: Path
    started: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.token_file.write_text(TOKEN)
        self.token_file.chmod(0o600)
        self._driver = subprocess.Popen(
            [sys.executable, "-m", "tests.service.fork_servers"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )

    def start(self, folder: Path, **query: str) -> Client:
        assert self._driver.stdin is not None
        assert self._driver.stdout is not None
        self._driver.stdin.write(
            json.dumps({"folder": str(folder), "token_file": str(self.token_file), **query}) + "\n"
        )
        self._driver.stdin.flush()
        started = json.loads(self._driver.stdout.readline())
        port = re.search(r":(\d+)/", started["said"])
        assert port, started
        self.started.append(started["process"])
        return Client(int(port.group(1)), started["process"])

    def close(self) -> None:
        for process in self.started:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        assert self._driver.stdin is not None
        self._driver.stdin.close()
        self._driver.wait(10)


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return unused.getsockname()[1]
