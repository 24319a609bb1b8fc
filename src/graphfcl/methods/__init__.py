"""Learners.

The door: ``learner.py`` is the contract, ``registry.py`` knows the methods by name, ``settings.py`` is what all
settings share, ``testing.py`` holds a learner to the contract. Then the methods, one file or folder each; ``bases/`` is
what they grow from, ``shared/`` the parts that they have.
"""

from typing import TYPE_CHECKING

from graphfcl.lazy_names import lazy_names

if TYPE_CHECKING:
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
        GROUPS,
        LEARNERS,
        METHODS,
        Method,
        find_method,
        import_method,
        is_own,
        method_from,
        outside_methods,
        plug_in_rows,
        register_method,
    )
    from graphfcl.methods.settings import as_tuples, flat_settings, settings_as_json

# Where each name lives: methods are named without torch.
_PLACES = {
    "Anchor": "anchor",
    "HagMeta": "hag_meta",
    "HagMetaSettings": "hag_meta",
    "NO_STORE": "learner",
    "SILENT": "learner",
    "EncoderStore": "learner",
    "Explanation": "learner",
    "Labelled": "learner",
    "Learner": "learner",
    "LearnerState": "learner",
    "Progress": "learner",
    "Tensors": "learner",
    "GROUPS": "registry",
    "LEARNERS": "registry",
    "METHODS": "registry",
    "Method": "registry",
    "find_method": "registry",
    "import_method": "registry",
    "is_own": "registry",
    "method_from": "registry",
    "outside_methods": "registry",
    "plug_in_rows": "registry",
    "register_method": "registry",
    "as_tuples": "settings",
    "flat_settings": "settings",
    "settings_as_json": "settings",
}

__all__ = [
    "GROUPS",
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
    "is_own",
    "method_from",
    "outside_methods",
    "plug_in_rows",
    "register_method",
    "settings_as_json",
]

__getattr__ = lazy_names(__name__, _PLACES)
