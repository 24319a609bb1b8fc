"""What tests of several floors share."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import settings

# How long an example takes depends on what else the machine does.
settings.register_profile("graphfcl", deadline=None)
settings.load_profile("graphfcl")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of genuine research files, which are not part of the repository."""
    named = os.environ.get("GRAPHFCL_DATA")
    folder = Path(named) if named else Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"the research files are not here: {folder} does not exist; name their folder with $GRAPHFCL_DATA")
    return folder


@pytest.fixture
def double_precision() -> Iterator[None]:
    """References of formulas are computed in float64."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)
