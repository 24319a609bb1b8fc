"""Write the generated parts and pictures of README and the docs: ``python -m scripts.figures``.

A page encloses such a part in ``<!-- figures: NAME ARGUMENTS -->`` and ``<!-- end -->``. NAME is a key of ``PARTS``.
All numbers come from ``results/`` and all comparisons from :mod:`graphfcl.report`; ``tests/docs/test_figures.py`` fails
if a page differs from what this script writes.
"""

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

from PIL import Image

from scripts.figures import ablation, anchor, comparisons, others, parameters, released, reproduction, tuning
from scripts.figures.reading import ROOT

PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
PART = re.compile(r"(<!-- figures: ([^\n]*?) -->\n).*?(<!-- end -->)", re.DOTALL)
PARTS: dict[str, Callable[..., str]] = {
    "version": others.version,
    "measured": others.measured,
    "headline": comparisons.headline,
    "table2": comparisons.table2,
    "differences": comparisons.differences,
    "claim": comparisons.claim,
    "standings": comparisons.standings,
    "costs": comparisons.costs,
    "track": comparisons.track,
    "track-claim": comparisons.track_claim,
    "published": comparisons.published,
    "peers": comparisons.peers,
    "released-code": released.released_code,
    "paper-claims": reproduction.paper_claims,
    "paper-differences": reproduction.paper_differences,
    "query-labels": reproduction.query_labels,
    "paper-strongest": reproduction.paper_strongest,
    "paper-drops": reproduction.paper_drops,
    "parameter-leads": parameters.lead_table,
    "parameter-gains": parameters.gain_table,
    "ablation": ablation.ablation,
    "parts": ablation.parts,
    "nla-tla": ablation.nla_against_tla,
    "what-helped": ablation.what_helped,
    "anchor-results": anchor.anchor_results,
    "anchor-choices": anchor.anchor_choices,
    "anchor-parts": anchor.anchor_parts,
    "anchor-curve": anchor.anchor_curve,
    "anchor-forty": anchor.anchor_forty,
    "answers": others.answers,
    "groups": others.groups,
    "label-issues": others.label_issues,
    "labelling-order": others.labelling_order,
    "strategies": others.strategies,
    "candidates": others.candidates,
    "widths": tuning.widths,
    "tuning-budget": tuning.budget,
    "closed-set": others.closed_set,
    "false-positives": others.false_positives,
}


PICTURES = {  # below docs/images → below results
    "methods.png": "bench/table2.png",
    "times.png": "bench/table2-time.png",
    "active.png": "bench/active.png",
    "embedding.png": "bench/embed.png",
    "parameters.png": "bench/sweep.png",
    "anchor-shots.png": "bench/shots.png",
}
COLOURS = 128  # of a picture in the docs, whose file is then a third as large


def with_figures(text: str) -> str:
    """A page with its generated parts as they should be."""
    return PART.sub(lambda found: f"{found[1]}\n{generated(found[2])}\n\n{found[3]}", text)


@cache
def generated(words: str) -> str:
    name, *arguments = words.split()
    return PARTS[name](*arguments)


def copy_picture(source: Path, target: Path) -> None:
    """The same picture with few colours."""
    with Image.open(source) as picture:
        picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(target, optimize=True)


def main() -> None:
    for path in PAGES:
        text = path.read_text()
        if with_figures(text) != text:
            path.write_text(with_figures(text))
            print(f"wrote {path.relative_to(ROOT)}")
    for name, source in PICTURES.items():
        copy_picture(ROOT / "results" / source, ROOT / "docs" / "images" / name)


if __name__ == "__main__":
    main()
