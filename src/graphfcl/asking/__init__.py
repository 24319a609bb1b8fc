"""Which nodes to label next.

The door: ``contract.py`` is what a strategy sees and answers, ``registry.py`` knows the strategies by name. Then the
strategies, one file each; ``clusters.py`` is what those have that look for groups of nodes.
"""

from typing import TYPE_CHECKING

from graphfcl.lazy_names import lazy_names

if TYPE_CHECKING:
    from graphfcl.asking.contract import Reason, Situation, Strategy, Wish, checked
    from graphfcl.asking.registry import (
        OF_EACH_CLASS,
        STRATEGIES,
        NamedStrategy,
        find_strategy,
        outside_strategies,
        register_strategy,
        strategy_from,
    )

# Where each name lives: strategies are named without scikit-learn.
_PLACES = {
    "Reason": "contract",
    "Situation": "contract",
    "Strategy": "contract",
    "Wish": "contract",
    "checked": "contract",
    "OF_EACH_CLASS": "registry",
    "STRATEGIES": "registry",
    "NamedStrategy": "registry",
    "find_strategy": "registry",
    "outside_strategies": "registry",
    "register_strategy": "registry",
    "strategy_from": "registry",
}

__all__ = [
    "OF_EACH_CLASS",
    "STRATEGIES",
    "NamedStrategy",
    "Reason",
    "Situation",
    "Strategy",
    "Wish",
    "checked",
    "find_strategy",
    "outside_strategies",
    "register_strategy",
    "strategy_from",
]

__getattr__ = lazy_names(__name__, _PLACES)
