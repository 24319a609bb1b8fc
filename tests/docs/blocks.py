"""The fenced blocks of the pages, and the marks that say how a block is tried.

A mark is a comment of HTML above a block, which no reader sees:

``<!-- test: skip: REASON -->``      the block is not run, and why
``<!-- test: file: NAME -->``        the block is a file of that name, which later blocks use
``<!-- test: replace: OLD => NEW -->``  the block is run with another text in place of one
``<!-- test: output -->``            what the page shows is what comes out, word by word; figures may differ
``<!-- test: real -->``              the graphs themselves, not small ones of the same form

One mark is of the whole page, wherever it stands:

``<!-- test: add: WORDS => OPTIONS -->``  options for commands that begin with these words, to take less time
"""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>[\w-]*)[^\n]*\n(?P<text>.*?)^(?P=indent)```$", re.DOTALL | re.MULTILINE
)
MARK = re.compile(r"<!-- test: (\w+)(?:: (.*?))? -->", re.DOTALL)
MARKS_ABOVE = re.compile(r"(?:<!-- test: [^\n]*? -->\s*)+\Z")
OF_A_BLOCK = {"skip", "file", "replace", "output", "real"}
OF_A_PAGE = {"add"}
WITH_A_VALUE = {"skip", "file", "replace", "add"}
COMMANDS = ("graphfcl ", "make ", "pip ", "python ", "#!/bin/bash", "curl ", "mkdir ")


@dataclass(frozen=True)
class Block:
    """A fenced block: where it begins, its language, its text without indentation, and its marks."""

    line: int
    language: str
    text: str
    marks: tuple[tuple[str, str], ...]

    def values(self, kind: str) -> list[str]:
        return [value for name, value in self.marks if name == kind]

    @property
    def runs(self) -> str:
        """How the block is run: bash, console, python, or nothing if it is no code."""
        if self.language in ("bash", "console", "python", "pycon"):
            return "python" if self.language == "pycon" else self.language
        if self.language in ("", "text", "shell", "sh"):
            if re.search(r"^\$ ", self.text, re.MULTILINE):
                return "console"
            if self.text.startswith(COMMANDS):
                return "bash"
        return ""


@dataclass(frozen=True)
class Page:
    """A page: its blocks in order, and its marks."""

    path: Path
    blocks: tuple[Block, ...]
    marks: tuple[tuple[str, str], ...]

    def added(self, words: list[str]) -> list[str]:
        """The options that a command gets besides its own."""
        pairs = [value.split(" => ") for name, value in self.marks if name == "add"]
        return [
            word for start, options in pairs if start.split() == words[: len(start.split())] for word in options.split()
        ]


def read_page(path: Path, text: str | None = None) -> Page:
    """The blocks and marks of a page; ValueError if a mark is not known or says too little."""
    text = path.read_text() if text is None else text
    blocks = []
    for found in FENCE.finditer(text):
        indent = len(found["indent"])
        above = MARKS_ABOVE.search(text[: found.start()].rstrip(" "))
        marks = _marks(above.group() if above else "")
        lines = [line[indent:] for line in found["text"].splitlines()]
        number = text.count("\n", 0, found.start()) + 1
        blocks.append(Block(number, found["language"], "\n".join(lines) + "\n", marks))
    outside = re.sub(r"`[^`\n]*`", "", FENCE.sub("", text))
    page = Page(path, tuple(blocks), tuple(mark for mark in _marks(outside) if mark[0] in OF_A_PAGE))
    loose = len([mark for mark in _marks(outside) if mark[0] in OF_A_BLOCK])
    used = sum(mark[0] in OF_A_BLOCK for block in blocks for mark in block.marks)
    if loose != used:
        raise ValueError(f"{path.name}: a mark stands above no block")
    return page


def _marks(text: str) -> tuple[tuple[str, str], ...]:
    found = [(kind, value.strip()) for kind, value in MARK.findall(text)]
    for kind, value in found:
        if kind not in OF_A_BLOCK | OF_A_PAGE:
            raise ValueError(f"there is no mark {kind!r}")
        if (kind in WITH_A_VALUE) != bool(value):
            raise ValueError(f"the mark {kind!r} {'says nothing' if not value else 'takes no value'}")
        if kind in ("replace", "add") and " => " not in value:
            raise ValueError(f"the mark '{kind}: {value}' has no =>")
        if kind == "skip" and len(value.split()) < 3:
            raise ValueError(f"the mark 'skip: {value}' gives no reason")
    return tuple(found)


@cache
def page_paths() -> tuple[Path, ...]:
    """README and all pages of the docs that have a block that can be run."""
    paths = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return tuple(path for path in paths if any(block.runs for block in read_page(path).blocks))
