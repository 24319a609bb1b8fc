"""The rules of the learner contract. The docstring of a rule states it; the function raises ``Broken`` with a reason.

The rules do not require accuracy, nor that different seeds give different scores.
"""

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from graphfcl.errors import in_one_line
from graphfcl.graph.visible import VisibleGraph
from graphfcl.methods.learner import Explanation
from graphfcl.methods.shared.memories import pool_among_supports
from graphfcl.methods.testing.position_rules import column_order_means_nothing, node_numbers_mean_nothing
from graphfcl.methods.testing.subject import (
    CLOSE,
    GRAPH,
    Broken,
    Checkpoints,
    Subject,
    arrays,
    ask,
    same,
    same_state,
    stream_of,
    through_a_file,
)
from graphfcl.stream.sessions import Session
from graphfcl.stream.stream import Stream, make_stream

SPARSE_GRAPH = "synthetic:nodes=400,edges=300,classes=8,features=200,signal=0.8,skew=1.0"
KINDS = ("nodes", "features", "embeddings", "weights")


def fit_learns_session_0(subject: Subject) -> None:
    """After fit, classes_ contains the classes of session 0."""
    learner, base = subject.make(), stream_of().base
    learner.fit(base)
    if tuple(learner.classes_) != base.classes:
        raise Broken(f"after fit, classes_ is {tuple(learner.classes_)}; it must be base.classes, {base.classes}.")


def learn_appends_classes(subject: Subject) -> None:
    """The new classes of a session are appended to classes_; a class keeps its column."""
    wanted = stream_of().classes[: stream_of().classes_seen(1)]
    if tuple(subject.after_session.classes_) != wanted:
        raise Broken(f"after learn, classes_ is {tuple(subject.after_session.classes_)}; it must be {wanted}.")


def scores_are_numbers(subject: Subject) -> None:
    """scores() returns one number per requested node and class seen, none of them NaN."""
    ask(subject.after_session, stream_of(), 1)


def scores_do_not_depend_on_who_else_is_asked(subject: Subject) -> None:
    """A node's scores do not depend on which other nodes are requested."""
    learner, visible, nodes = subject.after_session, stream_of().evaluation_graph(1), stream_of().queries(1).nodes
    together = learner.scores(visible, nodes)
    same(learner.scores(visible, nodes[::3]), together[::3], "scores differ if only every third node is requested")
    same(learner.scores(visible, nodes[:1]), together[:1], "scores differ if only one node is requested")
    same(learner.scores(visible, nodes[::-1]), together[::-1], "scores differ if nodes are requested in another order")


def asking_changes_nothing(subject: Subject) -> None:
    """scores() does not change the state."""
    stream, learner = subject.fitted()
    before = through_a_file(learner.state())
    for _ in range(2):
        ask(learner, stream, 0)
        same_state(learner.state(), before, "scores() changed the state")


def a_loaded_learner_scores_the_same(subject: Subject) -> None:
    """A state that is written to a file and loaded into a new learner gives the same scores and classes."""
    copy = subject.loaded(subject.after_session.state())
    if tuple(copy.classes_) != tuple(subject.after_session.classes_):
        before = subject.after_session.classes_
        raise Broken(f"a loaded learner has classes_ {tuple(copy.classes_)}, the saved one {before}.")
    same(ask(copy, stream_of(), 1), ask(subject.after_session, stream_of(), 1), "a loaded learner has different scores")


def a_loaded_learner_goes_on_as_the_saved_one(subject: Subject) -> None:
    """A learner that was saved and loaded learns further sessions as the original does."""
    stream, learner = subject.fitted()
    learner.learn(subject.session(stream, 1))
    copy = subject.loaded(learner.state())
    for each in (learner, copy):
        each.learn(subject.session(stream, 2))
    same(
        ask(copy, stream, 2), ask(learner, stream, 2), "after a further session, a loaded learner has different scores"
    )


def a_state_stays_what_it_was(subject: Subject) -> None:
    """A saved state does not change while the learner learns further sessions."""
    stream, learner = subject.fitted()
    state, expected = learner.state(), ask(learner, stream, 0)
    for number in range(1, len(stream) + 1):
        learner.learn(subject.session(stream, number))
    scores = ask(subject.loaded(state), stream, 0)
    same(scores, expected, "the state after session 0 changed when further sessions were learned: copy its arrays")


