"""Runs and grids of runs, and what they leave behind."""

from graphfcl.experiments.cells import Cell, run_cell
from graphfcl.experiments.grid import Grid, GridStatus, load_grids
from graphfcl.experiments.running import run_grid
from graphfcl.experiments.runs import CHECKPOINT_FILE, RESULT_FILE, STREAM_FILE, Run, run
from graphfcl.experiments.store import CellStore, read_cell
from graphfcl.methods.shared.checkpoint import load_checkpoint, save_checkpoint

__all__ = [
    "CHECKPOINT_FILE",
    "RESULT_FILE",
    "STREAM_FILE",
    "Cell",
    "CellStore",
    "Grid",
    "GridStatus",
    "Run",
    "load_checkpoint",
    "load_grids",
    "read_cell",
    "run",
    "run_cell",
    "run_grid",
    "save_checkpoint",
]
