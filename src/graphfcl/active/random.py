"""Candidates drawn with equal chance: what every other strategy has to beat."""

from graphfcl.active.contract import ActiveLearningState, Query, Strategy


class Random(Strategy):
    """Candidates drawn with equal chance"""

    name = "random"

    def choose(self, state: ActiveLearningState) -> list[Query]:
        drawn = state.shuffled()[: state.wanted]
        return [Query(int(row), "random") for row in drawn]
