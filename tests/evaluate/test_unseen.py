"""Unseen vertices: what each kind of method is given, and that it is nothing more."""

from collections.abc import Sequence

import numpy as np
import pytest

from vhe.baselines.tfidf import TFIDF
from vhe.data.network import TextNetwork
from vhe.data.split import UnseenTest, split_vertices
from vhe.errors import VHEError
from vhe.evaluate.contract import CosineMethod
from vhe.evaluate.methods import make
from vhe.evaluate.unseen import check_unseen, evaluate_unseen, fit_unseen

TOPICS = 5


def topics(texts: Sequence[str]) -> np.ndarray:
    """How often each topic's words are in each text."""
    return np.array([[text.count(f"t{t}w") for t in range(TOPICS)] for text in texts], dtype=float)


class Counting(CosineMethod):
    """Embeds any text; remembers what it was fitted on."""

    def fit(self, network: TextNetwork) -> "Counting":
        self.network = network
        self.embedding_ = topics(network.texts)
        return self

    def embed_texts(self, texts: Sequence[str]) -> np.ndarray:
        return topics(texts)


class Growing(CosineMethod):
    """Takes vertices in."""

    def fit(self, network: TextNetwork) -> "Growing":
        self.network = network
        self.embedding_ = topics(network.texts)
        return self

    def add_vertices(self, texts: dict) -> "Growing":
        self.added = list(texts)
        self.embedding_ = np.concatenate([self.embedding_, topics(list(texts.values()))])
        return self


class Structure(CosineMethod):
    """Knows only what it was fitted on."""

    def fit(self, network: TextNetwork) -> "Structure":
        self.embedding_ = np.ones((len(network), 2))
        return self


@pytest.fixture(scope="module", params=["clean", "lines"])
def test_(request, network: TextNetwork) -> UnseenTest:
    return split_vertices(network, 0.6, seed=1, protocol=request.param)[1]


@pytest.mark.parametrize("kind", [Counting, Growing])
def test_methods_see_the_training_network_only_and_answer_for_all(kind, test_) -> None:
    method = kind()
    fitted = fit_unseen(method, test_)
    assert method.network is test_.train
    assert np.array_equal(fitted.embedding_, topics(test_.network.texts))
    scores = evaluate_unseen(kind(), test_)
    assert scores.auc > 0.8
    assert scores.edges == len(test_)
    assert scores.protocol == test_.protocol


def test_vertices_are_added_in_their_order(test_) -> None:
    method = Growing()
    fit_unseen(method, test_)
    assert tuple(method.added) == test_.unseen.ids


def test_diffused_text_sees_all_texts_but_only_edges_of_seen_vertices(test_, monkeypatch) -> None:
    from vhe.baselines.diffused_text import DiffusedText

    seen: list[TextNetwork] = []
    fit = DiffusedText.fit
    monkeypatch.setattr(DiffusedText, "fit", lambda self, net: seen.append(net) or fit(self, net))
    assert evaluate_unseen(make("diffused-text", 0), test_).auc > 0.7
    assert seen[0].texts == test_.network.texts
    assert seen[0].edges.max() < len(test_.train)
    assert np.array_equal(seen[0].edges, test_.train.edges)


def test_tfidf_scores_as_on_the_whole_network(test_) -> None:
    pairs = test_.pairs[:5]
    ours = fit_unseen(TFIDF(), test_).score_indices(pairs[:, 0], pairs[:, 1])
    whole = TFIDF().fit(test_.network).score_indices(pairs[:, 0], pairs[:, 1])
    assert np.array_equal(ours, whole)


def test_a_method_that_knows_only_its_vertices_is_refused_in_one_sentence(test_) -> None:
    with pytest.raises(VHEError, match="Structure cannot embed a vertex that was not there"):
        evaluate_unseen(Structure(), test_)
    with pytest.raises(VHEError, match="my-method cannot embed"):
        check_unseen("my-method", Structure())
