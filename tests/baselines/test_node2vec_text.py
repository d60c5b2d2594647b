"""node2vec beside the texts: the weight follows what the links say."""

import numpy as np
import pytest

from vhe.baselines.node2vec import Node2Vec
from vhe.baselines.node2vec_text import Node2VecText

pytest.importorskip("gensim")


def test_random_texts_get_a_small_weight_and_rows_have_unit_length(planted) -> None:
    walks = Node2Vec(dimensions=8, walks=10, length=10, window=3, p=1, q=1)
    model = Node2VecText(dimensions=8, structure=walks).fit(planted)
    assert model.text_weight_ <= 0.5
    linked = planted.degrees > 0
    lengths = (model.embedding_**2).sum(axis=1)
    assert lengths[linked] == pytest.approx(1, abs=1e-5)
    assert np.array_equal(model.embedding_[-1], np.zeros(16))  # neither text nor link
