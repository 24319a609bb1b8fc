"""Learners.

The door: ``learner.py`` is the contract, ``registry.py`` knows the methods by name, ``settings.py`` is what all
settings share, ``testing.py`` holds a learner to the contract. Then the methods, one file or folder each; ``bases/`` is
what they grow from, ``shared/`` the parts that they have.
"""

from graphfcl.methods.anchor import Anchor
from graphfcl.methods.hag_meta import HagMeta, HagMetaSettings
from graphfcl.methods.learner import (
    NO_STORE,
    SILENT,
    EncoderStore,
    Explanation,
    Labelled,
    Learner,
    LearnerState,
    Progress,
    Tensors,
)
from graphfcl.methods.registry import (
    LEARNERS,
    METHODS,
    Method,
    find_method,
    import_method,
    method_from,
    outside_methods,
    plug_in_rows,
    register_method,
)
from graphfcl.methods.settings import as_tuples, flat_settings, settings_as_json

__all__ = [
    "LEARNERS",
    "METHODS",
    "NO_STORE",
    "SILENT",
    "Anchor",
    "EncoderStore",
    "Explanation",
    "HagMeta",
    "HagMetaSettings",
    "Labelled",
    "Learner",
    "LearnerState",
    "Method",
    "Progress",
    "Tensors",
    "as_tuples",
    "find_method",
    "flat_settings",
    "import_method",
    "method_from",
    "outside_methods",
    "plug_in_rows",
    "register_method",
    "settings_as_json",
]
