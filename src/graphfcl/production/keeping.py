"""How the state of a model becomes a version of a folder, and what the cache beside it holds."""

from dataclasses import dataclass
from typing import Any

from graphfcl.production.answers import Answers
from graphfcl.production.calibration import Readings
from graphfcl.production.model_parts import Configuration, ModelParts
from graphfcl.production.model_state import ModelState
from graphfcl.production.version_cache import CacheContents, CacheKeys, CacheThread, cache_keys
from graphfcl.production.versions import Versions


@dataclass(frozen=True, eq=False)
class WrittenState:
    """A state that was written as a version of a folder. keys: by which the cache knows what it belongs to."""

    state: ModelState
    parts: ModelParts
    versions: Versions
    number: int
    keys: CacheKeys

    @classmethod
    def write(
        cls, state: ModelState, configuration: Configuration, versions: Versions, request: dict[str, Any] | None
    ) -> "WrittenState":
        """As the next version; the caller holds the lock of the folder."""
        parts = state.copy().parts.configured(configuration)
        manifest = versions.write(parts, state.history, loaded=state.version, request=request)
        keys = cache_keys(manifest, parts.configuration.method)
        return cls(state, parts, versions, manifest["version"], keys)

    def keep_answers(self, thread: CacheThread | None) -> None:
        """Leave what was computed to the next reader. thread: writes the cache of a model in memory, None: nobody."""
        if self.state.on_disk is not None:
            self.state.on_disk.keep_for(self.keys)
        elif thread is not None:
            contents = cache_contents(self.keys, self.parts, self.state.asked.answers())
            thread.start(self.versions.cache, contents, lambda: self.versions.shows(self.number))


def write_newest_cache(state: ModelState, versions: Versions | None) -> None:
    """Write the cache of the version that a state is, if that is the newest one of its folder."""
    number = state.version
    saved = number is not None and not state.history.unsaved() and state.on_disk is None
    if versions is None or number is None or not saved or not versions.shows(number):
        return
    parts = state.copy().parts
    keys = cache_keys(versions.manifest(number), parts.configuration.method)
    versions.cache.write(cache_contents(keys, parts, state.asked.answers()), lambda: versions.shows(number))


def cache_contents(keys: CacheKeys, parts: ModelParts, answers: Answers) -> CacheContents:
    """What the next reader of a version need not compute."""
    table = parts.learner.embeddings(parts.graph.visible)
    readings = Readings(answers.strangeness, answers.temperatures)
    return CacheContents(keys, parts.graph.ids, table, answers.scores, readings)
