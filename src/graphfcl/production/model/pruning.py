"""Remove old versions of a model, and the chunks that no version needs."""

from contextlib import nullcontext, suppress
from dataclasses import dataclass

from graphfcl.errors import InputError
from graphfcl.production.labels.history import Entry
from graphfcl.production.model.parts import whole_number
from graphfcl.production.model.stored_version import PRUNED, VERSION, chunks_of
from graphfcl.production.model.versions import Versions
from graphfcl.production.store.checks import Damaged


@dataclass(frozen=True)
class Pruned:
    """Report of a call of :func:`prune`.

    Attributes:
        versions: Versions that were removed.
        kept: Versions that are left.
        freed: Bytes of chunks that were removed.
    """

    versions: tuple[int, ...]
    kept: tuple[int, ...]
    freed: int


def prune(versions: Versions, keep: int, wait: float, *, dry_run: bool = False) -> Pruned:
    """Keep the newest ``keep`` versions. The changes of the others stay, without the accuracy of single classes.

    ``dry_run``: only report what would be removed.
    """
    if whole_number(keep, "the number of versions to keep", 3) < 1:
        raise InputError(f"{keep} versions cannot be kept: keep at least 1.")
    versions.current()  # an error if there is none
    with nullcontext() if dry_run else versions.writing(wait):
        there, database = versions.numbers(), versions.database
        going, kept = there[:-keep], there[-keep:]
        if dry_run:
            spare = database.spare_chunks(needed_chunks(versions, kept))
            return Pruned(tuple(going), tuple(kept), sum(spare.values()))
        with versions.transaction():
            needed = needed_chunks(versions, kept)
            for number in going:
                changes = [_shortened(change) for change in versions.changes(number)]
                database.put_document(PRUNED, number, {"changes": changes})
                database.delete_document(VERSION, number)
            freed = database.keep_chunks(needed)
        if freed:
            with suppress(InputError):  # then the free space in the file is used by the next versions
                database.vacuum()
        return Pruned(tuple(going), tuple(kept), freed)


def needed_chunks(versions: Versions, numbers: list[int]) -> set[str]:
    """Return the chunks of some versions, or raise an error if the chunks of one cannot be determined."""
    needed = set[str]()
    for number in numbers:
        try:
            needed |= chunks_of(versions.database, versions.manifest(number)).keys()
        except Damaged as error:
            why = f"{error}, so it is not known what it needs, and nothing was removed"
            raise versions.damaged(number, why) from error
    return needed


def _shortened(change: Entry) -> Entry:
    """Return an entry without its version and the accuracy of single classes."""
    accuracy = {key: value for key, value in (change.get("accuracy") or {}).items() if key != "classes"}
    plain = {key: value for key, value in change.items() if key not in ("version", "accuracy")}
    return {**plain, "accuracy": accuracy} if accuracy else plain
