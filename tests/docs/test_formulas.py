"""Formulas of the pages: TeX between dollar signs becomes MathML on the site."""

import pytest

pytest.importorskip("latex2mathml", reason="the extra docs is not installed")

from scripts.site.staging import site_text

PLACES = {"docs/one.md": "one.md"}


def shown(text: str) -> str:
    return site_text(text, "docs/one.md", PLACES)


def test_a_formula_in_a_line() -> None:
    text = shown("a class $c$ has the mean $\\mu_c$.")
    assert text.startswith("a class <span><math ")
    assert "<mi>c</mi>" in text
    assert "<msub><mi>&#x003BC;</mi><mi>c</mi></msub>" in text
    assert text.endswith("</math></span>.")
    assert "$" not in text


def test_an_equation_has_its_number_at_the_right() -> None:
    text = shown("where\n\n$$\n\\mu_c = \\frac{S_c}{n_c} \\tag{3}\n$$\n\nand")
    assert '<div class="equation"><math ' in text
    assert 'display="block"' in text
    assert '</math><span class="number">(3)</span></div>' in text
    assert "<mfrac>" in text


def test_a_formula_at_the_start_of_a_line_stays_in_its_paragraph() -> None:
    markdown = pytest.importorskip("markdown").markdown
    assert markdown(shown("The mean of class $c$ is\n$\\mu_c$, a vector.")).count("<p>") == 1


@pytest.mark.parametrize(
    "text",
    [
        "```console\n$ graphfcl fit --out $OUT\n$ graphfcl info\n```",
        "`$OUT` and `$HOME`",
        "5 $ or 6 $",
        "costs \\$5 and \\$6",
        "US$5 and US$6",
    ],
)
def test_other_dollar_signs_stay(text: str) -> None:
    assert shown(text) == text


def test_nothing_in_a_formula_is_markdown() -> None:
    text = shown("$a * b * c_{d}$ and $x_1$")
    assert "*" not in text
    assert "_" not in text
