"""The site is built without a warning, loads nothing from elsewhere, and works in a browser."""

import re
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import graphfcl
from tests.browser import chromium

pytestmark = pytest.mark.long
REFERENCE = ("commands/run", "http", "python/production")
SEARCH = "(each) => each.shadowRoot && each.shadowRoot.querySelector('dialog[open]')"
LOADED = re.compile(r"<(?:script|link|img|iframe|source|video|audio)\b[^>]*?\b(?:src|href)=[\"']?([^\"'\s>]+)")


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("zensical", reason="the extra docs is not installed")
    from scripts.site.__main__ import build

    return build(tmp_path_factory.mktemp("built"))


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 30
    for page in pages:
        outside = [target for target in LOADED.findall(page.read_text()) if re.match(r"(https?:)?//", target)]
        assert outside == [], page
    for style in site.rglob("*.css"):
        assert not re.search(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//", style.read_text()), style


def test_every_public_name_has_an_anchor(site: Path) -> None:
    text = "".join(page.read_text() for page in (site / "reference" / "python").glob("*.html"))
    for name in graphfcl.__all__:
        assert f'id="graphfcl.{name}"' in text, name


def in_window(browser: Any, width: int) -> None:
    size = {"width": width, "height": 850, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def search_is_open(browser: Any) -> bool:
    """Click on the button of the search, which works once the page's script has run."""
    from selenium.webdriver.common.by import By

    browser.find_element(By.CSS_SELECTOR, ".md-search__button").click()
    return bool(browser.execute_script(f"return [...document.querySelectorAll('*')].some({SEARCH})"))


def results(browser: Any) -> list[str]:
    """What the search lists."""
    script = f"""
        const dialog = [...document.querySelectorAll('*')].find({SEARCH});
        return [...dialog.shadowRoot.querySelectorAll('[role=listbox] a')].map((each) => each.textContent);
    """
    return list(browser.execute_script(script))


def test_pages_fit_a_phone_and_search_finds_words(address: str) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    with chromium() as browser:
        for width in (1300, 390):
            in_window(browser, width)
            for page in ("index", "tutorial", "methods", *(f"reference/{name}" for name in REFERENCE)):
                browser.get(f"{address}/{page}.html")
                wide = browser.execute_script("return document.documentElement.scrollWidth - window.innerWidth")
                assert wide <= 0, (page, width)
        in_window(browser, 1300)
        browser.get(f"{address}/index.html")
        WebDriverWait(browser, 30).until(search_is_open)
        browser.switch_to.active_element.send_keys("rollback")
        WebDriverWait(browser, 30).until(lambda _: any("rollback" in found.lower() for found in results(browser)))
        severe = [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
        assert [message for message in severe if "favicon" not in message] == []
