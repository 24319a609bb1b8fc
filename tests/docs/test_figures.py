"""Figures of README and the docs are those of ``results/``."""

import csv
import json
import re
from collections import Counter
from pathlib import Path

import pytest

from graphfcl import find_method
from graphfcl.report import write_page
from graphfcl.stream import PROTOCOL_VERSION
from scripts.figures.__main__ import PAGES, PART, PARTS, PICTURES, with_figures
from scripts.figures.reading import ROOT, stored
from tests.docs.blocks import FENCE

RESULTS = ROOT / "results"
needs_cells = pytest.mark.skipif(
    not (RESULTS / "bench" / "grids" / "table2.parquet").exists(), reason="a source distribution has no cells"
)

# What looks like a result: shares, differences, p-values, times and sizes.
NUMBER = r"[+−]?\d[\d,]*(?:\.\d+)?"
UNIT = r"%|points?|ms|s|seconds|minutes|hours|kB|MB|GB"
FIGURE = re.compile(
    rf"(?<![\w.–-]){NUMBER}(?:(?: to |, | and | / |–){NUMBER})*[ \u00a0](?:{UNIT})(?!\w)"
    rf"|{NUMBER} ± {NUMBER}|\bp [<≤=>] ?\d?\.?\d+|(?<![\w.])[+−]\d+\.\d+|(?<![\w.])0\.\d+ / 0\.\d+"
)


def prose(text: str) -> str:
    """A page in one line, without generated parts, blocks of code and code in a line."""
    return re.sub(r"\s+", " ", re.sub(r"`[^`\n]*`", "", FENCE.sub("", PART.sub("", text))))


def loose_figures(text: str) -> list[str]:
    return [found.group() for found in FIGURE.finditer(prose(text))]


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


LEVELS = {"95 %", "p < 0.05"}  # of intervals and tests, on any page
# Figures that define something (a limit, a setting, a share of a split), follow from formulas on the same page, or are
# part of a text that a command prints. Page → figures.
DEFINITIONS: dict[str, tuple[str, ...]] = {
    "docs/answers.md": ("55 %", "90 %"),
    "docs/active-learning.md": ("30 %", "40 %", "60 %"),
    "docs/command-line.md": ("30 seconds",),
    "docs/check-data.md": ("5 %",),
    "docs/deploy.md": ("30 s",),
    "docs/datasets.md": ("45 %",),
    "docs/other-libraries.md": ("67 MB",),
    "docs/engines.md": ("100 MB",),
    "docs/experiments.md": ("30 %",),
    "docs/glossary.md": ("30 %",),
    "docs/graph-folder.md": ("24 MB",),
    "docs/install.md": ("24 MB",),
    "docs/methods.md": ("5 %",),
    "docs/model-folder.md": ("60 s",),
    "docs/page-review.md": ("57–98 %", "5 %"),
    "docs/groups.md": ("30 %", "99 %"),
    "docs/jobs.md": ("5 points",),
    "docs/performance.md": (
        *(
            "2 %",
            "5 %",
            "0.8 GB",
            "2.2 GB",
            "12 GB",
            "13.5 GB",
            "2.4 GB",
            "31 GB",
            "51 GB",
            "70 MB",
            "200 MB",
            "248 MB",
            "250 MB",
        ),
    ),
    "docs/production.md": ("55 %",),
    "docs/scale.md": ("0.8 GB", "13.5 GB", "99.9 %", "44 kB", "2.6 GB"),
    "docs/teaching.md": ("5 points",),
    "docs/what-to-label.md": ("38 %", "41 %", "97 %"),
    "docs/visibility.md": ("20 %", "30 %", "60 %", "70 %"),
    "docs/your-method.md": ("15 %",),
}


