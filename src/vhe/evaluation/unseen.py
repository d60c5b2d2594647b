"""Inductive link prediction: vertices that were not in the training network, given as texts."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

from vhe.errors import VHEError
from vhe.evaluation.link import LinkScores, evaluate
from vhe.predict.scoring import Method

if TYPE_CHECKING:
    from vhe.data.splits import UnseenTest


class InductiveMethod(Method, Protocol):
    """A method that embeds new vertices after fitting; their indices follow the known ones."""

    def add_vertices(self, texts: Mapping[Hashable, str]) -> Any:
        """Add vertices and return ``self``."""


def check_unseen(name: str, method: Method) -> None:
    """Raise `VHEError` for a method that cannot embed unseen vertices."""
    if not (_reads_all_texts(method) or _is_inductive(method)):
        raise VHEError(f"{name} cannot embed unseen vertices: remove it from --method")


def fit_unseen(method: Method, test: UnseenTest) -> Method:
    """Fit a method on the seen vertices and add the texts of the unseen ones.

    The fitted method scores vertex indices of ``test.network``. A transductive method with
    ``reads_all_texts``, such as TF-IDF, is fitted on all texts and the edges among seen vertices.
    """
    check_unseen(type(method).__name__, method)
    if _reads_all_texts(method):
        return method.fit(test.network.with_edges(test.train.edges))
    assert _is_inductive(method)
    unseen = test.unseen
    method.fit(test.train).add_vertices(dict(zip(unseen.ids, unseen.texts, strict=True)))
    return method


def evaluate_unseen(method: Method, test: UnseenTest) -> LinkScores:
    """Fit a method by `fit_unseen` and score it on the edges of the unseen vertices.

    Parameters
    ----------
    method : unfitted.
    test : from ``network.split_vertices``.
    """
    return evaluate(fit_unseen(method, test), test)


# Checked by name: ``embedding_``, a part of the protocol, exists only after fitting.
def _is_inductive(method: Method) -> TypeGuard[InductiveMethod]:
    return hasattr(method, "add_vertices")


def _reads_all_texts(method: Method) -> bool:
    return getattr(method, "reads_all_texts", False)
