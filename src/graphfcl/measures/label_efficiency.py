"""How far labels went, under the track ``asked``.

A(ℓ) is the balanced accuracy over all classes of the stream when ℓ labels were spent, linear between sessions; a class
that was not found counts 0. With B the budget of the whole stream: A(0.6 B) and A(B), over all classes and over those
that session 0 lacks.
"""

from graphfcl.measures.measure import AskedMeasure

PART = 0.6

BALANCED_AT_PART = AskedMeasure(
    name="balanced_at_60",
    title="60 % of labels",
    what="balanced accuracy over all classes with 60 % of the labels",
    of=lambda record: record.at(PART, record.balanced),
)
BALANCED_AT_ALL = AskedMeasure(
    name="balanced_at_all",
    title="all labels",
    what="balanced accuracy over all classes with all labels",
    of=lambda record: record.at(1.0, record.balanced),
)
NOVEL_AT_PART = AskedMeasure(
    name="novel_at_60",
    title="novel, 60 % of labels",
    what="balanced accuracy over novel classes with 60 % of the labels",
    of=lambda record: record.at(PART, record.novel),
)
NOVEL_AT_ALL = AskedMeasure(
    name="novel_at_all",
    title="novel, all labels",
    what="balanced accuracy over novel classes with all labels",
    of=lambda record: record.at(1.0, record.novel),
)
