"""The choice of p and q in node2vec, and the message without gensim."""

import sys

import numpy as np
import pytest

from vhe.baselines.deepwalk import DeepWalk
from vhe.baselines.node2vec import GRID, Node2Vec
from vhe.errors import VHEError


def test_p_and_q_are_chosen_unless_given(planted):
    pytest.importorskip("gensim")
    small = {"dimensions": 8, "walks": 2, "length": 10}
    chosen = Node2Vec(**small).fit(planted)
    assert chosen.p_ in GRID
    assert chosen.q_ in GRID
    given = Node2Vec(**small, p=3.0, q=0.7).fit(planted)
    assert (given.p_, given.q_) == (3.0, 0.7)


def test_the_choice_has_the_best_validation_auc(planted, monkeypatch):
    """With p = 2 and q = 0.5 the rows are exact; with others they have noise."""
    label = np.array([*planted.labels[:-1], 0])

    def embed(self, walker, walks, length, p, q):
        distance = abs(np.log2(p / 2)) + abs(np.log2(q / 0.5))
        noise = np.random.default_rng(0).standard_normal((len(planted), 3))
        return np.eye(3)[label] + distance * noise

    monkeypatch.setattr(Node2Vec, "_embed", embed)
    model = Node2Vec().fit(planted)
    assert (model.p_, model.q_) == (2.0, 0.5)


def test_the_message_without_gensim_names_the_extra(planted, monkeypatch):
    monkeypatch.setitem(sys.modules, "gensim.models", None)
    with pytest.raises(VHEError, match=r"vhe\[baselines\]"):
        DeepWalk().fit(planted)
