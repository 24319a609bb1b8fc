"""Docstrings for the site: roles such as ``:meth:`~Learner.scores``` become code."""

import importlib
import re
from typing import Any

ROLE = re.compile(r":(?:class|func|meth|mod|attr|data|exc):`~?([^`]+)`")
EXTENSION: Any = importlib.import_module("griffe").Extension  # part of the extra docs


class Roles(EXTENSION):
    """Changes every docstring that is read."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = ROLE.sub(lambda found: f"`{found[1].removeprefix('graphfcl.')}`", obj.docstring.value)
