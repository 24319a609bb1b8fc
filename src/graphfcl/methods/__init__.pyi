"""The public names of ``graphfcl.methods``: type checkers and the package itself read this list."""

from graphfcl.methods.anchor import Anchor as Anchor
from graphfcl.methods.hag_meta import HagMeta as HagMeta, HagMetaSettings as HagMetaSettings
from graphfcl.methods.learner import (
    SILENT as SILENT,
    Explanation as Explanation,
    Learner as Learner,
    Progress as Progress,
)
from graphfcl.methods.progress import ProgressBars as ProgressBars
from graphfcl.methods.state import (
    NO_STORE as NO_STORE,
    EncoderStore as EncoderStore,
    Labelled as Labelled,
    LearnerState as LearnerState,
    Tensors as Tensors,
)
from graphfcl.methods.registry import (
    GROUPS as GROUPS,
    LEARNERS as LEARNERS,
    METHODS as METHODS,
    Method as Method,
    find_method as find_method,
    import_method as import_method,
    is_own as is_own,
    method_from as method_from,
    outside_methods as outside_methods,
    plug_in_rows as plug_in_rows,
    register_method as register_method,
)
from graphfcl.methods.settings import (
    flat_settings as flat_settings,
    settings_as_json as settings_as_json,
)

__all__: list[str]
