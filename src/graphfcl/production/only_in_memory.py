"""What a model on a graph folder does not do, and what its user does in place of it."""

from graphfcl.errors import InputError

INSTEAD = {
    "explain": "`graphfcl predict --nodes TABLE --coverage 0.9` says which classes are likely for a node",
    "suggest": "label nodes that `graphfcl predict` gives a low probability or calls unknown",
    "groups": "look for classes among the nodes that `graphfcl predict` calls unknown",
    "spread": "choose supports that are not neighbours of each other",
    "serve": "ask it with `graphfcl predict`, or from Python with `predictions(nodes)`",
}


def only_in_memory(what: str) -> InputError:
    """The refusal of one of these."""
    return InputError(
        f"{what} needs the whole graph in memory, and the graph of this model stays on the disk: {INSTEAD[what]}; "
        "nothing was changed."
    )
