"""Layers and operators."""

from graphfcl.nn.dense import DenseRows, DenseTable
from graphfcl.nn.encoders import ENCODERS, Encoder, GatEncoder, GcnEncoder, Linear, dropout
from graphfcl.nn.inputs import FeatureRows, GatRows, GcnRows, GraphInputs
from graphfcl.nn.sparse import SparseMatrix
from graphfcl.nn.tensors import tensor_of

__all__ = [
    "ENCODERS",
    "DenseRows",
    "DenseTable",
    "Encoder",
    "FeatureRows",
    "GatEncoder",
    "GatRows",
    "GcnEncoder",
    "GcnRows",
    "GraphInputs",
    "Linear",
    "SparseMatrix",
    "dropout",
    "tensor_of",
]
