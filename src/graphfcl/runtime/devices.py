"""Where learners compute."""

import re

from graphfcl.errors import InputError

GPU = re.compile(r"cuda(?::(0|[1-9][0-9]{0,3}))?")


def best_device() -> str:
    """``cuda`` if this machine has a GPU that torch can use, else ``cpu``."""
    return "cuda" if gpu_count() else "cpu"


def gpu_count() -> int:
    """How many GPUs torch can use."""
    import torch

    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def checked_device(wanted: str, called: str = "device") -> str:
    """``auto``, ``cpu``, ``cuda`` or ``cuda:1``, unchanged; anything else is an error. called: its name in messages.

    ``auto`` is resolved when a learner is created, since only torch knows the devices.
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
        there = "one GPU, cuda:0" if count == 1 else f"{count} GPUs, cuda:0 to cuda:{count - 1}"
        raise InputError(f"{called} {wanted}: this machine has {there}; take one that is there.")
    return wanted


def chosen_device(wanted: str) -> str:
    """``auto`` as the best device, any other as it is; ``cuda:1`` becomes the GPU that torch works on in this process.

    CUDA graphs that are captured once and replayed run on that GPU, wherever their tensors are. In Python, other
    devices of torch are accepted unchanged.
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
    """``cpu``, the only device for a graph that stays on the disk."""
    if wanted not in ("auto", "cpu"):
        raise InputError(f"device {wanted}: a graph that stays on the disk is computed on the CPU: leave it out.")
    return "cpu"