def quoted() -> dict[str, list[str]]:
    """Page → figures in its prose that were measured once, from ``results/measured.csv``."""
    found: dict[str, list[str]] = {}
    with open(RESULTS / "measured.csv", newline="") as file:
        for line in csv.DictReader(file):
            assert all(line[key] for key in ("command", "machine", "commit")), line
            if line["part"].endswith(".md"):
                found.setdefault(line["part"], []).append(line["value"])
    return found


@needs_cells
@pytest.mark.long
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_generated_parts_are_as_the_results_say(path: Path) -> None:
    text = path.read_text()
    assert with_figures(text) == text, "run `python -m scripts.figures`"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_figure_in_prose_has_a_source(path: Path) -> None:
    allowed = {*DEFINITIONS.get(name_of(path), ()), *quoted().get(name_of(path), ())}
    unknown = [figure for figure in loose_figures(path.read_text()) if figure not in allowed | LEVELS]
    assert unknown == [], "generate them (scripts/figures), or list them in results/measured.csv or DEFINITIONS"
    gone = [figure for figure in allowed if figure not in prose(path.read_text())]
    assert gone == [], "these are listed and not on the page"


def test_figures_in_prose_are_found() -> None:
    text = "It ends at 67.2 %, +4.5 ± 1.2 (p < 0.001), in 41 s, 2 to 3 points\nahead; `12 %`.\n"
    text += "```\n13 %\n```\n<!-- figures: headline -->\n14 %\n<!-- end -->\nThe 95 % interval.\n"
    assert loose_figures(text) == ["67.2 %", "+4.5 ± 1.2", "p < 0.001", "41 s", "2 to 3 points", "95 %"]


CLAIM = re.compile(
    r"(?:ahead of|outperforms?|level with|tied with) (?:`|[A-Z]|all\b|most\b|any\b|no\b|every\b(?! method\"))"
    r"|state of the art"
)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_prose_compares_no_methods(path: Path) -> None:
    """Who is ahead of whom is generated."""
    text = re.sub(r"\s+", " ", FENCE.sub("", PART.sub("", path.read_text())))
    assert CLAIM.findall(text) == []


def test_comparisons_in_prose_are_found() -> None:
    for text in ("It is ahead of every method.", "ahead of `joint`", "level with HAG-Meta", "tied with `tem`"):
        assert CLAIM.search(text), text


def test_marks_of_parts_are_whole() -> None:
    for path in PAGES:
        text = path.read_text()
        opened, closed = text.count("<!-- figures: "), text.count("<!-- end -->")
        assert opened == closed == len(PART.findall(text)), path.name
        assert all(found[1].split()[0] in PARTS for found in PART.findall(text)), path.name


SOURCES_OF_PART: dict[str, tuple[str, ...]] = {  # a protocol among the arguments of a part selects its results
    "anchor-parts": ("anchor-parts",),
    "anchor-curve": ("shots", "shots-others"),
    "anchor-forty": ("anchor-forty",),
    "released-code": ("released_code.csv",),
    "answers": ("answers.csv",),
    "groups": ("groups.csv",),
    "label-issues": ("label_issues.csv",),
    "labelling-order": ("labelling_order.csv",),
    "strategies": ("active",),
    "closed-set": ("closed_set.csv",),
    "false-positives": ("false_positives.csv",),
    "what-helped": ("table3", "table2", "table2/paper"),
    "paper-claims": ("table2", "table2/paper", "table3", "table3/paper", "sweep"),
    **dict.fromkeys(("parameter-leads", "parameter-gains"), ("sweep",)),
    **dict.fromkeys(("query-labels", "paper-strongest", "paper-drops"), ("table2", "table2/paper")),
    **dict.fromkeys(("ablation", "parts", "nla-tla"), ("table3",)),
    **dict.fromkeys(("track", "track-claim"), ("tracks",)),
    **dict.fromkeys(("widths", "tuning-budget"), ("tuning.csv",)),
    **dict.fromkeys(("version", "measured", "published", "candidates"), ()),
}


