"""ANCHOR with pool labels: ANCHOR (``anchor/learner.py``) that treats the pool of a session as supports.

It shows what ANCHOR achieves with many labels, for comparison with joint training. Session 0 is the same as for ANCHOR.
A session adds S_c += Σ x(v), n_c += 1 over supports and pool. Results are marked "uses pool labels".
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
