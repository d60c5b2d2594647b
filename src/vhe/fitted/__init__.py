"""Fitted models: saving, loading, queries and new vertices, without training and without torch.

`vhe.estimators` adds training. A command that only queries a saved graph model opens it with
`open_model`, which takes a fraction of a second.
"""

from vhe.fitted.base import Arrays, FittedModel, checked, cosine
from vhe.fitted.graph import FittedGraph, open_model

__all__ = ["Arrays", "FittedGraph", "FittedModel", "checked", "cosine", "open_model"]
