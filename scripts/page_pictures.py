"""Make the pictures of docs/page.md: ``python -m scripts.page_pictures MODEL``; MODEL is what scripts.demo_model made.

It serves a copy of the model, teaches it a little as a user would, and takes pictures in Chromium.
"""

import io
import shutil
import sys
import tempfile
from pathlib import Path

from PIL import Image

from tests.browser import chromium
from tests.service.pages import Page, serving

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
LARGEST = 300_000  # bytes
COLOURS = 255
TAUGHT = {"fonts": ("fonts-dejavu", "fonts-noto-core", "fonts-urw-base35"), "games": ("freeciv", "gnuchess", "scummvm")}
COLLECTED = ("kicad", "arduino", "gtkwave")


def teach(page: Page) -> None:
    """Three nodes each of two classes, and three nodes in the basket."""
    for name, nodes in TAUGHT.items():
        for node in nodes:
            page.show(node)
            page.press("n")
            page.enter("dialog[open] input", name)
            page.shows("#decisions", node)
    page.wait(lambda: page.texts("#status-work") == [""], "all is learned")
    page.wait(lambda: "games" in page.text("#catalogue"), "the catalogue has it")


def collect(page: Page) -> None:
    for node in COLLECTED:
        page.show(node)
        page.press("b")
    page.browser.execute_script("document.getElementById('basket-name').value = 'electronics'")
    page.wait(lambda: page.all("#basket-meter .bar-fill"), "their spread is measured")


def settled(page: Page) -> None:
    page.wait(lambda: page.all("#groups article form button:enabled"), "groups are there")
    page.wait(lambda: "computed" not in page.text("#card-why") and page.all("#picture canvas"), "the card is there")
    page.browser.execute_script("document.activeElement.blur(); scrollTo(0, 0)")
    page.browser.execute_async_script("const done = arguments[0]; requestAnimationFrame(() => setTimeout(done, 400))")


def take(page: Page, name: str) -> None:
    path = IMAGES / f"{name}.png"
    with Image.open(io.BytesIO(page.browser.get_screenshot_as_png())) as picture:
        picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    size = path.stat().st_size
    assert size < LARGEST, f"{path} has {size:,} bytes"
    print(f"wrote {path.relative_to(IMAGES.parents[1])}, {size:,} bytes")


def main(model: Path) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        copy = Path(temporary) / "model"
        shutil.copytree(model, copy)
        with serving(copy) as served, chromium() as browser:
            page = Page(browser, served)
            for name, width, height, scheme in (
                ("page-desktop", 1440, 1080, "light"),
                ("page-dark", 1440, 1080, "dark"),
                ("page-phone", 390, 1250, "light"),
            ):
                page.open(width, scheme, height=height)
                if name == "page-desktop":
                    teach(page)
                if width > 600:
                    collect(page)
                page.press("g")
                settled(page)
                take(page, name)
                if name == "page-desktop":
                    page.click("#tab-map")
                    page.wait(lambda: page.texts("#map-legend li"), "the map is drawn")
                    take(page, "page-map")
                    page.click("#tab-node")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