def sources_of(name: str, arguments: list[str]) -> set[str]:
    """What the section of a part must give the protocol version of."""
    if name == "headline" and arguments:
        return {"tracks"}
    found = SOURCES_OF_PART.get(name, ("table2",))
    return {f"{source}/paper" for source in found} if "paper" in arguments else set(found)


def test_every_section_with_results_says_their_protocol_version() -> None:
    for path in PAGES:
        for section in re.split(r"^#+ ", path.read_text(), flags=re.MULTILINE):
            said: set[str] = set()
            for _, words, _ in PART.findall(section):
                name, *arguments = words.split()
                said |= set(arguments) if name == "version" else set()
                assert sources_of(name, arguments) <= said, (path.name, section.splitlines()[0], name)


def test_all_results_are_of_the_current_protocol_version() -> None:
    """``figures: version`` says so without looking."""
    named = json.loads((RESULTS / "sources.json").read_text())
    assert {name for name, entry in named.items() if entry["protocol_version"] != PROTOCOL_VERSION} == set()


@needs_cells
@pytest.mark.long
def test_stored_results_are_of_one_commit() -> None:
    """``results/sources.json`` names it."""
    named = json.loads((RESULTS / "sources.json").read_text())["bench"]
    results = [result for block in stored("bench").blocks for row in block.rows for result in row.results.values()]
    assert {result["protocol_version"] for result in results} == {named["protocol_version"]}
    assert {result["versions"]["commit"] for result in results} == {named["commits"]["all"]}


@needs_cells
@pytest.mark.long
def test_stored_reports_are_those_of_the_stored_cells(tmp_path: Path) -> None:
    write_page(RESULTS / "bench", tmp_path)
    for name in ("tables.md", "tables.tex", "report.html"):
        same = (tmp_path / name).read_bytes() == (RESULTS / "bench" / name).read_bytes()
        assert same, f"{name} is older: run `graphfcl report results/bench`"


def test_pictures_are_those_of_the_results() -> None:
    """The docs have smaller files of the same pictures."""
    matplotlib_image = pytest.importorskip("matplotlib.image")
    for name, source in PICTURES.items():
        if not (RESULTS / source).exists():
            pytest.skip("a source distribution has no pictures of results")
        shown, drawn = (
            matplotlib_image.imread(path)[..., :3] for path in (ROOT / "docs/images" / name, RESULTS / source)
        )
        assert shown.shape == drawn.shape
        assert abs(shown - drawn).mean() < 0.01, name


def test_departures_of_hag_meta_are_listed_with_switches_that_exist() -> None:
    text = (ROOT / "docs" / "hag-meta.md").read_text()
    table = text[text.index("## Departures") : text.index("## Which data")]
    for word in ("binary", "λ̃", "GCN layer", "plain means", "m = 10", "Algorithm 2", "D_novel/val", "last_relu"):
        assert word in table, word
    method = find_method("hag-meta")
    switches = re.findall(r"--set (\w+)=(\w+)", table)
    assert len(switches) > 5
    for name, value in switches:
        method.settings_with({name: value if value != "NUMBER" else "20"})
    assert "20 of the 77 classes of Amazon-Clothing" in text


def test_candidates_of_tap_are_those_of_its_settings() -> None:
    """TAP chooses from the same steps and rates as HAG-Meta, and from those of its paper."""
    settings = [find_method(name).settings_with({}).fine_tuning for name in ("tap", "hag-meta")]
    assert settings[0] == (*settings[1], (5, 0.01))
    lines = [
        line for line in (ROOT / "docs" / "methods.md").read_text().splitlines() if "`tap`" in line and " × 0.0" in line
    ]
    assert len(lines) == 1
    assert "5 × 0.01" in lines[0]


def test_parts_are_used() -> None:
    used = Counter(words.split()[0] for path in PAGES for _, words, _ in PART.findall(path.read_text()))
    assert set(used) == set(PARTS)
