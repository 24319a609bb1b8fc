"""Changes of a model's graph: add, update and remove nodes and edges."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from graphfcl.production.teaching import TeachableModel


class GrowingModel(TeachableModel):
    """A model whose graph can be changed. Each method is one change; an error changes nothing."""

    def add_nodes(
        self,
        ids: Sequence[Any],
        features: Any = None,
        *,
        texts: Sequence[str] | None = None,
        on_existing: str = "refuse",
    ) -> Self:
        """Add nodes without edges.

        Args:
            ids: Ids of the new nodes.
            features: (n, d) features in the columns of the model's graph, dense or sparse.
            texts: Texts of the nodes, for a graph whose features were made from text.
            on_existing: What to do with nodes that exist with other features; see :meth:`grow`.

        Returns:
            The classifier.

        Raises:
            InputError: If the nodes cannot be added; nothing is changed then.
        """
        return self.grow(nodes=(ids, features, texts), on_existing=on_existing)

    def add_edges(
        self,
        source: Sequence[Any],
        target: Sequence[Any],
        weights: np.ndarray | None = None,
        *,
        on_existing: str = "refuse",
    ) -> Self:
        """Add edges between existing nodes.

        Args:
            source: Ids of one end of each edge.
            target: Ids of the other end of each edge.
            weights: (e,) weights of the edges. None: new edges get weight 1, and existing edges keep theirs. If the fit
                counted or added up repeated edges, each listed edge weighs 1 instead, the weights of one direction are
                added up, and the larger sum of both directions is the weight of the edge.
            on_existing: What to do with edges that exist with another weight; see :meth:`grow`.

        Returns:
            The classifier.

        Raises:
            InputError: If the edges cannot be added; nothing is changed then.
        """
        return self.grow(edges=(source, target, weights), on_existing=on_existing)

    def grow(
        self, *, nodes: Any = None, edges: Any = None, on_existing: str = "refuse", unknown_ends: str | None = None
    ) -> Self:
        """Add nodes and edges in one change.

        A node that exists with the same features, or an edge that exists with the same weight, changes nothing.

        Args:
            nodes: Tuple of ids, features and texts. Or a DataFrame or the Path of a table, with the column names of the
                tables of the fit, or with ``node`` and the feature columns.
            edges: Tuple of source ids, target ids and weights. Or a DataFrame or the Path of a table, with the column
                names of the tables of the fit, or with ``source``, ``target`` and optionally ``weight``.
            on_existing: What to do with nodes and edges that exist with other features or another weight. ``refuse``
                the whole change, ``skip`` them, or ``update`` them. An update replaces all features of a node,
                and removes an edge whose new weight is 0.
            unknown_ends: ``refuse`` edges to nodes that do not exist, or ``skip`` them. None: as at the fit, or
                ``refuse`` if the graph was not read from tables.

        Returns:
            The classifier.

        Raises:
            InputError: If nodes or edges cannot be added; nothing is changed then.
            AccuracyLossError: Inside :meth:`guarded`, if the change costs too much accuracy.
        """
        from graphfcl.production.changes.graph_changes import as_new_edges, as_new_nodes, grown

        with self._change() as draft:
            columns = self._columns()
            more = as_new_nodes(nodes, draft.graph, columns), as_new_edges(edges, columns)
            repeated, usual = (columns.repeated, columns.unknown_ends) if columns else ("max", "refuse")
            draft.change_graph(grown(draft.graph, *more, on_existing, repeated, unknown_ends or usual))
        return self

    def remove_edges(self, source: Sequence[Any], target: Sequence[Any]) -> Self:
        """Remove edges.

        Args:
            source: Ids of one end of each edge.
            target: Ids of the other end of each edge.

        Returns:
            The classifier.

        Raises:
            InputError: If an edge does not exist; nothing is changed then.
        """
        return self.shrink(edges=(source, target))

    def remove_nodes(self, ids: Sequence[Any]) -> Self:
        """Remove nodes with their edges and labels; a class that loses its last label is retired.

        Args:
            ids: Ids of the nodes.

        Returns:
            The classifier.

        Raises:
            InputError: If a node does not exist; nothing is changed then.
        """
        return self.shrink(nodes=ids)

    def shrink(self, *, nodes: Any = None, edges: Any = None) -> Self:
        """Remove edges and nodes in one change.

        Args:
            nodes: Ids of the nodes to remove, or a DataFrame or the Path of a table with the column ``node``, or with
                the name of the id column of the fit.
            edges: Tuple of source ids and target ids, or a DataFrame or the Path of a table with the columns ``source``
                and ``target``, or with those of the tables of the fit.

        Returns:
            The classifier.

        Raises:
            InputError: If a node or an edge does not exist, or neither is given; nothing is changed then.
            AccuracyLossError: Inside :meth:`guarded`, if the change costs too much accuracy.
        """
        from graphfcl.production.changes.graph_changes import as_new_edges, shrunk

        with self._change() as draft:
            ends = as_new_edges(edges, self._columns())
            draft.change_graph(shrunk(draft.graph, self._ids(nodes), None if ends is None else ends[:2]))
        return self
