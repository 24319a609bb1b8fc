"""The files of the page: what the content security policy forbids, and colours that can be read."""

import re
from html.parser import HTMLParser
from importlib.resources import files
from itertools import combinations, pairwise
from pathlib import Path

import pytest

from tests.report.test_styles import SIGHTS, difference

STATIC = Path(str(files("graphfcl") / "service" / "static"))
MODULES = sorted(STATIC.glob("*.js"))
LONGEST = 300  # lines


class Markup(HTMLParser):
    """All elements of a page with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))


def page() -> Markup:
    return Markup((STATIC / "index.html").read_text())


def test_nothing_is_inline_and_nothing_comes_from_elsewhere() -> None:
    for tag, attributes in page().elements:
        assert tag != "style"
        assert tag != "script" or attributes.get("src"), "scripts are files"
        for name, value in attributes.items():
            assert name != "style", f"{tag} has a style of its own"
            assert not name.startswith("on"), f"{tag} has a handler of its own"
            assert name not in ("src", "href") or (value or "").startswith(("/static/", "#")), value


def test_every_file_that_is_named_is_there() -> None:
    named = [attributes.get("src") or attributes.get("href") for _, attributes in page().elements]
    for address in filter(None, named):
        assert address.startswith("#") or (STATIC / address.removeprefix("/static/")).is_file(), address
    for module in MODULES:
        for other in re.findall(r'from "(.*?)"', module.read_text()):
            assert (STATIC / other).is_file(), f"{module.name} imports {other}"
    assert "Permission is hereby granted" in (STATIC / "vendor" / "LICENSE-cytoscape").read_text()


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.name)
def test_a_module_puts_in_texts_alone(module: Path) -> None:
    text = module.read_text()
    forbidden = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|\.cookie"
    if module.name != "signature.js":  # the name of a person is kept in the browser, and nothing else
        forbidden += "|localStorage"
    assert re.findall(forbidden, text) == []
    assert re.findall(r"https?://", text) == []
    assert text.startswith("/**"), "it says what it is"
    assert len(text.splitlines()) < LONGEST


def test_modules_do_not_import_in_a_circle() -> None:
    needed = {path.name: re.findall(r'from "\./(.*?)"', path.read_text()) for path in MODULES}
    done: list[str] = []
    while len(done) < len(needed):
        ready = [name for name, others in needed.items() if name not in done and set(others) <= set(done)]
        assert ready, f"a circle among {sorted(set(needed) - set(done))}"
        done += ready


def test_every_field_and_panel_has_a_name() -> None:
    elements = page().elements
    labelled = {attributes.get("for") for tag, attributes in elements if tag == "label"}
    ids = {attributes.get("id") for _, attributes in elements}
    for tag, attributes in elements:
        if tag == "input":
            assert attributes["id"] in labelled
        if tag == "section":
            assert attributes["aria-labelledby"] in ids


def palettes() -> list[dict[str, str]]:
    """The colours of light and of dark."""
    blocks = re.findall(r":root \{(.*?)\}", (STATIC / "page.css").read_text(), re.DOTALL)
    colours = [dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block)) for block in blocks]
    return [each for each in colours if "ground" in each]


def luminance(colour: str) -> float:
    """Relative luminance of WCAG 2."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("place", [0, 1], ids=["light", "dark"])
def test_texts_stand_out_from_their_ground(place: int) -> None:
    palette = palettes()[place]
    pairs = [(text, "surface") for text in ("text", "quiet", "accent", "caution", "error", "good")]
    pairs += [("text", "ground"), ("text", "raised"), ("text", "accent-soft"), ("accent-text", "accent")]
    for text, ground in pairs:
        low, high = sorted((luminance(palette[text]), luminance(palette[ground])))
        assert (high + 0.05) / (low + 0.05) >= 4.5, f"{text} on {ground}"
    for number in range(8):
        low, high = sorted((luminance(palette[f"class-{number}"]), luminance(palette["surface"])))
        assert (high + 0.05) / (low + 0.05) >= 3.0, f"class {number}"


@pytest.mark.parametrize("sight", SIGHTS)
@pytest.mark.parametrize("place", [0, 1], ids=["light", "dark"])
def test_colours_of_classes_differ_for_every_eye(place: int, sight: str) -> None:
    palette = palettes()[place]
    names = ["unknown", *(f"class-{number}" for number in range(8))]
    for one, other in combinations(names, 2):
        assert difference(palette[one], palette[other], sight) > 15, f"{one} and {other}"


def test_headings_go_down_by_one() -> None:
    levels = [int(tag[1]) for tag, _ in page().elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
