"""SGC-ridge: class-balanced ridge regression on propagated features, in closed form.

The simplest strong baseline: no encoder, no training, no stored node. The vector of a node v depends on no label
(propagated features as in SGC, Wu et al., 2019)::

    f(v) = [ n(XB)_v , a n(ÂÂXB)_v ]      n(·): centred on the visible graph of session 0, then scaled to unit length

X are the features with rows of unit length, and B the leading right singular vectors of X in session 0. H_c holds the
vectors of the n_c labelled nodes of class c as rows, and S_c is their sum::

    G = Σ_c H_cᵀH_c / n_c,   μ_c = S_c / n_c,   W = (G + λ tr(G)/D · I)⁻¹ [μ_1 … μ_C],   score_c(v) = f(v)·W_c

**A session** adds the vectors of its supports, computed on its graph, to G, S and n. The order of new classes does not
matter. If a known class gets m further supports, they enter G with weight 1/(n_c + m). G does not separate classes, so
the weight of earlier labels can only be lowered from 1/n_c to 1/(n_c + m) if the session lists them, as sessions of a
model in production do. The sums are then a function of the set of labels. In a stream, earlier labels keep their
weight. W is computed when scores are first requested.

**λ and a** are chosen by validation sessions in which all pseudo-novel classes arrive at once. Without such classes the
first candidates are used. a only scales columns of f, so the sums are stored without it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from graphfcl.graph.interfaces import VisibleNodes
from graphfcl.methods.bases.closed_form_learner import Choice, ClosedFormLearner
from graphfcl.methods.blocks import NodeTables
from graphfcl.methods.learner import Explanation
from graphfcl.methods.settings import CheckedSettings, Count, Positive, Weight
from graphfcl.methods.shared.class_statistics import Parts, RidgeSums
from graphfcl.methods.shared.surroundings import Surroundings, best_columns, strongest
from graphfcl.methods.shared.untrained_blocks import HOPS
from graphfcl.methods.state import Tensors

BLOCKS = ("own features", "features around")


@dataclass(frozen=True)
class SgcRidgeSettings(CheckedSettings):
    """Settings of SGC-ridge. Symbols in brackets refer to the formulas in the module docstring."""

    rank: Count = 1024
    """Maximum number of columns of the basis B."""
    penalties: tuple[Positive, ...] = (3.0, 1.0, 10.0)
    """Candidates for the penalty (λ); validation sessions choose one."""
    hop_weights: tuple[Weight, ...] = (2.0, 4.0, 1.0)
    """Candidates for the weight of the propagated features (a); validation sessions choose one."""
    margin: Weight = 0.01
    """Score gain that a candidate needs over the first one to replace it."""
    penalty: Positive | None = None
    """Fixed penalty (λ); none lets validation choose."""
    hop_weight: Weight | None = None
    """Fixed weight of the propagated features (a); none lets validation choose."""


class SgcRidge(ClosedFormLearner):
    """SGC-ridge; the module docstring states the formulas."""

    title = "class-balanced ridge regression on propagated features; closed form, stores no node"
    reference = "a control of this project; features of SGC, Wu et al., ICML 2019"
    settings_type = SgcRidgeSettings
    settings: SgcRidgeSettings
    choices: ClassVar[dict[str, str]] = {"penalty": "penalties", "hop_weight": "hop_weights"}

    def _weights(self) -> tuple[float, float]:
        return 1.0, 1.0  # sums are stored without a, which is absorbed into W

    def _empty(self, size: int) -> RidgeSums:
        return RidgeSums.empty(size, self.device)

    def _reweighted(self, statistics: RidgeSums, earlier: Parts, counts: torch.Tensor) -> RidgeSums:
        return statistics.reweighted(earlier, counts)

    def _head(self, statistics: RidgeSums, inputs: NodeTables, many: int, choice: Choice) -> Tensors:  # noqa: ARG002
        weights = statistics.solve(choice["penalty"], self.blocks.weighted(1.0, choice["hop_weight"]))
        return {"weights": weights.float()}

    @torch.no_grad()
    def explain(
        self, visible: VisibleNodes, node: int, top: int = 5, columns: Sequence[int] | None = None
    ) -> Explanation:
        # f(v)·(W_a − W_b) of the two most likely classes a and b is linear in each block of f.
        tables = self.cache.inputs(visible)
        vector, head = self._rows(tables, np.array([node])), self._head_now(tables)
        vectors = vector, vector * self.blocks.weighted(1.0, 0.0).half()
        scores, own = (self._scores(each, head)[0] for each in vectors)
        order = best_columns(scores, columns, top)
        first, second = order[0], order[min(1, len(order) - 1)]
        direction = head["scales"] * (head["weights"][:, first] - head["weights"][:, second])
        of_features, of_around = self.blocks.feature_directions(tables, node, direction)
        inputs, rows = tables.neighbourhood(np.array([node]), HOPS)
        here = Surroundings(tables, inputs.visible, int(rows[0]))
        linked = (pair for pair in strongest(here.numbers(here.near.indices), here.near.data, top + 1))
        return Explanation(
            classes=tuple((column, float(scores.softmax(dim=0)[column])) for column in order),
            before_smoothing=tuple(own.softmax(dim=0).tolist()),
            blocks=dict(zip(BLOCKS, ((vector[0] * direction).view(2, -1).sum(dim=1)).tolist(), strict=True)),
            features=here.features(of_features, top),
            around=here.around(of_around, HOPS, top),
            neighbours=tuple((other, share, None, 0.0) for other, share in linked if other != node)[:top],
        )

    @staticmethod
    def answers(vectors: torch.Tensor, head: Tensors) -> torch.Tensor:
        """Compute (m, C) f·W."""
        return vectors @ head["weights"]
