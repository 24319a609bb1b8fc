"""Graph encoders, and sparse and dense operators for them."""

from graphfcl.nn.encoders import ENCODERS, Encoder, GatEncoder, GcnEncoder, Linear, dropout
from graphfcl.nn.inputs import GcnRows, GraphInputs
from graphfcl.nn.matrices import DenseRows, DenseTable, SparseMatrix, tensor_of

__all__ = [
    "ENCODERS",
    "DenseRows",
    "DenseTable",
    "Encoder",
    "GatEncoder",
    "GcnEncoder",
    "GcnRows",
    "GraphInputs",
    "Linear",
    "SparseMatrix",
    "dropout",
    "tensor_of",
]
