"""A real server and a real browser for tests of the page."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

DECISIONS = "#decisions li[data-state]"
PATIENCE = 20.0  # seconds that anything may take on a busy machine
NAMED = """
if (location.protocol === "http:") localStorage["graphfcl.name"] ??= "ann";
"""  # the page asks once who is labelling
LOSE = """
window.kept?.();
window.kept = null;
window.honest ??= window.fetch;
const [what] = arguments;
const free = new Promise((resolve) => { if (what === "held") window.kept = resolve; else resolve(); });
window.fetch = async (address, options) => {
  const lost = new TypeError("lost");
  if (options.method === "GET") {
    if (what === "reads") throw lost;
    return window.honest(address, options);
  }
  if (options.headers["Idempotency-Key"]) (window.keys ??= []).push(options.headers["Idempotency-Key"]);
  if (what === "changes") throw lost;
  await free;
  const answer = await window.honest(address, options);
  if (what === "answers") throw lost;
  return answer;
};
"""


@dataclass(frozen=True)
class Served:
    """A server: its address, and the token that changes need."""

    address: str
    token: str

    def ask(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Any:
        """A request past the page, as another user would send it."""
        sent = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json", **(headers or {})}
        data = None if body is None else json.dumps(body).encode()
        with urlopen(Request(self.address + path, data, sent, method=method), timeout=PATIENCE) as answer:
            return json.loads(answer.read())


@contextmanager
def serving(folder: Path) -> Iterator[Served]:
    """``graphfcl serve`` on a free port."""
    command = [sys.executable, "-m", "graphfcl", "serve", "--model", str(folder), "--port", "0", "--device", "cpu"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        address, _, token = line.split()[-1].partition("#token=")
        yield Served(address.rstrip("/"), token)
    finally:
        process.terminate()
        process.wait(PATIENCE)


@dataclass(frozen=True)
class Page:
    """The page as a user has it: what stands there, and keys."""

    browser: Any
    served: Served

    def open(self, width: int = 1280, scheme: str = "light", *, height: int = 900, token: bool = True) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        self.browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": NAMED})
        self.browser.get("about:blank")  # an address that differs in its fragment alone is not loaded again
        self.browser.get(f"{self.served.address}/" + (f"#token={self.served.token}" if token else ""))
        self.wait(lambda: self.text("#status-message") == "Ready." and self.text("#question"), "it is ready")

    def leave(self) -> None:
        """Leave the page, which ends its leases, and forget what its tab remembers, as if the tab were closed."""
        self.lose("nothing")
        self.browser.get(f"{self.served.address}/static/icon.svg")
        self.browser.execute_script("sessionStorage.clear()")

    def wait(self, condition: Callable[[], Any], what: str) -> Any:
        from selenium.common.exceptions import StaleElementReferenceException, TimeoutException
        from selenium.webdriver.support.ui import WebDriverWait

        waiting = WebDriverWait(self.browser, PATIENCE, 0.05, [StaleElementReferenceException])
        try:
            return waiting.until(lambda _: condition())
        except TimeoutException:
            status = f"{self.text('#status-message')!r}, {self.browser.get_log('browser')}"
            raise AssertionError(f"{what}: did not come about; the status line says {status}") from None

    def all(self, selector: str) -> list[Any]:
        return self.browser.find_elements("css selector", selector)

    def texts(self, selector: str) -> list[str]:
        """What the elements say, also those that are scrolled or folded away."""
        script = "return [...document.querySelectorAll(arguments[0])].map(each => each.textContent.trim())"
        return self.browser.execute_script(script, selector)

    def text(self, selector: str) -> str:
        return " ".join(self.texts(selector))

    def press(self, *keys: str) -> None:
        """Keys, one after the other, wherever the focus is."""
        from selenium.webdriver import ActionChains

        chain = ActionChains(self.browser)
        for key in keys:
            chain.send_keys(key)
        chain.perform()

    def click(self, selector: str, text: str | None = None) -> None:
        """Press the first element that holds a text; a panel may be drawn again meanwhile."""

        def clicked() -> bool:
            matches = [each for each in self.all(selector) if text is None or text in each.text]
            if matches:
                self.browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", matches[0])
                matches[0].click()
            return bool(matches)

        self.wait(clicked, f"{selector} with {text} is pressed")

    def enter(self, selector: str, text: str) -> None:
        """Put the focus into a field, in the place of what stands there type a text, and press Enter."""
        from selenium.webdriver.common.keys import Keys

        script = "const field = document.querySelector(arguments[0]); field?.select(); return Boolean(field)"
        self.wait(lambda: self.browser.execute_script(script, selector), f"{selector} has the focus")
        self.press(text, Keys.ENTER)

    def shows(self, selector: str, words: str) -> None:
        self.wait(lambda: words in self.text(selector), f"{selector} shows {words!r}")

    def says(self, words: str) -> None:
        """What the status line says."""
        self.shows("#status-message", words)

    def lose(self, what: str) -> None:
        """Until it is called with "nothing", lose requests that change the model ("changes"), the answers to
        them ("answers"), or requests that read ("reads"); or keep changes back until then ("held")."""
        self.browser.execute_script(LOSE, what)

    def be_still(self) -> None:
        """Let the page ask for nothing by itself, until it is opened again."""
        self.browser.execute_script("for (let timer = 1; timer < 10000; timer += 1) clearInterval(timer)")

    def version(self) -> int:
        words = self.text("#model-line strong").split()
        return int(words[1]) if len(words) == 2 else 0

    def show(self, node: str) -> None:
        """Search for a node and show it."""
        from selenium.webdriver.common.keys import Keys

        self.press("/")
        self.press(node, Keys.ENTER)
        closed = "return document.getElementById('search').value === ''"  # the search is done and has lost the focus
        self.wait(lambda: self.browser.execute_script(closed), f"the search for {node} is done")
        self.wait(lambda: self.text("#card-name") == node and node in self.text("#question"), f"{node} is shown")

    def ended(self) -> bool:
        """Whether every node has a label. Second looks, which the model may ask for at any time, are skipped."""
        if self.text("#queue-reason strong") == "Second look.":
            self.press(" ")
        return self.text("#queue-reason") == "Every node has a label."

    def console(self) -> list[str]:
        """What was written to the console, but for the icon that a browser looks for beside a file."""
        messages = [str(entry["message"]) for entry in self.browser.get_log("browser")]
        return [each for each in messages if "/favicon.ico" not in each]