def an_earlier_state_is_that_of_then(subject: Subject) -> None:
    """A learner that loads its own earlier state has the same scores as then."""
    stream, learner = subject.fitted()
    state, expected = through_a_file(learner.state()), ask(learner, stream, 0)
    learner.learn(subject.session(stream, 1))
    ask(learner, stream, 1)
    learner.load_state(state)
    same(
        ask(learner, stream, 0),
        expected,
        "after loading an earlier state, scores differ: load_state keeps later values",
    )


def a_copy_goes_on_by_itself(subject: Subject) -> None:
    """A copy has the same scores and learns as the original; what it learns does not affect the original."""
    stream, learner = subject.fitted(track="open")
    visible, (first, second) = stream.base.visible_graph, (subject.session(stream, number) for number in (1, 2))
    learner.learn(first)
    expected, before = learner.scores(visible, visible.nodes), through_a_file(learner.state())
    copy = learner.copy(visible)
    same(copy.scores(visible, visible.nodes), expected, "a copy has different scores")
    copy.learn(second)
    later = copy.scores(visible, visible.nodes)
    copy.restate(visible, (stream.base.train, stream.base.train_labels), (second.supports, second.support_labels))
    copy.drop_nodes(second.supports[:1])
    same_state(learner.state(), before, "learning with a copy changed the original's state")
    same(learner.scores(visible, visible.nodes), expected, "learning with a copy changed the original's scores")
    learner.learn(second)
    same(learner.scores(visible, visible.nodes), later, "after a further session, a copy has different scores")


def a_seed_gives_one_result(subject: Subject) -> None:
    """The same settings, seed and stream give the same scores."""
    stream, learner = subject.fitted()
    learner.learn(subject.session(stream, 1))
    same(
        ask(learner, stream, 1),
        ask(subject.after_session, stream, 1),
        "two learners with the same seed have different scores: use `seed` for all random numbers",
    )


def what_is_handed_over_stays_as_it_is(subject: Subject) -> None:
    """A learner does not write into the sessions and graphs that it receives."""
    stream = make_stream(stream_of().graph, stream_of().protocol, seed=1)
    learner, base, session = subject.make(), stream.base, subject.session(stream, 1)
    before = arrays(base), arrays(session)
    learner.fit(base)
    learner.learn(session)
    ask(learner, stream, 1)
    for old, new in zip(before, (arrays(base), arrays(session)), strict=True):
        changed = [name for name in old if not np.array_equal(old[name], new[name])]
        if changed:
            raise Broken(f"it changed {changed[0]} of a session: copy arrays before writing into them.")


def every_kind_of_stream_can_be_learned(subject: Subject) -> None:
    """Streams of every kind can be learned: one shot, few pseudo-novel classes, every track, both protocols."""
    kinds: list[dict[str, Any]] = [
        {"shot": 1},
        {"way": 2, "base": 3},
        {"way": 3, "pseudo_novel": 0},
        {"way": 3, "pseudo_novel": 1},
        {"track": "isolated"},
        {"track": "open"},
        {"name": "paper"},
    ]
    for changes in kinds:
        try:
            _learn_all_sessions(subject, **changes)
        except Exception as error:
            raise Broken(f"on a stream with {changes}: {in_one_line(error)}") from error


def more_supports_and_unequal_shots_are_learned(subject: Subject) -> None:
    """Classes of a session may have unequal numbers of supports, and known classes may get further supports."""
    for track in ("transductive", "isolated"):
        stream, learner = subject.fitted(track=track, way=2)
        whole = stream.session(1)
        nodes, labels, visible = whole.supports, whole.support_labels, whole.visible_graph
        last = labels == labels.max()
        first = np.r_[
            np.flatnonzero(~last)[:1], np.flatnonzero(last)
        ]  # one support of the first class, all supports of the second
        rest = np.setdiff1d(np.arange(labels.size), first)
        learner.learn(Session(1, whole.new_classes, nodes[first], labels[first], visible, stream.protocol.track))
        learner.learn(Session(2, (), nodes[rest], labels[rest], visible, stream.protocol.track))
        if track == "transductive":
            known = (stream.base.validation[:2], stream.base.validation_labels[:2])
            learner.learn(Session(3, (), *known, visible, stream.protocol.track))
        ask(learner, stream, 1)


