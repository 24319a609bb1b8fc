"""An erasure that is decided: manifests that are written anew, and then everything goes that they do not need.

The plan lies in the folder from the moment at which it is decided until all of it is carried out. It names no erased
node. Whoever is killed meanwhile leaves a folder whose versions are all whole, with the nodes or without them, and the
next writer carries out the plan, from its start.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphfcl.errors import InputError
from graphfcl.production.answers.version_cache import VersionCache
from graphfcl.production.graph.place import work_folder
from graphfcl.production.model.wholeness import Wholeness, remove_manifests, remove_objects
from graphfcl.production.store.damage import Damaged
from graphfcl.production.store.locks import WriterLock
from graphfcl.production.store.manifests import ERASING, Manifest, Manifests
from graphfcl.production.store.objects import ObjectFolder


@dataclass(frozen=True)
class ErasurePlan:
    """manifests: those of the versions that change, and last the one of a new version. pruned: what is said of pruned
    versions from then on, if that changes: the last of them, and entries. report: what the user is told.
    """

    manifests: list[Manifest]
    pruned: tuple[int, list[dict[str, Any]]] | None
    report: dict[str, Any]

    @property
    def version(self) -> int:
        """The number of the new version."""
        return int(self.manifests[-1]["version"])

    def as_json(self) -> dict[str, Any]:
        return {"manifests": self.manifests, "pruned": self.pruned, "report": self.report}


class Erasures:
    """The plan of one folder, if there is one; whoever calls holds the folder's lock."""

    def __init__(
        self, folder: Path, manifests: Manifests, objects: ObjectFolder, cache: VersionCache, lock: WriterLock
    ) -> None:
        self._folder, self._manifests, self._objects = folder, manifests, objects
        self._cache, self._lock = cache, lock

    def decide(self, plan: ErasurePlan) -> None:
        """From here on the plan will be carried out; all objects of its manifests must be there."""
        self._lock.check()
        self._manifests.write_erasing(plan.as_json())

    def carry_out(self) -> ErasurePlan | None:
        """Carry out the plan that lies in the folder; None if there is none."""
        plan = self._found()
        if plan is None:
            return None
        self._refuse_another_folder(plan)
        self._lock.check()
        # The pointer names the checksum of what it shows: a new version first, then the others can change.
        self._manifests.point(self._manifests.write(plan.manifests[-1]))
        for manifest in plan.manifests[:-1]:
            self._manifests.write(manifest)
        if plan.pruned is not None:
            self._manifests.write_pruned(*plan.pruned)
        # A manifest above the pointer was never acknowledged.
        remove_manifests(self._manifests, [each for each in self._manifests.numbers() if each > plan.version])
        needed = self._needed()
        self._cache.clear()
        self._clear_work()
        remove_objects(self._folder, self._lock, needed)
        self._manifests.remove_erasing()
        return plan

    def _clear_work(self) -> None:
        """What was computed of a graph folder goes: it may hold features of the nodes."""
        work = work_folder(self._folder)
        if work is not None and work.is_dir():
            from graphfcl.production.graph.work_files import clear_work

            clear_work(work)

    def _found(self) -> ErasurePlan | None:
        try:
            found = self._manifests.erasing()
        except Damaged as error:
            raise InputError(
                f"{self._folder}: an erasure was not finished, and its plan versions/{ERASING} {error}: remove that "
                "file, and erase again."
            ) from error
        if found is None:
            return None
        pruned = None if found["pruned"] is None else (int(found["pruned"][0]), list(found["pruned"][1]))
        return ErasurePlan(found["manifests"], pruned, found["report"])

    def _refuse_another_folder(self, plan: ErasurePlan) -> None:
        try:
            newest = self._manifests.pointer()[0]
        except Damaged:
            return  # the plan has what the pointer must show
        if newest > plan.version:
            raise InputError(
                f"{self._folder}: an erasure was not finished, and version {newest} was written after it: remove "
                f"versions/{ERASING}, and erase again."
            )

    def _needed(self) -> set[str]:
        check, found = Wholeness(self._manifests, self._objects), set[str]()
        for number in self._manifests.numbers():
            try:
                found |= check.needed(self._manifests.read(number))
            except Damaged as error:
                raise InputError(
                    f"{self._folder}: version {number} was damaged while nodes were erased, it {error}: "
                    f"remove {self._manifests.path(number)}, then any command that writes finishes the erasure."
                ) from error
        return found
