"""Every message of the page on troubleshooting is one that the source can print."""

import ast
import re
from functools import cache

import pytest

from tests.docs.blocks import FENCE, ROOT

PAGE = (ROOT / "docs" / "troubleshooting.md").read_text()
MESSAGES = re.findall(r"^### (.+)$", FENCE.sub("", PAGE), re.MULTILINE)
PLACEHOLDER = re.compile(r"\b[A-Z]{2,}\b|…")
EXCEPT = {"UTF", "GPU", "CSV"}  # words in capitals that a message has itself


@cache
def texts() -> tuple[str, ...]:
    """All texts of the source; adjacent ones are joined, and a text with values counts in pieces."""
    found = []
    for path in sorted((ROOT / "src").rglob("*.py")):
        tree = ast.parse(path.read_text())
        found += [
            node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
        ]
    return tuple(found)


def fixed_words(message: str) -> list[str]:
    """The parts of a message between its placeholders; parts of a single word are left out."""
    marked = PLACEHOLDER.sub(lambda match: match[0] if match[0] in EXCEPT else "\0", message)
    return [piece.strip(" :;,.()`'") for piece in marked.split("\0") if len(piece.split()) > 1]


def test_there_are_messages_of_all_kinds() -> None:
    assert len(MESSAGES) >= 30
    assert len(re.findall(r"^## ", PAGE, re.MULTILINE)) == 8


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_is_one_of_the_source(message: str) -> None:
    pieces = fixed_words(message)
    assert pieces, message
    missing = [piece for piece in pieces if not any(piece in text for text in texts())]
    assert missing == []


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_says_why_and_what_to_do(message: str) -> None:
    below = PAGE[PAGE.index(f"### {message}\n") :].removeprefix("###").partition("\n#")[0]
    assert "Why: " in below
    assert "Do: " in below


def test_a_message_that_nobody_prints_is_found() -> None:
    (piece,) = fixed_words("FILE was eaten by a dog")
    assert not any(piece in text for text in texts())
