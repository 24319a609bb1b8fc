"""From stored results to something a person reads."""

from graphfcl.report.figures import accuracy_figure, matrix_figure

__all__ = ["accuracy_figure", "matrix_figure"]
