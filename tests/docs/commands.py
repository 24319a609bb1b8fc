"""Commands of a page, run in its folder: graphfcl inside this process, all else by bash."""

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from graphfcl.cli.model import serve  # noqa: F401 (so that a page's process need not import it)
from tests.cli.command import Result, graphfcl_inside

INSTALLERS = ("pip", "make", "uv", "conda")
ADDRESS, TOKEN = "http://127.0.0.1:8765", "xT3…"  # as pages show them
SERVING = re.compile(r"(http://[\d.]+:\d+)(?:/#token=(\S+))?")


@dataclass
class Shell:
    """What the commands of a page share.

    added: options that a command gets besides its own. known: texts of the page and what they are here, such as the
    token of a server. servers: those that were started, which ``close`` ends.
    """

    added: Callable[[list[str]], list[str]]
    known: dict[str, str] = field(default_factory=dict)
    servers: list["subprocess.Popen[str]"] = field(default_factory=list)

    def run(self, line: str) -> Result:
        """One line of a shell."""
        out, err = "", ""
        for command in self.with_known(line).split(" && "):
            words = shlex.split(command, comments=True)
            if not words:
                continue
            done = self._graphfcl(words[1:]) if words[0] == "graphfcl" else self._bash(command, words)
            out, err = out + done.out, err + done.err
            if done.code:
                return Result(done.code, out, err)
        return Result(0, out, err)

    def with_known(self, text: str) -> str:
        """A text with the address and token of the server that was started in place of those of the page."""
        for shown, meant in self.known.items():
            text = text.replace(shown, meant)
        return text

    def _graphfcl(self, words: list[str]) -> Result:
        verb, added = words[0] if words else "", self.added(words)
        if verb == "serve":
            return self._serve(words)
        return graphfcl_inside(*words, *added)

    def _bash(self, command: str, words: list[str]) -> Result:
        if words[0] in INSTALLERS:  # it would change the environment in which other tests run
            return Result(1, "", f"{words[0]} is not run by tests: mark the block as skipped, with the reason")
        if words[0] == "export":
            os.environ.update({name: value for name, _, value in (word.partition("=") for word in words[1:])})
            return Result(0, "", "")
        environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=environment, check=False)
        return Result(done.returncode, done.stdout, done.stderr)

    def _serve(self, words: list[str]) -> Result:
        """Start a server on a free port and go on when it answers."""
        command = [sys.executable, "-m", "graphfcl", *words, "--port", "0"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.servers.append(server)
        assert server.stdout is not None
        line = server.stdout.readline()
        address = SERVING.search(line)
        if address is None:
            return Result(1, line, "the server does not say its address")
        self.known[ADDRESS] = address[1]
        if address[2]:
            self.known[TOKEN] = address[2]
        for shown, meant in self.known.items():
            line = line.replace(meant, shown)
        return Result(0, line, "")

    def close(self) -> None:
        for server in self.servers:
            server.send_signal(signal.SIGTERM)
        for server in self.servers:
            server.wait(30)
