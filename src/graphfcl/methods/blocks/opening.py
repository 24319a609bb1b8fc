"""Open the tables of a visible graph: the one place that knows where its nodes are."""

import torch

from graphfcl.errors import InputError
from graphfcl.graph.folder.visible import VisibleFolder
from graphfcl.graph.interfaces import VisibleNodes
from graphfcl.methods.blocks.folder_tables import FolderTables
from graphfcl.methods.blocks.interface import NodeTables
from graphfcl.methods.blocks.resident import ResidentTables
from graphfcl.methods.shared.untrained_features import prepare
from graphfcl.nn import GraphInputs


def open_tables(visible: VisibleNodes, device: torch.device, seed: int, *, unit: bool | None = None) -> NodeTables:
    """The tables of a visible graph in memory, on the device, or of one on disk.

    seed: of the hash that folds very many feature columns together. unit: whether rows of X have unit length; by
    default rows of words have it, and numbers keep the length of theirs.
    """
    if isinstance(visible, VisibleFolder):
        return FolderTables(visible, seed, unit=visible.reader.sparse_features if unit is None else unit)
    here = visible.loaded()
    features = prepare(here.features, seed, unit=here.sparse_features if unit is None else unit)
    return ResidentTables(here, GraphInputs(here.with_features(features), device))


def open_whole(visible: VisibleNodes, device: torch.device) -> NodeTables:
    """The tables of a visible graph in memory with its features as they are, for encoders; one on disk is refused."""
    if isinstance(visible, VisibleFolder):
        raise InputError("features=encoder needs the graph in memory: leave it out for a graph on disk.")
    here = visible.loaded()
    return ResidentTables(here, GraphInputs(here, device))
