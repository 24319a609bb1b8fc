"""How the state of a model becomes a version of a folder, and its answers are kept for the next reader."""

from dataclasses import dataclass
from typing import Any

from graphfcl.production.answers.version_cache import CacheContents, CacheKeys, CacheThread, cache_keys
from graphfcl.production.model.parts import Configuration, ModelParts
from graphfcl.production.model.state import ModelState
from graphfcl.production.model.versions import Versions


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

        def write(contents: CacheContents) -> None:
            assert thread is not None
            thread.start(self.versions.cache, contents, lambda: self.versions.shows(self.number))

        graph, answering = self.parts.graph, self.state.answering
        # Answers on disk are those that were computed; the cache of a model in memory always has all.
        answers = answering.computed if graph.passes or thread is None else answering.answers()
        if answers is not None:
            graph.keep_answers(answers, self.parts.learner, self.keys, None if thread is None else write)


def write_newest_cache(state: ModelState, versions: Versions | None) -> None:
    """Write the cache of the version that a state is, if that is the newest one of its folder."""
    number = state.version
    if versions is None or number is None or state.history.unsaved() or not versions.shows(number):
        return
    parts = state.copy().parts
    keys = cache_keys(versions.manifest(number), parts.configuration.method)

    def write(contents: CacheContents) -> None:
        versions.cache.write(contents, lambda: versions.shows(number))

    if not state.passes:
        parts.graph.keep_answers(state.answering.answers(), parts.learner, keys, write)
