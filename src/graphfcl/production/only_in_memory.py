"""What a model on a graph folder does not do, and what its user does in place of it."""

from graphfcl.errors import InputError

_ANEW = "import the graph without them, fit a model on it and teach it what `graphfcl labels` writes of this one"
INSTEAD = {
    "explain": "`graphfcl predict --nodes TABLE --coverage 0.9` says which classes are likely for a node",
    "suggest": "label nodes that `graphfcl predict` gives a low probability or calls unknown",
    "groups": "look for classes among the nodes that `graphfcl predict` calls unknown",
    "spread": "choose supports that are not neighbours of each other",
    "refit": "fit another model on the graph folder (`graphfcl fit --graph DIR --model NEW`) and teach it what "
    "`graphfcl labels` writes of this one",
    "shrink": f"{_ANEW}; `graphfcl unlearn` takes back labels alone",
    "erase": f"{_ANEW}; then delete this model, its work folder and the old graph folder",
    "serve": "ask it with `graphfcl predict`, or from Python with `predictions(nodes)`",
    "all_scores": "`predict_proba(nodes)` and `predictions_in_blocks()` read some rows at a time",
}


def only_in_memory(what: str) -> InputError:
    """The refusal of one of these."""
    return InputError(
        f"{what} needs the whole graph in memory, and the graph of this model stays on the disk: {INSTEAD[what]}; "
        "nothing was changed."
    )
