"""The version of the package, at the bottom of the house: whoever writes it into a file imports nothing else."""

__version__ = "0.1.0"
