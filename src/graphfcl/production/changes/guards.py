"""Guards of a change: which classes it may add, and how much accuracy it may cost."""

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

from graphfcl.errors import AccuracyLossError, InputError, did_you_mean, quoted, shown
from graphfcl.graph.ids import ClassLabel, bare_name
from graphfcl.methods import Progress
from graphfcl.production.labels.label_store import LabelStore
from graphfcl.production.model.calibrating import loss_of, with_renamed_class
from graphfcl.production.model.parts import list_of_names

NewClasses = bool | Iterable[ClassLabel]
LISTED = 20  # classes that a message names


def refuse_new_classes(places: Mapping[str, str], labels: LabelStore, new_classes: NewClasses) -> None:
    """Refuse classes that the model does not have and may not learn.

    Args:
        places: For each class to be learned, by its cleaned name, where it is written (for messages).
        labels: Labels of the model.
        new_classes: True allows every name that differs from all known classes by more than case, white space and
            accents. A list allows the classes in it, however similar their names are, and no others. False allows none.
    """
    new = [name for name in places if name not in labels.names]
    listed = () if isinstance(new_classes, bool) else list_of_names(new_classes, "the new classes")
    allowed = {labels.form(labels.text(name)) for name in listed}
    known = {bare_name(name): name for name in reversed(labels.classes)}
    wrong = {}
    for name in new:
        alike = known.setdefault(bare_name(name), name)
        if labels.form(name) not in allowed and (alike != name or new_classes is not True):
            wrong[name] = alike
    if not wrong:
        return
    faults = [f"{places[name]}: {_fault(name, alike, labels)}" for name, alike in [*wrong.items()][:LISTED]]
    more = [f"and {len(wrong) - LISTED} more"] if len(wrong) > LISTED else []
    name, alike = next(iter(wrong.items()))
    fix = f"write {quoted(alike)}" if len(wrong) == 1 and name != alike else "write a known one"
    flags = shlex.join(word for name in new for word in ("--new-class", name))
    raise InputError(
        f"{'; '.join([*faults, *more])}: {fix}, or allow {'it' if len(new) == 1 else 'all new ones'} with {flags} "
        "(new_classes in Python and HTTP); nothing was learned."
    )


def _fault(name: str, alike: str, labels: LabelStore) -> str:
    if alike != name:
        return (
            f"{quoted(name)} is a new class, but {quoted(alike)} is {'known' if alike in labels.names else 'new too'}"
        )
    hint = did_you_mean(name, labels.classes, "")
    return f"{quoted(name)} is a new class{hint and f' ({hint})'}"


@dataclass(frozen=True)
class LossGuard:
    """Limit for the balanced accuracy that changes may cost.

    Attributes:
        max_loss: Largest loss, as a share.
        before: Accuracy that the changes start from.
        progress: Receives the progress of computing scores.
        outer: Guard that applies, too.
    """

    max_loss: float
    before: dict[str, Any]
    progress: Progress
    outer: "LossGuard | None" = None

    @classmethod
    def of(
        cls, max_loss: Any, before: dict[str, Any], progress: Progress, outer: "LossGuard | None" = None
    ) -> "LossGuard":
        """Make a guard; raises an error if no class has a validation node."""
        if isinstance(max_loss, bool) or not isinstance(max_loss, Real) or not 0 <= float(max_loss) <= 1:
            raise InputError(f"max_loss is {shown(max_loss)}: give a share of accuracy from 0 to 1, such as 0.02.")
        if not before["classes"]:
            raise InputError(
                "no class of the model has a validation node, so a loss of accuracy cannot be measured: leave "
                "--max-loss (max_loss in Python) out; nothing was changed."
            )
        return cls(float(max_loss), before, progress, outer)

    def check(self, after: dict[str, Any]) -> None:
        """Refuse a change after which the accuracy is ``after`` if it lost more than allowed."""
        loss = loss_of(self.before, after)
        if loss is None or loss.share > self.max_loss:
            why = str(loss or "none of the classes known before has a validation node any more")
            raise AccuracyLossError(
                f"{why}: --max-loss (max_loss in Python) allows {100 * self.max_loss:.1f} points; nothing was changed."
            )
        if self.outer is not None:
            self.outer.check(after)

    def renamed(self, old: str, new: str) -> "LossGuard":
        """Return the guard after a class was renamed."""
        outer = None if self.outer is None else self.outer.renamed(old, new)
        return replace(self, before=with_renamed_class(self.before, old, new), outer=outer)
