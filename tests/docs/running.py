"""Runs the blocks of a page in order, in a folder of their own."""

import contextlib
import doctest
import io
import os
import re
import shutil
import sys
import traceback
import types
import warnings
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import graphfcl.experiments as experiments
from graphfcl.datasets import DATA_VARIABLE
from tests.docs.blocks import ROOT, Block, Page
from tests.docs.commands import Shell
from tests.docs.small_world import small_world

FIGURE = re.compile(r"[-+−]?\d[\d,.:TZ-]*")
ELLIPSIS = "…"
MAIN = 'if __name__ == "__main__":'


class PageError(Exception):
    """A block does not do what the page says."""


class Runner:
    """What the blocks of one page share: a folder, a shell and the names of their Python."""

    def __init__(self, page: Page, folder: Path) -> None:
        self.page, self.folder = page, folder
        self.shell = Shell(page.added)
        self.names: dict[str, Any] = {}
        self.printed: dict[int, str] = {}  # by the line of a block: what it shows, with the figures of this run

    def run(self) -> None:
        os.chdir(self.folder)
        sys.path.insert(0, str(self.folder))
        os.environ.pop(DATA_VARIABLE, None)
        # A grid's processes are forked, which is quick and lets them see the same small graphs.
        experiments.run_grid = partial(experiments.run_grid, start_method="fork")
        try:
            for block in self.page.blocks:
                self._try(block)
        finally:
            self.shell.close()

    def _try(self, block: Block) -> None:
        if block.values("skip"):
            return
        text = block.text
        for value in block.values("replace"):
            old, new = value.split(" => ")
            if old not in text:
                raise PageError(f"{self._place(block)}: there is no {old!r} to replace")
            text = text.replace(old, new)
        if block.values("file"):
            path = Path(block.values("file")[0])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            return
        shown = bool(block.values("output"))
        with nullcontext() if block.values("real") else small_world():
            if block.runs == "python":
                self._python(block, self.shell.with_known(text))
            elif block.runs == "console":
                self._console(block, text, shown)
            elif block.runs == "bash":
                for line in _lines(text):
                    self._command(block, line)

    def _command(self, block: Block, line: str) -> str:
        done = self.shell.run(line)
        if done.code:
            raise PageError(
                f"{self._place(block)}: `{line}` ended with {done.code}\n{done.out[-2000:]}\n{done.err[-3000:]}"
            )
        return f"{done.out}\n{done.err}"

    def _console(self, block: Block, text: str, shown: bool) -> None:
        """A session: each line behind ``$`` is run; what stands below it is what it prints."""
        shown_now = text
        for command, expected in _session(text):
            name = re.fullmatch(r"cat (\S+)", command)
            if name and not Path(name[1]).exists():  # what the page shows of a file is how a reader makes it
                Path(name[1]).write_text(expected)
                continue
            if expected.startswith("error: "):
                done = self.shell.run(command)
                if done.code != 2:
                    raise PageError(f"{self._place(block)}: `{command}` ended with {done.code}, not with an error")
                output = done.err
            else:
                output = self._command(block, command)
            if shown:
                found = _compare(expected, output, f"{self._place(block)}: `{command}`")
                shown_now = shown_now.replace(expected, found, 1)
        if shown:
            self.printed[block.line] = shown_now

    def _python(self, block: Block, text: str) -> None:
        if re.match(r"\s*>>> ", text):
            text = "".join(example.source for example in doctest.DocTestParser().get_examples(text))
        name = f"page_block_{block.line}"
        Path(f"{name}.py").write_text(text)  # where worker processes find its functions
        module = types.ModuleType(name)
        sys.modules[name] = module
        module.__dict__.update({**self.names, "__name__": name, "__file__": f"{name}.py"})
        code = compile(text.replace(MAIN, "if True:"), f"{self.page.path.name}:{block.line}", "exec")
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            try:
                exec(code, module.__dict__)
            except Exception as error:
                raise PageError(f"{self._place(block)}: {traceback.format_exc()}") from error
        self.names.update({key: value for key, value in module.__dict__.items() if not key.startswith("__")})

    def _place(self, block: Block) -> str:
        path = self.page.path
        return f"{path.relative_to(ROOT) if path.is_relative_to(ROOT) else path.name}:{block.line}"


def _lines(text: str) -> list[str]:
    """The commands of a script, those over several lines put together."""
    return [line.strip() for line in re.sub(r"\\\n\s*", " ", text).splitlines() if line.strip() and line[0] != "#"]


def _session(text: str) -> list[tuple[str, str]]:
    """The commands of a console session, and what is shown below each."""
    parts = re.split(r"^\$ ", re.sub(r"\\\n\s*", " ", text), flags=re.MULTILINE)[1:]
    return [(first.strip(), rest) for first, _, rest in (part.partition("\n") for part in parts)]


def _compare(expected: str, output: str, place: str) -> str:
    """Every line that a page shows must come out, in order; figures count as alike, ``…`` stands for anything.

    Returns the same lines with the figures that came out.
    """
    lines, shown = iter(output.splitlines()), []
    for line in expected.splitlines():
        if line.strip() in ("", ELLIPSIS):
            shown.append(line)
            continue
        pattern = ".*".join(map(re.escape, _plain(line).split(ELLIPSIS)))
        found = next((each for each in lines if re.fullmatch(pattern, _plain(each))), None)
        if found is None:
            raise PageError(f"{place} shows\n  {line}\nwhich does not come out (after what stands above it):\n{output}")
        shown.append(line if ELLIPSIS in line else found.rstrip())
    return "".join(f"{line}\n" for line in shown)


def _plain(line: str) -> str:
    return " ".join(FIGURE.sub("#", line).split())


def run_page(page: Page, folder: Path) -> dict[int, str]:
    """Run all blocks. Returns, by the line of each session with checked output, the session as it came out."""
    runner = Runner(page, folder)
    runner.run()
    shutil.rmtree(folder / "runs", ignore_errors=True)
    return runner.printed
