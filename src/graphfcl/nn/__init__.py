"""Layers and operators."""

from graphfcl.nn.attention import TASK_ATTENTIONS, InvariantTaskAttention, NodeLevelAttention, PrintedTaskAttention
from graphfcl.nn.dense import DenseRows, DenseTable
from graphfcl.nn.encoders import ENCODERS, Encoder, GatEncoder, GcnEncoder, Linear, dropout
from graphfcl.nn.inputs import FeatureRows, GatRows, GcnRows, GraphInputs
from graphfcl.nn.sparse import SparseMatrix

__all__ = [
    "ENCODERS",
    "TASK_ATTENTIONS",
    "DenseRows",
    "DenseTable",
    "Encoder",
    "FeatureRows",
    "GatEncoder",
    "GatRows",
    "GcnEncoder",
    "GcnRows",
    "GraphInputs",
    "InvariantTaskAttention",
    "Linear",
    "NodeLevelAttention",
    "PrintedTaskAttention",
    "SparseMatrix",
    "dropout",
]
