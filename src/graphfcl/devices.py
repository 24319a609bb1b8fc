"""Where learners compute."""


def best_device() -> str:
    """``cuda`` if this machine has a GPU that torch can use, else ``cpu``."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"
