"""The graph neural networks against dense matrices, and what they may read."""

import numpy as np
import pytest
import torch

from vhe.baselines.gnn import GraphNetworkLinks
from vhe.baselines.graph_networks import PairHead, TwoLayers, common_neighbours
from vhe.baselines.validation import Validation

LINKS = np.array([[0, 1], [1, 2], [0, 3], [2, 3], [3, 4]])


def dense() -> np.ndarray:
    adjacency = np.zeros((6, 6))
    adjacency[LINKS[:, 0], LINKS[:, 1]] = adjacency[LINKS[:, 1], LINKS[:, 0]] = 1
    return adjacency


def test_layers_against_dense_matrices() -> None:
    torch.manual_seed(0)
    x = torch.randn(6, 5)
    own = dense() + np.eye(6)
    scale = np.diag(own.sum(axis=1) ** -0.5)
    spread = torch.from_numpy(scale @ own @ scale).float()
    gcn = TwoLayers("gcn", 5, 4, dropout=0.5).eval()
    expected = spread @ gcn.second(torch.relu(spread @ gcn.first(x)))
    torch.testing.assert_close(gcn(x, gcn.matrix(LINKS, 6)), expected)
    mean = torch.from_numpy(dense() / np.maximum(dense().sum(axis=1, keepdims=True), 1)).float()
    sage = TwoLayers("sage", 5, 4, dropout=0.5).eval()
    hidden = torch.relu(sage.first(x)[:, :4] + mean @ sage.first(x)[:, 4:])
    expected = sage.second(hidden)[:, :4] + mean @ sage.second(hidden)[:, 4:]
    torch.testing.assert_close(sage(x, sage.matrix(LINKS, 6)), expected)


def test_common_neighbours_are_summed_and_change_the_score() -> None:
    z = torch.randn(6, 4)
    i, j = torch.tensor([0, 0, 5]), torch.tensor([2, 4, 1])
    found = common_neighbours(z, i, j, LINKS)
    torch.testing.assert_close(found, torch.stack([z[1] + z[3], z[3], torch.zeros(4)]))
    head = PairHead("ncn", 4, dropout=0.0).eval()
    none = np.empty((0, 2), dtype=np.int64)
    with_links, without = head(z, i, j, LINKS), head(z, i, j, none)
    assert (with_links != without).tolist() == [True, True, False]


@pytest.mark.parametrize("head", ["mlp", "ncn"])
def test_scores_of_all_pairs_are_those_of_each_pair(head) -> None:
    z, pairs = torch.randn(6, 4), torch.cartesian_prod(torch.arange(6), torch.arange(6))
    model = PairHead(head, 4, dropout=0.5).eval()
    expected = model(z, *pairs.T, LINKS).reshape(6, 6)
    everything = torch.arange(6)
    torch.testing.assert_close(model.matrix(z, everything, everything, LINKS), expected)


@pytest.mark.parametrize("head", ["mlp", "ncn"])
def test_links_of_a_batch_are_masked_while_they_are_predicted(head, topical, monkeypatch) -> None:
    masked = []
    matrix = TwoLayers.matrix

    def watched(self, links, vertices):
        masked.append({tuple(link) for link in links.tolist()})
        return matrix(self, links, vertices)

    monkeypatch.setattr(TwoLayers, "matrix", watched)
    scored = []
    forward = PairHead.forward

    def watched_head(self, z, i, j, links):
        if self.training:
            half = [tuple(pair) for pair in torch.stack([i, j], dim=1).tolist()]
            scored.append(({tuple(link) for link in links.tolist()}, half))
        return forward(self, z, i, j, links)

    monkeypatch.setattr(PairHead, "forward", watched_head)
    model = GraphNetworkLinks(layer="gcn", head=head, features="lsa", width=8, max_steps=10)
    model.fit(topical)
    training = {tuple(link) for link in Validation(topical, 0).training.tolist()}
    whole = {tuple(link) for link in topical.links.tolist()}
    for visible, pairs in scored:
        assert visible < training
        assert not visible & set(pairs)
    assert masked[-1] == whole  # the final embedding reads all links
    assert 0 < model.validation_auc_ <= 1
    assert model.step_ == 10


def test_training_stops_when_validation_no_longer_improves(topical) -> None:
    settings = {"layer": "gcn", "head": "mlp", "features": "lsa", "width": 8}
    model = GraphNetworkLinks(
        **settings, learning_rate=0.03, max_steps=1000, validate_every=2, patience=2
    ).fit(topical)
    assert model.step_ < 200
