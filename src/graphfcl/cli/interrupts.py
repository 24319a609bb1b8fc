"""What to say when somebody presses Ctrl-C."""

import shlex
from collections.abc import Sequence

WITH_RESUME = ("run", "fit")
CHANGES = ("learn", "grow", "shrink", "unlearn", "rename", "merge", "retire", "rollback", "prune", "groups", "refit")


def how_to_go_on(words: Sequence[str]) -> str:
    """A sentence with the exact command. words: those of the command that was stopped."""
    verb = next((word for word in words if not word.startswith("-")), "")
    if verb in WITH_RESUME and "--resume" not in words:
        words = [*words, "--resume"]
    command = shlex.join(["graphfcl", *words])
    if verb in (*WITH_RESUME, "bench"):
        return f"stopped: go on where it was with `{command}`."
    if verb in CHANGES:
        return f"stopped: the change is whole or not made, as `graphfcl history` says; to make it: `{command}`."
    return f"stopped: to start again: `{command}`."
