"""How many novel classes were found, under the track ``asked``: those with at least one label in the end / all."""

from graphfcl.measures.measure import AskedMeasure

CLASSES_FOUND = AskedMeasure(
    name="classes_found",
    title="classes found",
    what="share of novel classes of which a node was labelled",
    of=lambda record: float(record.found[-1] / record.classes),
)
