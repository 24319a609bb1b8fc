"""Devices on which learners compute."""

import re

from graphfcl.errors import InputError

GPU = re.compile(r"cuda(?::(0|[1-9][0-9]{0,3}))?")


def best_device() -> str:
    """Return ``cuda`` if torch can use a GPU, else ``cpu``."""
    return "cuda" if gpu_count() else "cpu"


def gpu_count() -> int:
    """Return the number of GPUs that torch can use."""
    import torch

    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def checked_device(wanted: str, called: str = "device") -> str:
    """Check that a device is ``auto``, ``cpu``, ``cuda`` or such as ``cuda:1`` and exists, and return it unchanged.

    ``called`` is the name of the option in messages. ``auto`` is resolved later, when a learner is created.
    """
    if wanted in ("auto", "cpu"):
        return wanted
    match = GPU.fullmatch(wanted)
    if match is None:
        raise InputError(f"{called} is {wanted!r}; it must be auto, cpu or cuda, or cuda:1 for the second GPU.")
    count = gpu_count()
    if not count:
        raise InputError(f"{called} {wanted}: this machine has no usable GPU; take cpu.")
    if int(match.group(1) or 0) >= count:
        existing = "one GPU, cuda:0" if count == 1 else f"{count} GPUs, cuda:0 to cuda:{count - 1}"
        raise InputError(f"{called} {wanted}: this machine has {existing}; take one of these.")
    return wanted


def chosen_device(wanted: str) -> str:
    """Resolve ``auto`` to the best device and return other devices unchanged.

    A device such as ``cuda:1`` becomes torch's current GPU in this process, because CUDA graphs are replayed on the
    current GPU wherever their tensors are. In Python, other devices of torch are accepted.
    """
    if wanted in ("auto", "cpu"):
        return best_device() if wanted == "auto" else wanted
    import torch

    try:
        kind = torch.device(wanted).type
    except (RuntimeError, TypeError):
        kind = "cuda"
    if kind == "cuda":
        checked_device(wanted)
    if kind == "cuda" and ":" in wanted:
        torch.cuda.set_device(wanted)
    return wanted


def device_on_disk(wanted: str) -> str:
    """Return ``cpu``, the only device for a graph on disk; an InputError for any other device."""
    if wanted not in ("auto", "cpu"):
        raise InputError(f"device {wanted}: a graph on disk is processed on the CPU: leave the device out.")
    return "cpu"
