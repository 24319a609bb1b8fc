"""How large the encoder's first layer and the basis are: what a model stores of session 0 is bounded."""

from graphfcl.methods.anchor.settings import AnchorSettings

MAX_FRAME_BYTES = 18_000_000  # storage budget for basis, whitening, encoder


def first_layer_shape(
    settings: AnchorSettings, encoder_input: str, features: int, nodes: int, classes: int
) -> tuple[int, int]:
    """(inputs, hidden) of the encoder. features, nodes: of the graph of session 0."""
    if encoder_input == "none":
        return 1, 0
    if encoder_input == "hops":
        return 3 * min(frame_rank(settings, encoder_input, features, classes), nodes, features), settings.hidden
    return features, min(settings.hidden, max(16, MAX_FRAME_BYTES // (4 * features)))


def frame_rank(settings: AnchorSettings, encoder_input: str, width: int, classes: int, first: int = 0) -> int:
    """Columns of the basis: as many as asked for, or as the bytes allow.

    width: feature columns. first: numbers of the encoder's first layer, if it reads the graph; one that reads hops has
    as many inputs as the basis has columns, three times.
    """
    rank, size = settings.rank, 0 if encoder_input == "none" else settings.size
    each = width + (3 * settings.hidden if encoder_input == "hops" else 0)
    while rank > 16 and each * rank + (2 * rank + size) * (2 * rank + size + 2 * classes) > MAX_FRAME_BYTES - first:
        rank -= 16
    return rank
