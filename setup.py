"""What pyproject.toml cannot say: the long description and addresses of the project.

``GRAPHFCL_REPOSITORY`` is the address of the repository that a release is built from: links of the long description
then lead to its files. Without it they become plain text, for readers who have no repository around it.
"""

import os
import re
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).parent
REPOSITORY = os.environ.get("GRAPHFCL_REPOSITORY", "").rstrip("/")
VERSION = re.search(r'__version__ = "(.*)"', (ROOT / "src/graphfcl/version.py").read_text(encoding="utf-8"))[1]
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?![a-z]+:)([^)]+)\)")
PICTURE = re.compile(r"!\[([^\]]*)\]\((?![a-z]+:)([^)]+)\)")
ENDING = """
`make demo`, `make test`, the folder `docs` and all files named here are in the source distribution:
`pip download --no-deps --no-binary graphfcl graphfcl`.
"""


def long_description(readme: str, repository: str = "") -> str:
    """README.md with links into the repository at this version; without one, links become text and pictures captions.

    Code blocks stay as they are.
    """
    picture, link = r"*(Picture: \1; `\2` in the source distribution.)*", r"\1"
    if repository:
        picture, link = (
            f"{mark}[\\1]({repository}/{kind}/v{VERSION}/\\2)" for mark, kind in (("!", "raw"), ("", "blob"))
        )
    parts = re.split(r"(^```.*?^```$)", readme, flags=re.MULTILINE | re.DOTALL)
    parts[::2] = [LINK.sub(link, PICTURE.sub(picture, text)) for text in parts[::2]]
    return "".join(parts) + ENDING


def addresses(repository: str) -> dict[str, str]:
    """Where the project is found."""
    places = {"Source": "", "Issues": "/issues", "Changelog": f"/blob/v{VERSION}/CHANGELOG.md"}
    return {name: repository + place for name, place in places.items()} if repository else {}


if __name__ == "__main__":
    setup(
        long_description=long_description((ROOT / "README.md").read_text(encoding="utf-8"), REPOSITORY),
        long_description_content_type="text/markdown",
        project_urls=addresses(REPOSITORY),
    )
