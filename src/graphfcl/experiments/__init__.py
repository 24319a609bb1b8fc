"""Runs and what they leave behind."""

from graphfcl.experiments.checkpoint import load_checkpoint, save_checkpoint
from graphfcl.experiments.runs import CHECKPOINT_FILE, RESULT_FILE, STREAM_FILE, Run, run

__all__ = ["CHECKPOINT_FILE", "RESULT_FILE", "STREAM_FILE", "Run", "load_checkpoint", "run", "save_checkpoint"]
