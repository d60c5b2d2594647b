"""Inductive link prediction: vertices that were not in the training network, given as texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vhe.errors import VHEError

if TYPE_CHECKING:
    from vhe.data.splits import UnseenTest
    from vhe.predict.scoring import Method


def check_unseen(name: str, method: Method) -> None:
    """Raise `VHEError` for a method that cannot embed unseen vertices."""
    if not (hasattr(method, "add_vertices") or getattr(method, "reads_all_texts", False)):
        raise VHEError(f"{name} cannot embed unseen vertices: remove it from --method")


def fit_unseen(method: Any, test: UnseenTest) -> Method:
    """Fit a method on the seen vertices and add the texts of the unseen ones.

    The fitted method scores vertex indices of ``test.network``; those of unseen vertices follow
    the seen ones. A transductive method with ``reads_all_texts``, such as TF-IDF, is fitted on all
    texts and the edges among seen vertices.
    """
    check_unseen(type(method).__name__, method)
    fitted: Method
    if getattr(method, "reads_all_texts", False):
        fitted = method.fit(test.network.with_edges(test.train.edges))
    else:
        fitted = method.fit(test.train)
        method.add_vertices(dict(zip(test.unseen.ids, test.unseen.texts, strict=True)))
    return fitted
