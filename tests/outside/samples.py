"""The method of the docs page, as a user would save it."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "your-method.md"
GRAPH = "synthetic:nodes=360,edges=1400,classes=9,features=100,signal=0.9,skew=0.4"
RULES = ("--base", "4", "--pseudo-novel", "3", "--way", "1", "--shot", "4")


def page_blocks(kind: str) -> list[str]:
    """The code blocks of one kind, in order."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    return [text for language, text in blocks if language == kind]


def nearest_mean(folder: Path, name: str = "nearest_mean") -> Path:
    """The learner of the page as a module in a folder."""
    path = folder / f"{name}.py"
    path.write_text(page_blocks("python")[0])
    return path
