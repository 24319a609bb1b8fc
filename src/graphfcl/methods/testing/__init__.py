"""The contract as checks: :func:`check_learner` holds any learner to the rules that this package's own methods keep."""

from collections.abc import Iterator, Sequence
from typing import Any

from graphfcl.errors import in_one_line
from graphfcl.methods.learner import Learner
from graphfcl.methods.registry import refuse_no_learner
from graphfcl.methods.testing.rules import RULES, Rule
from graphfcl.methods.testing.subject import Broken, Subject


class ContractError(AssertionError):
    """A learner breaks rules of the contract; one sentence each."""


def says(rule: Rule) -> str:
    """What the contract says, in one line."""
    return " ".join((rule.__doc__ or rule.__name__).split())


def broken_rules(
    learner: type[Learner], settings: dict[str, Any] | None = None, rules: Sequence[Rule] = RULES
) -> Iterator[tuple[Rule, str | None]]:
    """Each rule and why it is broken, or None if it holds; one after the other, as they are checked."""
    refuse_no_learner(learner, getattr(learner, "__name__", str(learner)))
    subject = Subject(learner, settings)
    for rule in rules:
        try:
            rule(subject)
        except Broken as broken:
            yield rule, str(broken)
        except Exception as error:  # whatever somebody else's code raises is a broken rule
            yield rule, f"it raised {in_one_line(error)}"
        else:
            yield rule, None


def check_learner(learner: type[Learner], settings: dict[str, Any] | None = None) -> None:
    """Raise :class:`ContractError` if a learner breaks a rule of the contract: a sentence for each that it breaks.

    settings: changes of its settings, ``{"epochs": 3}``, so that it learns quickly.
    """
    broken = [f"{says(rule)} Broken: {why}" for rule, why in broken_rules(learner, settings) if why is not None]
    if broken:
        raise ContractError(f"{learner.__name__} breaks {len(broken)} of {len(RULES)} rules:\n" + "\n".join(broken))


__all__ = ["RULES", "Broken", "ContractError", "Rule", "Subject", "broken_rules", "check_learner", "says"]
