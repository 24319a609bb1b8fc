"""From stored results to something a person reads."""

from graphfcl.report.blocks import Block, Findings, Row, collect
from graphfcl.report.figures import accuracy_figure, matrix_figure
from graphfcl.report.page import write_page

__all__ = ["Block", "Findings", "Row", "accuracy_figure", "collect", "matrix_figure", "write_page"]
