"""Record how five nodes are labelled on the page: ``python -m scripts.page_recording MODEL``.

MODEL is what scripts.demo_model made; a copy of it is taught. The labels are Debian's own sections. The recording,
an animated GIF, is that of README.md and docs/page.md.
"""

import io
import shutil
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from PIL import Image
from selenium.webdriver.common.keys import Keys

from graphfcl import load_dataset
from tests.browser import chromium
from tests.service.pages import Page, serving

RECORDING = Path(__file__).resolve().parents[1] / "docs" / "images" / "labelling.gif"
LARGEST = 2_000_000  # bytes
COLOURS = 64
WIDTH, HEIGHT = 1200, 760
NODES = 5
LOOK, KEY, TYPED, END = 1500, 700, 250, 4000  # milliseconds that a picture stays
CAPTION = """
let key = document.getElementById("recorded-key");
if (!key) {
  key = document.body.appendChild(document.createElement("kbd"));
  key.id = "recorded-key";
  Object.assign(key.style, {position: "fixed", left: "50%", bottom: "60px", transform: "translateX(-50%)",
    font: "600 28px system-ui", padding: "10px 22px", borderRadius: "10px", background: "#1b1f24", color: "#fff",
    zIndex: 9999});
}
key.textContent = arguments[0];
key.hidden = arguments[0] === "";
key.style.display = key.hidden ? "none" : "";
"""


@dataclass
class Recording:
    """Pictures of a page, and how long each stays."""

    page: Page
    pictures: list[Image.Image] = field(default_factory=list)
    times: list[int] = field(default_factory=list)

    def take(self, time: int, key: str = "") -> None:
        """A picture that stays for some milliseconds; key: a key that is shown as pressed."""
        self.page.browser.execute_script(CAPTION, key)
        with Image.open(io.BytesIO(self.page.browser.get_screenshot_as_png())) as picture:
            self.pictures.append(picture.convert("RGB"))
        self.times.append(time)
        self.page.browser.execute_script(CAPTION, "")

    def save(self, path: Path) -> None:
        """Write the pictures with one palette, so that what does not change takes no bytes."""
        palette = self.pictures[-1].quantize(COLOURS, dither=Image.Dither.NONE)
        first, *rest = [each.quantize(palette=palette, dither=Image.Dither.NONE) for each in self.pictures]
        first.save(path, save_all=True, append_images=rest, duration=self.times, loop=0, optimize=False)
        size = path.stat().st_size
        assert size <= LARGEST, f"{path} has {size:,} bytes"
        print(f"wrote {path.name}, {len(self.pictures)} pictures, {sum(self.times) / 1000:.0f} s, {size:,} bytes")


def label_next(page: Page, recording: Recording, sections: dict[str, str]) -> None:
    """Give the node that is shown its section: by the key of the class, or as a new class."""
    page.wait(lambda: page.text("#card-name") in page.text("#question"), "the card is that of the question")
    page.wait(lambda: "computed" not in page.text("#card-why") and page.all("#picture canvas"), "the card is there")
    node = page.text("#card-name")
    section = sections[node]
    recording.take(LOOK)
    keys = dict(zip(page.texts(".class-key span"), page.texts(".class-key kbd"), strict=False))
    if section in keys:
        recording.take(KEY, keys[section])
        page.press(keys[section])
    else:
        recording.take(KEY, "n")
        page.press("n")
        page.wait(lambda: page.all("dialog[open] input"), "the name is asked for")
        for letter in section:
            page.press(letter)
            recording.take(TYPED)
        recording.take(KEY, "Enter")
        page.press(Keys.ENTER)
    page.shows("#decisions", node)
    page.wait(lambda: page.text("#card-name") not in ("", node), "the next node is shown")


def main(model: Path) -> None:
    graph, _ = load_dataset("debian")
    sections = {node: graph.class_names[label] for node, label in zip(graph.node_ids, graph.labels, strict=True)}
    with tempfile.TemporaryDirectory() as temporary:
        copy = Path(temporary) / "model"
        shutil.copytree(model, copy)
        with serving(copy) as served, chromium() as browser:
            page = Page(browser, served)
            page.open(WIDTH, height=HEIGHT)
            page.press("g")
            recording = Recording(page)
            for _ in range(NODES):
                label_next(page, recording, sections)
            page.wait(lambda: page.texts("#status-work") == [""], "all is learned")
            recording.take(END)
            recording.save(RECORDING)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
