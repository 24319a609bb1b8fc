"""ANCHOR with pool labels: ANCHOR (``anchor/learner.py``) with the pool of a session among its supports.

It tells what ANCHOR makes of many labels, next to what joint training makes of them. Session 0 is that of ANCHOR, and a
session adds S_c += Σ x(v), n_c += 1 over supports and pool. Its results are marked "uses pool labels".
"""

from graphfcl.methods.anchor.learner import Anchor
from graphfcl.methods.blocks import NodeTables
from graphfcl.methods.shared.memories import pool_among_supports
from graphfcl.stream.sessions import Session


class AnchorPool(Anchor):
    """ANCHOR that also learns the pool labels; see the module docstring."""

    name = "anchor-pool"
    title = "ANCHOR with the pool labels among the supports (uses pool labels)"
    reference = "upper reference of anchor"
    uses_pool_labels = True

    def _learn(self, session: Session, inputs: NodeTables) -> None:
        super()._learn(pool_among_supports(session), inputs)
