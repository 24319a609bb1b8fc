"""The public names of ``graphfcl.asking``: type checkers and the package itself read this list."""

from graphfcl.asking.contract import (
    Reason as Reason,
    Situation as Situation,
    Strategy as Strategy,
    Wish as Wish,
    checked as checked,
)
from graphfcl.asking.registry import (
    OF_EACH_CLASS as OF_EACH_CLASS,
    STRATEGIES as STRATEGIES,
    NamedStrategy as NamedStrategy,
    find_strategy as find_strategy,
    outside_strategies as outside_strategies,
    register_strategy as register_strategy,
    strategy_from as strategy_from,
)

__all__: list[str]
