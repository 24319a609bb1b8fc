"""The engines there are. One is added by a file and one import line below."""
# ruff: noqa: F401

from graphfcl.errors import InputError, did_you_mean
from graphfcl.runtime.tasks.contract import Backend
from graphfcl.runtime.tasks.local import LOCAL
from graphfcl.runtime.tasks.ray_backend import RAY
from graphfcl.runtime.tasks.submitit_backend import SUBMITIT

# Every backend that is imported above, in the order of the lines.
BACKENDS: tuple[Backend, ...] = tuple(each for each in list(globals().values()) if isinstance(each, Backend))


def find_backend(name: str) -> Backend:
    """The backend of a name."""
    known = {each.name: each for each in BACKENDS}
    if name not in known:
        raise InputError(f"there is no backend {name!r}: {did_you_mean(name, list(known))}")
    return known[name]
