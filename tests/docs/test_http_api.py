"""The page of the HTTP API has every route, every field of bodies and answers, and every kind of problem."""

import re

import pytest

from graphfcl.client import Client
from graphfcl.client.problems import KINDS
from tests.docs.blocks import ROOT

pytest.importorskip("fastapi", reason="the extra serve is not installed")


@pytest.fixture(scope="module")
def page() -> str:
    from scripts.site.http_api import http_page

    return http_page()


def test_every_route_is_there_with_its_parameters(page: str) -> None:
    from scripts.site.http_api import COMMON, description

    parts = {part.partition("`")[0]: part for part in re.split(r"^### `", page, flags=re.MULTILINE)[1:]}
    for path, methods in description()["paths"].items():
        for method, route in methods.items():
            part = parts[f"{method.upper()} {path}"]
            assert f"{{: #{route['operationId']} }}" in part
            assert route["description"].split()[0] in part
            for parameter in route.get("parameters", []):
                assert f"| `{parameter['name']}` |" in part or parameter["name"].lower() in COMMON
            assert ("**Body.**" in part) == ("requestBody" in route)
            assert ("Client: `" in part) == hasattr(Client, route["operationId"])


def test_every_type_that_is_linked_is_there(page: str) -> None:
    assert set(re.findall(r"\(#type-(\w+)\)", page)) == set(re.findall(r"\{: #type-(\w+) \}", page))
    assert "`unknown_score`" in page


def test_every_kind_of_problem_is_there_with_its_status(page: str) -> None:
    for kind, (status, title) in KINDS.items():
        assert f"\n| `{kind}` | {status} | {title}" in page


def test_routes_are_described_with_imperative_sentences() -> None:
    from scripts.site.http_api import description

    for path, methods in description()["paths"].items():
        for method, route in methods.items():
            first = route["description"].partition("\n\n")[0]
            assert re.match(r"[A-Z][a-z]+ .*\.$", " ".join(first.split())), (method, path)
            assert first.split()[0] not in ("The", "All", "Whether", "How", "Nodes", "Labels"), (method, path)


def test_meanings_are_read_from_a_docstring() -> None:
    from graphfcl.service.descriptions import split_docstring

    text = """A label.

    Attributes:
        role: Use of the label, such
            as the fit.
        note: A text.
    """
    assert split_docstring(text) == ("A label.", {"role": "Use of the label, such as the fit.", "note": "A text."})


def test_every_field_and_parameter_has_a_meaning(page: str) -> None:
    rows = re.findall(r"^\| `.*\|$", page, flags=re.MULTILINE)
    assert not [row for row in rows if re.search(r"\|\s*\|$", row)]


def test_the_guide_leads_to_the_reference() -> None:
    assert "reference/http.md" in (ROOT / "docs" / "service.md").read_text()
