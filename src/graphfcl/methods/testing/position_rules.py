"""Two rules of the contract: a learner does not read the numbers of nodes, nor the positions of feature columns.

The second stream is arranged by class, so that a learner that reads positions gains by it. A learner without stated
randomness has the same scores on both streams. One that draws random values for nodes or columns cannot: its answers
may change as much as they do with another seed, and it may not be right more often.
"""

from typing import Literal

from graphfcl.methods.testing.rearranged import Rearranged
from graphfcl.methods.testing.subject import Broken, Subject, agreement_of, same, stream_of

SLACK = 0.15  # of all visible nodes: by how much agreement and accuracy of a learner with randomness may differ
OTHER_SEEDS = (1, 2)  # the second one only where the first agrees too well


def node_numbers_mean_nothing(subject: Subject) -> None:
    """Another numbering of the nodes gives the same scores; a learner that states randomness over nodes keeps as many
    answers as with another seed, and is not right more often where numbers follow classes."""
    _same_when_rearranged(subject, "nodes", "the nodes have other numbers")


def column_order_means_nothing(subject: Subject) -> None:
    """Another order of the feature columns gives the same scores; a learner that states randomness over columns keeps
    as many answers as with another seed, and is not right more often where columns follow classes."""
    _same_when_rearranged(subject, "columns", "feature columns are in another order")


def _same_when_rearranged(subject: Subject, what: Literal["nodes", "columns"], when: str) -> None:
    stream, stated = stream_of(), subject.learner.randomness
    unknown = sorted(set(stated) - {"nodes", "columns"})
    if unknown:
        raise Broken(f"randomness names {unknown[0]!r}; it may name 'nodes' and 'columns'.")
    expected, found = subject.answers, subject.answers_to(Rearranged.by_class(stream, **{what: True}))
    if what not in stated:
        fix = f"do not use them, or state randomness over {what} if it draws for each of them"
        same(found, expected, f"if {when}, scores are others: {fix}")
        return
    agreement = agreement_of(expected, found)
    for seed in OTHER_SEEDS:
        other = subject.answers_of_seed(seed)
        usual = agreement_of(expected, other)
        if agreement >= usual - SLACK:
            break
    else:
        raise Broken(
            f"if {when}, {agreement:.0%} of its answers stay; with another seed {usual:.0%} do, so it is more than "
            "the randomness that it states."
        )
    labels = stream.columns_of(stream.evaluation_graph(1).nodes)
    accuracy, *before = (float((scores.argmax(axis=1) == labels).mean()) for scores in (found, expected, other))
    if accuracy > max(before) + SLACK:
        raise Broken(f"if {what} are arranged by class, it is right {accuracy:.0%} of the time, not {max(before):.0%}.")
