"""Candidates drawn with equal chance: what every other strategy has to beat."""

from graphfcl.asking.contract import Situation, Strategy, Wish


class Random(Strategy):
    """Candidates drawn with equal chance"""

    name = "random"

    def choose(self, situation: Situation) -> list[Wish]:
        drawn = situation.shuffled()[: situation.wanted]
        return [Wish(int(row), "random") for row in drawn]
