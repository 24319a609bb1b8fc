"""Imported once by the process that pages are forked from."""
# ruff: noqa: F401 (what pages need is imported before they are forked; threads are limited before torch is imported)

import os

os.environ["OMP_NUM_THREADS"] = "1"  # threads do not survive a fork

import torch

import graphfcl.experiments
import graphfcl.production
import graphfcl.report
import tests.docs.running
from tests.docs.small_world import small_datasets

torch.set_num_threads(1)
small_datasets()
