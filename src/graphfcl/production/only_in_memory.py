"""What a model on a graph folder does not do, and what its user does in place of it."""

from graphfcl.errors import InputError

_ANEW = "import the graph without them, fit a model on it and teach it what `graphfcl labels` writes of this one"
INSTEAD = {
    "refit": "fit another model on the graph folder (`graphfcl fit --graph DIR --model NEW`) and teach it what "
    "`graphfcl labels` writes of this one",
    "shrink": f"{_ANEW}; `graphfcl unlearn` takes back labels alone",
    "erase": f"{_ANEW}; then delete this model, its work folder and the old graph folder",
}


def only_in_memory(what: str) -> InputError:
    """The refusal of one of these."""
    return InputError(
        f"{what} needs the whole graph in memory, and the graph of this model stays on the disk: {INSTEAD[what]}; "
        "nothing was changed."
    )
