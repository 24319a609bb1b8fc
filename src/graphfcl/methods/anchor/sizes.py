"""How large things are: what a model stores of session 0 is bounded, and what a graph on disk holds is planned."""

from graphfcl.methods.anchor.choosing import held_by_choice
from graphfcl.methods.anchor.hop_encoder import HOPS
from graphfcl.methods.anchor.settings import AnchorSettings
from graphfcl.methods.anchor.storage import AnchorKnowledge
from graphfcl.methods.blocks import Held, NodeTables
from graphfcl.methods.blocks.labelled_rows import count_of_each_class
from graphfcl.methods.shared.validation_sessions import STEP_DRAWS
from graphfcl.stream import BaseSession

MAX_FRAME_BYTES = 18_000_000  # storage budget for basis, whitening, encoder
BYTES_OF_HOP = 16  # of a number that the encoder reads, as it is gathered and with that of the other rows
BYTES_OF_POINT = 12  # of a number of x that the head reads
READ_BY_ENCODER = 1 + len(HOPS)  # times the columns of the basis


def first_layer_shape(
    settings: AnchorSettings, encoder_input: str, features: int, nodes: int, classes: int, *, rank: int | None = None
) -> tuple[int, int]:
    """(inputs, hidden) of the encoder. features, nodes: of the graph of session 0. rank: of a basis that is known."""
    if encoder_input == "none":
        return 1, 0
    if encoder_input == "hops":
        columns = min(frame_rank(settings, encoder_input, features, classes), nodes, features) if rank is None else rank
        return READ_BY_ENCODER * columns, settings.hidden
    return features, min(settings.hidden, max(16, MAX_FRAME_BYTES // (4 * features)))


def frame_rank(settings: AnchorSettings, encoder_input: str, width: int, classes: int, first: int = 0) -> int:
    """Columns of the basis: as many as asked for, or as the bytes allow.

    width: feature columns. first: numbers of the encoder's first layer, if it reads the graph; one that reads hops has
    as many inputs as the basis has columns, three times.
    """
    rank, size = settings.rank, 0 if encoder_input == "none" else settings.size
    each = width + (READ_BY_ENCODER * settings.hidden if encoder_input == "hops" else 0)
    while rank > 16 and each * rank + (2 * rank + size) * (2 * rank + size + 2 * classes) > MAX_FRAME_BYTES - first:
        rank -= 16
    return rank


def require_room(
    tables: NodeTables,
    base: BaseSession,
    rank: int,
    encoder_input: str,
    size: int,
    settings: AnchorSettings,
    seed: int,
) -> None:
    """Refuse a limit of memory that is too small for a phase of session 0, or for scores of all classes.

    rank: columns of the basis at most. size: of the encoder's output. The limit that is named is enough for all phases.
    """
    rank = min(rank, tables.node_count, tables.feature_count)
    sampled, classes = settings.samples(tables.node_count), max(len(base.classes), tables.class_count)
    draws = STEP_DRAWS if sampled else 1
    by_encoder = READ_BY_ENCODER * rank if encoder_input == "hops" else 0
    vector = 2 * rank + size
    # Of features; of what the encoder reads; of vectors with posteriors; of posteriors with those of neighbours.
    widest = max(tables.feature_count, by_encoder, vector + classes, 2 * draws * classes + 2)
    labels, held = (base.train_labels, base.validation_labels), []
    if by_encoder:
        taken = sum(count_of_each_class(part, settings.encoder_nodes) for part in labels)
        what = f"the encoder's training on {taken:,} rows of {by_encoder:,} columns"
        held.append(Held(taken * by_encoder * BYTES_OF_HOP, what))
    if settings.head_share > 0:
        most = (settings.most_for_head(tables.node_count), settings.most_validated(tables.node_count))
        held.append(held_by_head(sum(map(count_of_each_class, labels, most)), vector))
    if sampled:
        held.append(held_by_choice(base, tables, rank, settings, seed))
    tables.require(*held, columns=widest, slice_copies=3)


def require_scores(tables: NodeTables, known: AnchorKnowledge, size: int, *, rounds: bool = False) -> None:
    """Refuse a limit of memory that is too small for scores of all nodes with a frame that is known.

    size: of the encoder's output. rounds: if x is known, and only what follows it is computed.
    """
    rank, classes, how = known.frame["basis"].shape[1], len(known.anchors.counts), known.neighbourhood
    vector = 2 * rank + size
    widest = max(vector + max(1, classes), 2 * classes + 2)  # with posteriors; posteriors with those of neighbours
    copies = (3 if how.smoothing > 0 else 2) if how.uses_posteriors else 0
    if not rounds:
        by_encoder = READ_BY_ENCODER * rank if known.encoder_input == "hops" else 0
        widest, copies = max(widest, tables.feature_count, by_encoder), max(copies, 2)
    tables.require(columns=widest, slice_copies=copies)


def held_by_head(rows: int, columns: int) -> Held:
    """What the head's training holds."""
    what = f"the head's training on {rows:,} rows of {columns:,} columns"
    return Held(rows * columns * BYTES_OF_POINT, what)
