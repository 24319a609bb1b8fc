"""The reference says everything: fields of result.json, public names, commands."""

import json
from pathlib import Path

import pytest

import graphfcl
from scripts.site.commands import DOCS, GUIDES, command_pages
from scripts.site.reference import public_names, python_pages
from scripts.site.staging import site_text
from tests.cli.command import graphfcl_inside
from tests.cli.verbs import COMMANDS
from tests.docs.blocks import ROOT


def test_every_field_of_a_result_is_described(tmp_path: Path) -> None:
    graph = "synthetic:nodes=200,edges=800,classes=6,features=30"
    done = graphfcl_inside("run", "--graph", graph, "--method", "sgc-ridge", "--out", tmp_path / "run")
    assert done.code == 0, done.err
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    page = (ROOT / "docs" / "result-json.md").read_text()
    for name in (*result, *result["sessions"][0], *result["stored"]):
        assert name in page, name
        assert f"`{name}`" in page or name in result["stored"], name


def test_every_public_name_has_its_place() -> None:
    named = [name for names in public_names().values() for name in names]
    assert sorted(named) == sorted(graphfcl.__all__)
    text = "".join(python_pages().values())
    for name in graphfcl.__all__:
        assert f"::: graphfcl.{name}\n" in text
    listed = (ROOT / "mkdocs.yml").read_text()
    assert all(f": {page}\n" in listed or f"- {page}\n" in listed for page in python_pages())


def test_every_verb_has_a_page_with_all_of_its_options() -> None:
    pages = command_pages()
    index = pages["reference/commands/index.md"]
    listed = (ROOT / "mkdocs.yml").read_text()
    assert all(f": {page}\n" in listed or f"- {page}\n" in listed for page in pages)
    for words, command in COMMANDS.items():
        verb = words.partition(" ")[0]
        page = pages[f"reference/commands/{verb}.md"]
        assert f"# graphfcl {words}\n" in page
        assert f"[`{verb}`]({verb}.md)" in index
        assert f"\ngraphfcl {words}" in page[page.index("Examples") :]
        for parameter in command.params:
            names = parameter.opts if parameter.param_type_name == "option" else [parameter.metavar or parameter.name]
            assert parameter.hidden or all(f"{name}" in page for name in names), (words, names)
        assert ("| 3 |" in page) == any("--max-loss" in parameter.opts for parameter in command.params), words


def test_every_verb_leads_to_a_guide() -> None:
    assert GUIDES.keys() == {words.partition(" ")[0] for words in COMMANDS}
    for verb, guides in GUIDES.items():
        assert any((DOCS / page).exists() for page in guides), verb


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[the code](../src/graphfcl/cli/__init__.py) is", "the code is"),
        ("see [results](../results/README.md)", "see [results](results/overview.md)"),
        ("[a](data.md#labels), `[b](c.md)`", "[a](data.md#labels), `[b](c.md)`"),
        ("[`tables.md`](../results/bench/tables.md) and `x`", "[`tables.md`](results/tables.md) and `x`"),
        ("<!-- test: real -->\n```bash\n[x](../y.md)\n```", "```bash\n[x](../y.md)\n```"),
        ("[out](https://arxiv.org/abs/1)", "[out](https://arxiv.org/abs/1)"),
        ("| 77.3 ± 0.3 | a ± b |", "| 77.3\u00a0±\u00a00.3 | a ± b |"),
        ("![picture](images/a.png)", "![picture](images/a.png)"),
    ],
)
def test_links_of_the_repository_become_links_of_the_site(text: str, expected: str) -> None:
    places = {
        "docs/one.md": "one.md",
        "docs/data.md": "data.md",
        "results/README.md": "results/overview.md",
        "results/bench/tables.md": "results/tables.md",
    }
    assert site_text(text, "docs/one.md", places) == expected
