"""Open the tables of a visible graph, in memory or on disk."""

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
    """Open the tables of a visible graph.

    Args:
        visible: A graph in memory, whose tables are put on the device, or a graph on disk.
        device: Device of the tables.
        seed: Seed of the hash that reduces very many feature columns.
        unit: Whether rows of X are scaled to unit length. By default, bag-of-words rows are and numeric rows are not.
    """
    if isinstance(visible, VisibleFolder):
        return FolderTables(visible, seed, unit=visible.reader.sparse_features if unit is None else unit)
    here = visible.loaded()
    features = prepare(here.features, seed, unit=here.sparse_features if unit is None else unit)
    return ResidentTables(here, GraphInputs(here.with_features(features), device))


def open_whole(visible: VisibleNodes, device: torch.device) -> NodeTables:
    """Open a graph in memory with unchanged features, for encoders. A graph on disk raises an :class:`InputError`."""
    if isinstance(visible, VisibleFolder):
        raise InputError("features=encoder needs the graph in memory: leave it out for a graph on disk.")
    here = visible.loaded()
    return ResidentTables(here, GraphInputs(here, device))
