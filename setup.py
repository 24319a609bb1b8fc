"""What pyproject.toml cannot say: the long description is README.md for readers who have no repository around it."""

import re
from pathlib import Path

from setuptools import setup

LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?![a-z]+:)[^)]+\)")
PICTURE = re.compile(r"!\[([^\]]*)\]\((?![a-z]+:)([^)]+)\)")
ENDING = """
`make demo`, `make test`, the folder `docs` and all files named here are in the source distribution:
`pip download --no-deps --no-binary graphfcl graphfcl`.
"""


def long_description(readme: str) -> str:
    """Links to files become plain text, pictures their captions; code blocks stay as they are."""
    parts = re.split(r"(^```.*?^```$)", readme, flags=re.MULTILINE | re.DOTALL)
    for place in range(0, len(parts), 2):
        text = PICTURE.sub(r"*(Picture: \1; `\2` in the source distribution.)*", parts[place])
        parts[place] = LINK.sub(r"\1", text)
    return "".join(parts) + ENDING


if __name__ == "__main__":
    setup(
        long_description=long_description(Path(__file__).with_name("README.md").read_text(encoding="utf-8")),
        long_description_content_type="text/markdown",
    )
