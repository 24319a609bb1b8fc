"""A development graph of Python packages from the JSON pages of a package index; never a graph of the benchmark.

python -m scripts.sources.python_packages OUT.npz [--index https://pypi.org] [--limit 9000] walks requirements, extras
included, from well-known packages, which takes some minutes. A node is a package, an edge a requirement, the features
are the words of name and summary. The class is a Topic classifier of at most two levels (Topic :: Internet :: WWW/HTTP
:: Session is Internet :: WWW/HTTP) with at least ``min_packages`` packages: the deepest of a package, and of several
the rarest. Packages without one have no label; those with neither label nor edge are left out. The index changes from
day to day, and the graph with it.
"""

import argparse
import http.client
import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
from scipy import sparse

from graphfcl.errors import InputError
from graphfcl.graph import Graph, build_graph, write_npz
from scripts.sources.words import word_features

SEEDS = """
aiida-core aiohttp ansible ansible-core apache-airflow apache-beam apache-superset arches astropy awscli azure-cli
bokeh buildbot ckan celery cookiecutter dagster dask datasette dbt-core django django-cms django-oscar fastapi
flask flask-appbuilder frappe geopandas gensim great-expectations homeassistant horizon invenio invenio-app-rdm
ipython jupyterlab kedro keras keystone kivy kolibri langchain langchain-community llama-index localstack luigi
mailman matplotlib mayavi mercurial mitmproxy mkdocs mlflow mne mopidy mypy napari netbox networkx nibabel nipype
nltk nova octoprint odoo openstacksdk opentelemetry-instrumentation orange3 pandas pelican pillow plone plotly
poetry prefect pretix products.cmfplone psychopy pwntools pycbc pygame pyinstaller pylint pymc pyqt5 pyramid
pyspark pytest pytorch-lightning qiskit qutebrowser ray readthedocs-sphinx-ext salt scapy scikit-image
scikit-learn scipy scrapy seaborn sentry-sdk setuptools snakemake spacy spyder sqlalchemy statsmodels streamlit
sympy tensorflow torch tornado tox transformers trytond turbogears2 twisted wagtail weblate xonsh yt zope
"""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class Package:
    """``topics`` without "Topic ::", as texts with " :: " between the levels; ``requires``: normalised names."""

    name: str
    summary: str
    topics: tuple[str, ...]
    requires: tuple[str, ...]


def normalised(name: str) -> str:
    """The name as indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read_package(text: str) -> Package:
    """The package of one JSON page of an index."""
    info = json.loads(text)["info"]
    classifiers = (classifier.split(" :: ") for classifier in info.get("classifiers") or ())
    requirements = (NAME.match(requirement.strip()) for requirement in info.get("requires_dist") or ())
    return Package(
        name=normalised(info["name"]),
        summary=info.get("summary") or "",
        topics=tuple(" :: ".join(levels[1:3]) for levels in classifiers if levels[0] == "Topic" and levels[1:]),
        requires=tuple(sorted({normalised(match[0]) for match in requirements if match})),
    )


def walk(read: Callable[[str], str | None], seeds: Iterable[str], limit: int, threads: int = 8) -> Iterator[Package]:
    """Packages in rounds of growing distance from the seeds, at most ``limit``; ``read`` gives a page or None."""
    known = {normalised(seed) for seed in seeds}
    names = sorted(known)
    with ThreadPoolExecutor(threads) as pool:
        while names and limit > 0:
            found = [read_package(text) for text in pool.map(read, names[:limit]) if text is not None]
            limit -= len(found)
            yield from found
            names = sorted({name for package in found for name in package.requires} - known)
            known.update(names)


class Index:
    """Pages of a package index, over one connection a thread."""

    def __init__(self, address: str) -> None:
        self.host, self.path, self.local = urlsplit(address).netloc, urlsplit(address).path, threading.local()

    def page(self, name: str) -> str | None:
        """The JSON page of a package; None without one."""
        for _ in range(3):
            try:
                if not hasattr(self.local, "connection"):
                    self.local.connection = http.client.HTTPSConnection(self.host, timeout=60)
                self.local.connection.request("GET", f"{self.path}/pypi/{name}/json")
                with self.local.connection.getresponse() as answer:
                    content = answer.read()
                if answer.status in (200, 404):
                    return content.decode() if answer.status == 200 else None
                failure = f"status {answer.status}"
            except (OSError, http.client.HTTPException) as error:
                failure = str(error)
                del self.local.connection
        raise InputError(f"{self.host} does not give the page of {name} ({failure}): try again later.")


def classes_of(packages: list[Package], min_packages: int) -> list[str]:
    """The class of each package, "" for none."""
    choices = [{" :: ".join(t.split(" :: ")[:depth]) for t in each.topics for depth in (1, 2)} for each in packages]
    counts = Counter(topic for each in choices for topic in each)
    allowed = {topic for topic, count in counts.items() if count >= min_packages}
    while True:
        # A class that loses too many packages to rarer ones is given up, and its packages choose again.
        chosen = [max(each & allowed, key=lambda t: (t.count("::"), -counts[t], t), default="") for each in choices]
        small = {topic for topic, count in Counter(chosen).items() if topic and count < min_packages}
        small |= allowed - set(chosen)
        if not small:
            return chosen
        allowed -= small


def build_packages(packages: Iterable[Package], *, min_packages: int = 60, min_nodes: int = 5) -> Graph:
    """The graph of the packages, in the order of their names."""
    found = sorted({package.name: package for package in packages}.values(), key=lambda package: package.name)
    chosen = classes_of(found, min_packages)
    if not any(chosen):
        raise InputError(f"no Topic classifier has {min_packages} packages: raise --limit.")
    number = {package.name: position for position, package in enumerate(found)}
    edges = {
        (number[package.name], number[other])
        for package in found
        for other in package.requires
        if other in number and other != package.name
    }
    ends = np.array(sorted(edges), dtype=np.int64).reshape(-1, 2)
    kept = np.array([topic != "" for topic in chosen])
    kept[ends.ravel()] = True
    adjacency = sparse.coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(len(found), len(found)))
    nodes = np.flatnonzero(kept)
    features, words = word_features([f"{found[node].name} {found[node].summary}" for node in nodes], min_nodes)
    graph = build_graph(
        adjacency.tocsr()[nodes][:, nodes],
        features,
        np.array(chosen)[nodes],
        node_ids=[found[node].name for node in nodes],
        feature_names=words,
        name="packages",
        where="the index",
    )
    return replace(graph, column_min_nodes=min_nodes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--index", default="https://pypi.org")
    parser.add_argument("--limit", type=int, default=9000)
    arguments = parser.parse_args()
    graph = build_packages(walk(Index(arguments.index).page, SEEDS.split(), arguments.limit))
    write_npz(graph, arguments.out)
    print(f"{graph!r}, same-class edges {graph.same_class_share:.3f}, {arguments.out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
