"""Check a learner of your own with ``check_learner(MyLearner)`` or ``graphfcl check my_module:MyLearner``."""

from graphfcl.methods.testing import ContractError, check_learner

__all__ = ["ContractError", "check_learner"]
