"""Each method that is trained on links separates planted communities."""

import numpy as np
import pytest

from vhe.baselines.deepwalk import DeepWalk
from vhe.baselines.line import LINE
from vhe.baselines.mmb import MMB
from vhe.baselines.node2vec import Node2Vec
from vhe.baselines.tadw import TADW
from vhe.baselines.vgae import VGAE

WALK_METHODS = {
    "deepwalk": lambda: DeepWalk(dimensions=16),
    "node2vec": lambda: Node2Vec(dimensions=16, length=40, p=1, q=0.5),
}
METHODS = WALK_METHODS | {
    "line": lambda: LINE(dimensions=16),
    "mmb": lambda: MMB(blocks=3),
    "tadw": lambda: TADW(dimensions=16),
    "vgae": VGAE,
}


@pytest.mark.parametrize("name", METHODS)
def test_scores_are_higher_inside_a_community(planted, name):
    if name in WALK_METHODS:
        pytest.importorskip("gensim")
    label = np.array(planted.labels[:-1])
    vertices = np.arange(len(label))
    scores = METHODS[name]().fit(planted).score_matrix(vertices, vertices)
    i, j = np.triu_indices(len(label), 1)
    same, other = scores[i, j][label[i] == label[j]], scores[i, j][label[i] != label[j]]
    assert (same[:, None] > other).mean() > 0.9