def supports_without_edges_are_learned(subject: Subject) -> None:
    """Nodes without edges can be learned and scored."""
    _learn_all_sessions(subject, SPARSE_GRAPH, base=3, pseudo_novel=3)


def _learn_all_sessions(subject: Subject, graph: str = GRAPH, **changes: Any) -> None:
    stream, learner = subject.fitted(graph, **changes)
    for number in range(1, len(stream) + 1):
        learner.learn(subject.session(stream, number))
        ask(learner, stream, number)


def an_interrupted_fit_goes_on(subject: Subject) -> None:
    """A fit that is resumed from any of its checkpoints ends with the same scores."""
    base, states = stream_of().base, Checkpoints()
    whole = subject.make()
    whole.fit(base, states)
    expected = whole.scores(base.visible_graph, base.validation)
    kept = states.kept
    for place in sorted({0, len(kept) // 2, len(kept) - 1} & set(range(len(kept)))):
        copy = subject.loaded(kept[place])
        copy.fit(base)
        why = f"resumed from checkpoint {place + 1} of {len(kept)}, fit ends with different scores"
        same(copy.scores(base.visible_graph, base.validation), expected, why)


def stored_says_what_is_kept(subject: Subject) -> None:
    """stored() returns the bytes of nodes, features, embeddings and weights, and chosen() returns JSON values."""
    stored = subject.after_session.stored()
    if set(stored) != set(KINDS):
        raise Broken(f"stored() has the kinds {sorted(stored)}; they must be {', '.join(KINDS)}.")
    wrong = [kind for kind, size in stored.items() if int(size) != size or size < 0]
    if wrong:
        raise Broken(f"stored()[{wrong[0]!r}] is {stored[wrong[0]]}; it must be a number of bytes.")
    try:
        json.dumps(subject.after_session.chosen())
    except (TypeError, ValueError) as error:
        raise Broken(f"chosen() cannot be written as JSON ({error}).") from error


def embeddings_are_what_scores_come_from(subject: Subject) -> None:
    """embeddings(), embeddings_of_rows() and use_embeddings() agree with each other and with scores()."""
    visible = stream_of().evaluation_graph(1)
    expected = ask(subject.after_session, stream_of(), 1)
    copy = subject.loaded(subject.after_session.state())
    embeddings = copy.embeddings(visible)
    if embeddings.ndim != 2 or len(embeddings) != visible.node_count:
        raise Broken(f"embeddings() has shape {embeddings.shape}; it must be ({visible.node_count}, width).")
    rows = np.arange(3, visible.node_count, 17)
    alone = copy.embeddings_of_rows(visible, rows)
    if alone.shape != embeddings[rows].shape:
        raise Broken(f"embeddings_of_rows() has shape {alone.shape}; it must be {embeddings[rows].shape}.")
    digits = max(CLOSE, 2 * float(np.finfo(embeddings.dtype).eps)) if embeddings.dtype.kind == "f" else CLOSE
    if not np.allclose(alone, embeddings[rows], rtol=digits, atol=digits):
        raise Broken("embeddings_of_rows() differs from the same rows of embeddings().")
    copy.use_embeddings(visible, embeddings)
    same(ask(copy, stream_of(), 1), expected, "after use_embeddings() with its own embeddings, scores differ")


def explain_answers_or_says_none(subject: Subject) -> None:
    """explain() returns an Explanation or None."""
    node = int(stream_of().queries(1).nodes[0])
    explanation = subject.after_session.explain(stream_of().evaluation_graph(1), node)
    if explanation is not None and not isinstance(explanation, Explanation):
        raise Broken(f"explain() returns a {type(explanation).__name__}; it must be a graphfcl Explanation or None.")


def restating_what_is_known_changes_nothing(subject: Subject) -> None:
    """restate() with the same labels does not change scores. If forgets_exactly is True, restate() with fewer labels
    removes all traces of the others, and labels may arrive in several sessions."""
    stream, learner = subject.fitted(track="open")
    visible, session = stream.base.visible_graph, pool_among_supports(subject.session(stream, 1))
    train, supports = (stream.base.train, stream.base.train_labels), (session.supports, session.support_labels)
    never = subject.loaded(learner.state())
    learner.learn(session)
    expected = learner.scores(visible, visible.nodes)
    if not learner.restate(visible, train, supports):
        return
    same(learner.scores(visible, visible.nodes), expected, "after restate() with the same labels, scores differ")
    if learner.forgets_exactly:
        nodes, labels = supports[0][:-1], supports[1][:-1]
        never.learn(Session(1, session.new_classes, nodes, labels, visible, "open"))
        learner.restate(visible, train, (nodes, labels))
        scores, wanted = (each.scores(visible, visible.nodes) for each in (learner, never))
        same(scores, wanted, "forgets_exactly is True, but a removed support still affects scores")
        _labels_may_come_in_pieces(subject, stream, session)


def _labels_may_come_in_pieces(subject: Subject, stream: Stream, session: Session) -> None:
    """Learn the same labels in one session, and in two sessions of which the second lists the earlier labels."""
    base, visible = stream.base, stream.base.visible_graph
    nodes = np.concatenate([session.supports, base.validation[:1]])
    labels = np.concatenate([session.support_labels, base.validation_labels[:1]])
    of_known = base.train_labels == labels[-1]
    train = base.train[of_known], base.train_labels[of_known]
    _, first = np.unique(session.support_labels, return_index=True)
    rest = np.setdiff1d(np.arange(labels.size), first)
    earlier = [np.concatenate(parts) for parts in ((nodes[first], train[0]), (labels[first], train[1]))]
    whole, pieces = subject.make(), subject.make()
    for each in (whole, pieces):
        each.fit(base)
    new = session.new_classes
    whole.learn(Session(1, new, nodes, labels, visible, "open", earlier=train[0], earlier_labels=train[1]))
    pieces.learn(Session(1, new, nodes[first], labels[first], visible, "open"))
    more = {"earlier": earlier[0], "earlier_labels": earlier[1]}
    pieces.learn(Session(2, (), nodes[rest], labels[rest], visible, "open", **more))
    scores, wanted = (each.scores(visible, visible.nodes) for each in (pieces, whole))
    same(
        scores, wanted, "forgets_exactly is True, but labels learned in two sessions give different scores than in one"
    )


def dropped_nodes_are_no_longer_needed(subject: Subject) -> None:
    """After drop_nodes(), a learner can score a graph without these nodes."""
    stream, copy = stream_of(), subject.loaded(subject.after_session.state())
    visible, session = stream.evaluation_graph(1).loaded(), subject.session(stream, 1)
    gone = session.supports[:1]
    copy.drop_nodes(gone)
    kept = np.flatnonzero(~np.isin(visible.nodes, gone))
    smaller = VisibleGraph(visible.nodes[kept], visible.adjacency[kept][:, kept], visible.features[kept])
    scores = copy.scores(smaller, smaller.nodes[:5])
    if scores.shape != (5, len(copy.classes_)):
        raise Broken(f"after drop_nodes(), scores have shape {scores.shape}; it must be (5, {len(copy.classes_)}).")


Rule = Callable[[Subject], None]
RULES: tuple[Rule, ...] = (
    fit_learns_session_0,
    learn_appends_classes,
    scores_are_numbers,
    scores_do_not_depend_on_who_else_is_asked,
    asking_changes_nothing,
    a_loaded_learner_scores_the_same,
    a_loaded_learner_goes_on_as_the_saved_one,
    a_state_stays_what_it_was,
    an_earlier_state_is_that_of_then,
    a_copy_goes_on_by_itself,
    a_seed_gives_one_result,
    what_is_handed_over_stays_as_it_is,
    every_kind_of_stream_can_be_learned,
    more_supports_and_unequal_shots_are_learned,
    supports_without_edges_are_learned,
    an_interrupted_fit_goes_on,
    stored_says_what_is_kept,
    embeddings_are_what_scores_come_from,
    explain_answers_or_says_none,
    restating_what_is_known_changes_nothing,
    dropped_nodes_are_no_longer_needed,
    node_numbers_mean_nothing,
    column_order_means_nothing,
)
