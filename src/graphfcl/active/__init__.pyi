"""The public names of ``graphfcl.active``: type checkers and the package itself read this list."""

from graphfcl.active.contract import (
    Reason as Reason,
    ActiveLearningState as ActiveLearningState,
    Strategy as Strategy,
    Query as Query,
    checked as checked,
)
from graphfcl.active.registry import (
    OF_EACH_CLASS as OF_EACH_CLASS,
    STRATEGIES as STRATEGIES,
    NamedStrategy as NamedStrategy,
    find_strategy as find_strategy,
    outside_strategies as outside_strategies,
    register_strategy as register_strategy,
    strategy_from as strategy_from,
)

__all__: list[str]
