"""Checks of the learner contract. :func:`check_learner` applies them to any learner; all built-in methods pass."""

from collections.abc import Iterator, Sequence
from typing import Any

from graphfcl.errors import in_one_line
from graphfcl.methods.learner import Learner
from graphfcl.methods.registry import check_method
from graphfcl.methods.testing.rules import RULES, Rule
from graphfcl.methods.testing.subject import Broken, Subject


class ContractError(AssertionError):
    """A learner breaks rules of the contract. The message has a sentence per rule."""


def says(rule: Rule) -> str:
    """Return the statement of a rule in one line."""
    return " ".join((rule.__doc__ or rule.__name__).split())


def broken_rules(
    learner: type[Learner], settings: dict[str, Any] | None = None, rules: Sequence[Rule] = RULES
) -> Iterator[tuple[Rule, str | None]]:
    """Check one rule after the other, and yield each with the reason why it is broken, or None if it holds."""
    check_method(learner, getattr(learner, "__name__", str(learner)))
    subject = Subject(learner, settings)
    for rule in rules:
        try:
            rule(subject)
        except Broken as broken:
            yield rule, str(broken)
        except Exception as error:  # any exception in the learner's code breaks the rule
            yield rule, f"it raised {in_one_line(error)}"
        else:
            yield rule, None


def check_learner(learner: type[Learner], settings: dict[str, Any] | None = None) -> None:
    """Check that a learner satisfies the learner contract.

    Args:
        learner: The learner class.
        settings: Settings that differ from the defaults, for example ``{"epochs": 3}`` to make the check faster.

    Raises:
        ContractError: If the learner breaks a rule. The message says for each broken rule why.
        InputError: If the class cannot be registered as a method.
    """
    broken = [f"{says(rule)} Broken: {why}" for rule, why in broken_rules(learner, settings) if why is not None]
    if broken:
        raise ContractError(f"{learner.__name__} breaks {len(broken)} of {len(RULES)} rules:\n" + "\n".join(broken))


__all__ = ["RULES", "Broken", "ContractError", "Rule", "Subject", "broken_rules", "check_learner", "says"]
