"""Link prediction for vertices that were not there at training, of which only the text is given."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

from vhe.errors import VHEError
from vhe.evaluation.link import LinkScores, evaluate
from vhe.predict.scoring import Method

if TYPE_CHECKING:
    from vhe.data.splits import UnseenTest


class GrowingMethod(Method, Protocol):
    """A method that takes in vertices after it was fitted; their numbers follow the known ones."""

    def add_vertices(self, texts: Mapping[Hashable, str]) -> Any:
        """Take in the vertices, and return itself."""


def check_unseen(name: str, method: Method) -> None:
    """Raise `VHEError` for a method that has nothing to say about a vertex it was not fitted on."""
    if not (_reads_all_texts(method) or _grows(method)):
        raise VHEError(
            f"{name} cannot embed a vertex that was not there at training: leave it out of unseen."
        )


def fit_unseen(method: Method, test: UnseenTest) -> Method:
    """Fit a method on the seen vertices and give it the texts of the unseen ones.

    The answer scores by the vertex numbers of ``test.network``. A method that ``reads_all_texts``,
    as TF-IDF does, is given them at once, with the edges among seen vertices.
    """
    check_unseen(type(method).__name__, method)
    if _reads_all_texts(method):
        return method.fit(test.network.with_edges(test.train.edges))
    assert _grows(method)
    unseen = test.unseen
    method.fit(test.train).add_vertices(dict(zip(unseen.ids, unseen.texts, strict=True)))
    return method


def evaluate_unseen(method: Method, test: UnseenTest) -> LinkScores:
    """Fit a method as `fit_unseen` does, and score it on the edges of the unseen vertices.

    Parameters
    ----------
    method : not fitted yet.
    test : from ``network.split_vertices``.
    """
    return evaluate(fit_unseen(method, test), test)


# By name: a protocol could only be asked of a fitted method, as ``embedding_`` is a part of it.
def _grows(method: Method) -> TypeGuard[GrowingMethod]:
    return hasattr(method, "add_vertices")


def _reads_all_texts(method: Method) -> bool:
    return getattr(method, "reads_all_texts", False)
