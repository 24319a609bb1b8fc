"""What is printed of other people's text."""

import json

from hypothesis import given
from hypothesis import strategies as st

from graphfcl import DivergenceError, InputError
from graphfcl.errors import CONTROL, counted, printable, printable_json, quoted

TEXTS = st.text(st.characters()) | st.text("a\x00\x1b\x7f\x9b\n\u061c\u200e\u202e\u2069\u2028\ufeff\ud800é👩\u200d💻")


@given(TEXTS)
def test_nothing_is_left_that_a_terminal_obeys(text: str) -> None:
    for shown in (printable(text), quoted(text), str(InputError(text)), str(DivergenceError(text))):
        assert not CONTROL.search(shown)
        shown.encode()
    assert printable(printable(text)) == printable(text)


@given(TEXTS)
def test_json_keeps_its_values(text: str) -> None:
    shown = printable_json(json.dumps({text: [text]}, ensure_ascii=False, indent=1))
    assert json.loads(shown) == {text: [text]}
    assert not CONTROL.search(shown.replace("\n", ""))


def test_letters_stay_as_they_are() -> None:
    assert (
        printable("Größe, 名前, \u05e9\u05dc\u05d5\u05dd, 👩\u200d💻")
        == "Größe, 名前, \u05e9\u05dc\u05d5\u05dd, 👩\u200d💻"
    )
    assert printable("\x1b[31mred\u202e") == r"\x1b[31mred\u202e"


def test_a_long_text_is_cut_short() -> None:
    assert quoted("x" * 500_000) == f"'{'x' * 60}'… (500,000 characters)"


def test_one_is_singular() -> None:
    said = [counted(number, word) for number, word in ((0, "node"), (1, "node"), (1, "class"), (2000, "class"))]
    assert said == ["0 nodes", "1 node", "1 class", "2,000 classes"]
