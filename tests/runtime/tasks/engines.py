"""Engines from outside, which may be missing."""

from importlib.util import find_spec
from typing import Any

import pytest

ON_THIS_MACHINE: dict[str, Any] = {"cluster": "local", "timeout_min": 5}


def needs(name: str) -> None:
    """Skip a test whose engine is not installed."""
    if find_spec(name) is None:
        pytest.skip(f"{name} is not installed here: pip install 'graphfcl[{name}]'")
