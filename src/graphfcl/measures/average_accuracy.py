"""The average over sessions: 1/(T + 1) Σ_t A_t."""

from graphfcl.measures.accuracies import accuracy, balanced_accuracy
from graphfcl.measures.measure import StreamMeasure

AVERAGE = StreamMeasure(
    name="average",
    title="average",
    what="mean of balanced accuracy over sessions",
    of=lambda record: float(record.curve(balanced_accuracy).mean()),
    places=("column", "print"),
    note="balanced accuracy, %",
)
PLAIN_AVERAGE = StreamMeasure(
    name="plain_average",
    title="plain average",
    what="mean of plain accuracy over sessions",
    of=lambda record: float(record.curve(accuracy).mean()),
    places=(),
)
