"""Which of many parameters `make test` tries; the others are marked ``long`` and tried in CI."""

from collections.abc import Iterable
from typing import Any

import pytest

# A closed form, a classifier that is fine-tuned, one with a memory, and a meta-trained method.
SOME_METHODS = ("anchor", "sgc-ridge", "finetune", "icarl", "hag-meta")


def some_first(names: Iterable[str], some: Iterable[str] = SOME_METHODS) -> list[Any]:
    """Parameters of all names, of which those that are not among ``some`` are ``long``."""
    chosen = set(some)
    return [pytest.param(name, marks=() if name in chosen else pytest.mark.long) for name in names]
