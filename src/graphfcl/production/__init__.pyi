"""The public names of ``graphfcl.production``: type checkers and the package itself read this list."""

from graphfcl.production.changes.effects import Effect as Effect
from graphfcl.production.changes.new_nodes import read_nodes as read_nodes
from graphfcl.production.changes.refitting import Comparison as Comparison
from graphfcl.production.changes.user_tables import (
    read_edges as read_edges,
    read_ids as read_ids,
    read_supports as read_supports,
)
from graphfcl.production.changes.written_tables import (
    csv_bytes as csv_bytes,
    refuse_unwritable as refuse_unwritable,
    write_blocks as write_blocks,
    write_table as write_table,
)
from graphfcl.production.classifier import GraphClassifier as GraphClassifier
from graphfcl.production.erasing import Erased as Erased
from graphfcl.production.folder import ModelFolder as ModelFolder
from graphfcl.production.graph_check import Finding as Finding, check_graph as check_graph
from graphfcl.production.graph.place import WORK as WORK, FolderUse as FolderUse, graph_at as graph_at
from graphfcl.production.graph.work_files import tidy_work as tidy_work
from graphfcl.production.labelling.groups import Group as Group
from graphfcl.production.labelling.label_issues import issue_table as issue_table
from graphfcl.production.labelling.spreading import Spread as Spread
from graphfcl.production.labelling.suggestions import (
    Suggestion as Suggestion,
    suggest_for_graph as suggest_for_graph,
    suggestion_table as suggestion_table,
)
from graphfcl.production.labels.class_curves import CurvePoint as CurvePoint
from graphfcl.production.model.card import (
    CLASS_COLUMNS as CLASS_COLUMNS,
    ClassCard as ClassCard,
    ModelCard as ModelCard,
)
from graphfcl.production.model.fit_checkpoints import FitCheckpoints as FitCheckpoints

__all__: list[str]
