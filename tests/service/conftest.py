"""A small model whose ids are as hostile as ids may be, and servers of copies of it."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graphfcl import Graph, GraphClassifier, load_dataset
from graphfcl.graph.ids import text_array
from tests.browser import chromium
from tests.production.models import fitted
from tests.service.pages import Page, Served, serving
from tests.service.servers import Client, Servers

NAME = "synthetic:nodes=300,edges=1200,classes=8,features=60,signal=1.0"
HIDDEN = ("class-06", "class-07")
HOSTILE = (
    "a/b",
    "..",
    ".",
    "#",
    "?q=1",
    "%2F",
    "a b",
    "ü–ナ",
    "neighbours",
    "<img src=x onerror=alert(1)>",
    "a\\b",
    "'",
)


@pytest.fixture(scope="session")
def graph() -> Graph:
    """Nodes n0, n1, …; the first ones have hostile ids instead."""
    loaded, _ = load_dataset(NAME)
    ids = [*HOSTILE, *(f"n{number}" for number in range(len(HOSTILE), loaded.node_count))]
    return replace(loaded, node_ids=text_array(ids))


@pytest.fixture(scope="session")
def fitted_folder(graph: Graph, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served") / "model"
    model = GraphClassifier("sgc-ridge").fit(graph, hide_classes=HIDDEN)
    model.save(folder)
    model.wait()
    return folder


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    started = Servers(tmp_path_factory.mktemp("token") / "token")
    yield started
    started.close()


@pytest.fixture
def folder(fitted_folder: Path, tmp_path: Path) -> Path:
    """A model of this test alone."""
    return Path(shutil.copytree(fitted_folder, tmp_path / "model"))


@pytest.fixture
def server(servers: Servers, folder: Path) -> Client:
    """A server of this test alone."""
    return servers.start(folder)


@pytest.fixture(scope="session")
def shared(servers: Servers, fitted_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Client:
    """A server that tests share which change nothing."""
    return servers.start(Path(shutil.copytree(fitted_folder, tmp_path_factory.mktemp("shared") / "model")))


@pytest.fixture(scope="session")
def free(graph: Graph) -> list[str]:
    """Nodes of the hidden classes, which have no label in the model."""
    hidden = [graph.class_number(name) for name in HIDDEN]
    nodes = [str(node) for node, label in zip(graph.node_ids, graph.labels, strict=True) if label in hidden]
    return [node for node in nodes if node not in HOSTILE]


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A model of ANCHOR that knows eight classes; the nodes of class-08 and class-09 have no label."""
    made = tmp_path_factory.mktemp("page") / "model"
    fitted("anchor").save(made)
    with serving(made) as service:
        yield service


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    with chromium() as opened:
        yield opened


@pytest.fixture
def page(browser: Any, served: Served) -> Iterator[Page]:
    """The page, opened with the token; the model is as it was fitted. Nothing may be said on the console."""
    opened = Page(browser, served)
    opened.leave()  # before the rollback, which would be a change by someone else to the page of the last test
    if served.ask("GET", "/v1/model")["version"] != 1:
        served.ask("POST", "/v1/versions/1/rollback")
    opened.console()
    opened.open()
    yield opened
    assert opened.console() == []
