"""The most memory a run has held, on the host and on a GPU."""

import contextlib
from pathlib import Path

from graphfcl.runtime.memory import peak_bytes

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def forget_peaks(device: str) -> None:
    """Let the peaks count from now on; that of the host only where the system can do that (Linux)."""
    with contextlib.suppress(OSError):
        CLEAR.write_text("5")
    if device.startswith("cuda"):
        import torch

        torch.cuda.init()  # before that there is nothing to reset, and torch refuses
        torch.cuda.reset_peak_memory_stats(device)


def peak_memory_mb() -> float:
    """The most memory this process has held since :func:`forget_peaks`; 0 where the system does not say it."""
    with contextlib.suppress(OSError, StopIteration, ValueError):
        line = next(line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) / 1024
    return peak_bytes() / 2**20


def peak_gpu_memory_mb(device: str) -> float | None:
    """The most memory that tensors of this process have held on the GPU since :func:`forget_peaks`; None on a CPU."""
    if not device.startswith("cuda"):
        return None
    import torch

    return torch.cuda.max_memory_allocated(device) / 2**20


def release_gpu_memory(device: str) -> None:
    """Give back what torch keeps of a GPU's memory for itself: other processes need it."""
    if device.startswith("cuda"):
        import gc

        import torch

        gc.collect()  # learners and their parts hold each other
        torch.cuda.empty_cache()
