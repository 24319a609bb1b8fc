"""Formulas for the site: TeX between dollar signs becomes MathML, which browsers show without a script."""

import re

# A paragraph of its own, or a part of a line. A dollar sign before a digit that ends a word is money.
FORMULA = r"^\$\$\n(?P<block>.+?)\n\$\$$|(?<![\w\\$])\$(?P<inline>(?! )[^$\n]+(?:\n[^$\n]+)?(?<! ))\$(?![\w$])"
TAG = re.compile(r"\\tag\{([^}]*)\}")
MARKUP = str.maketrans({character: f"&#{ord(character)};" for character in "*_`[]"})  # of Markdown


def mathml(tex: str, *, block: bool) -> str:
    """A formula as an element of a page; the number of an equation stands at its right."""
    from latex2mathml.converter import convert

    number = TAG.search(tex)
    made = convert(" ".join(TAG.sub("", tex).split()), display="block" if block else "inline").translate(MARKUP)
    if not block:  # Markdown would make a paragraph of a line that begins with <math>
        return f"<span>{made}</span>"
    shown = f'<span class="number">({number[1]})</span>' if number else ""
    return f'<div class="equation">{made}{shown}</div>'


def with_mathml(found: re.Match[str]) -> str:
    """What stands in place of a match of ``FORMULA``."""
    return mathml(found["block"] or found["inline"], block=found["block"] is not None)
