"""The contract of VHE and the baselines; a new method joins by one line in METHODS."""

from zlib import crc32

import numpy as np
import pytest

from vhe.baselines.cane import CANE
from vhe.baselines.cene import CENE
from vhe.baselines.deepwalk import DeepWalk
from vhe.baselines.diffused_text import DiffusedText
from vhe.baselines.dmte import DMTE
from vhe.baselines.gnn import GraphNetworkLinks
from vhe.baselines.line import LINE
from vhe.baselines.matrices import lsa, normalised_adjacency
from vhe.baselines.mmb import MMB
from vhe.baselines.naive_vae import NaiveVAE
from vhe.baselines.node2vec import Node2Vec
from vhe.baselines.node2vec_text import Node2VecText
from vhe.baselines.pwa import PWA, ControlledPWA
from vhe.baselines.sentences import SentenceVectors
from vhe.baselines.tadw import TADW
from vhe.baselines.tfidf import TFIDF, tfidf_rows
from vhe.baselines.unseen import CANEMLP, CANEText
from vhe.baselines.vgae import VGAE
from vhe.baselines.wane import WANE
from vhe.data.network import TextNetwork
from vhe.data.splits import split_edges
from vhe.evaluation.link import evaluate
from vhe.predict.scoring import CosineMethod
from vhe.runtime.arrays import unit_rows

SMALL = {  # settings with which the neural text baselines learn in a moment
    "word_dim": 8,
    "structure_dim": 8,
    "kernels": 4,
    "kernel_width": 3,
    "learning_rate": 0.01,
    "steps": 10,
    "validate_every": 10,
    "patience": 10,
    "contexts": 2,
}

SMALL_GNN = {"width": 16, "learning_rate": 0.01, "max_steps": 40}


def encoder(texts: list[str]) -> np.ndarray:
    """Stands for a pretrained encoder: the counts of groups of words."""
    rows = np.zeros((len(texts), 257), dtype=np.float32)
    for row, text in zip(rows, texts, strict=True):
        for word in text.split():
            row[crc32(word.encode()) % 257] += 1
    return rows


SHORT_WALKS = {"dimensions": 8, "walks": 10, "length": 10, "window": 3}

METHODS = {  # each makes a fresh method with a fixed seed
    "tfidf": TFIDF,
    "diffused_text": DiffusedText,
    "diffused_text, few dimensions": lambda: DiffusedText(dimensions=3, random_state=5),
    "pwa": lambda: PWA(**SMALL),
    "pwa, controlled": lambda: ControlledPWA(**SMALL, batch_size=32, near_pairs=8),
    "cane": lambda: CANE(**SMALL),
    "wane": lambda: WANE(**SMALL),
    "cene": lambda: CENE(**SMALL),
    "dmte": lambda: DMTE(**SMALL),
    "cane, text half": lambda: CANEText(**SMALL),
    "cane, predicted structure": lambda: CANEMLP(**SMALL),
    "deepwalk": lambda: DeepWalk(**SHORT_WALKS),
    "node2vec": lambda: Node2Vec(**SHORT_WALKS, p=2, q=0.5),
    "line": lambda: LINE(dimensions=8, passes=100),
    "mmb": lambda: MMB(blocks=3, steps=40),
    "tadw": lambda: TADW(dimensions=8),
    "vgae": lambda: VGAE(epochs=30, learning_rate=0.05),
    "vgae, tfidf": lambda: VGAE(features="tfidf", epochs=30, learning_rate=0.05),
    "gcn": lambda: GraphNetworkLinks(layer="gcn", head="mlp", features="lsa", **SMALL_GNN),
    "sage, common neighbours": lambda: GraphNetworkLinks(
        layer="sage", head="ncn", features="sentences", encoder=encoder, **SMALL_GNN
    ),
    "sentences": lambda: SentenceVectors(encoder=encoder),
    "node2vec_text": lambda: Node2VecText(
        dimensions=8, structure=Node2Vec(**SHORT_WALKS, p=1, q=1)
    ),
    "naive_vae": lambda: NaiveVAE(
        dimensions=8, epochs=10, structure=Node2Vec(**SHORT_WALKS, p=1, q=1)
    ),
}
WITH_GENSIM = {"deepwalk", "node2vec", "naive_vae", "node2vec_text"}
TOPICS = ["cats purr and sleep all day", "graphs have vertices and edges", "rain falls on the sea"]


@pytest.fixture(scope="module")
def network() -> TextNetwork:
    """Three topics, links inside each; an empty text, one of unknown words, isolated vertices."""
    texts = [f"{TOPICS[k % 3]} number {k // 3} of {k % 7}" for k in range(36)]
    texts += ["", "zyzzyva", TOPICS[0], "  \n"]
    rng = np.random.default_rng(0)
    edges = [(i, j) for i in range(36) for j in range(i) if (i - j) % 3 == 0 and rng.random() < 0.4]
    edges += [(36, 0), (37, 1)]  # 38 and 39 have no link
    ids = [f"v{k}" for k in range(40)]
    return TextNetwork(ids, texts, np.array(edges, dtype=np.int64))


@pytest.fixture(scope="module", params=list(METHODS))
def make(request):
    if request.param in WITH_GENSIM:
        pytest.importorskip("gensim")
    return METHODS[request.param]


@pytest.fixture(scope="module")
def fitted(make, network):
    return make().fit(network)


def everything(network: TextNetwork) -> np.ndarray:
    return np.arange(len(network))


def test_fit_returns_self(make, network):
    method = make()
    assert method.fit(network) is method


def test_the_embedding_has_a_row_for_each_vertex(fitted, network):
    assert fitted.embedding_.ndim == 2
    assert fitted.embedding_.shape[0] == len(network)
    assert np.isfinite(fitted.embedding_.sum())


def test_scores_are_finite_for_every_vertex(fitted, network):
    scores = fitted.score_matrix(everything(network), everything(network))
    assert isinstance(scores, np.ndarray)
    assert scores.shape == (40, 40)
    assert np.isfinite(scores).all()


def test_scores_are_symmetric(fitted, network):
    scores = fitted.score_matrix(everything(network), everything(network))
    np.testing.assert_allclose(scores, scores.T, atol=1e-6)


def test_a_matrix_has_the_scores_of_its_pairs(fitted):
    sources, targets = np.array([5, 0, 36, 5]), np.array([38, 2, 1, 39, 5])
    matrix = fitted.score_matrix(sources, targets)
    assert matrix.shape == (4, 5)
    pairs = fitted.score_indices(np.repeat(sources, 5), np.tile(targets, 4))
    assert pairs.shape == (20,)
    np.testing.assert_allclose(matrix.ravel(), pairs, atol=1e-6)


def test_no_pairs_have_no_scores(fitted):
    nobody = np.empty(0, dtype=np.int64)
    assert fitted.score_indices(nobody, nobody).shape == (0,)
    assert fitted.score_matrix(nobody, np.array([1, 2])).shape == (0, 2)


def test_the_same_seed_gives_the_same_scores(make, fitted, network):
    again = make().fit(network)
    rows = everything(network)
    assert np.array_equal(again.score_matrix(rows, rows), fitted.score_matrix(rows, rows))


def test_ids_may_be_anything(make, fitted, network):
    ids = [("vertex", k) for k in range(40)]
    named = make().fit(TextNetwork(ids, network.texts, network.edges))
    rows = everything(network)
    assert np.array_equal(named.score_matrix(rows, rows), fitted.score_matrix(rows, rows))


@pytest.mark.parametrize("protocol", ["clean", "lines"])
def test_held_out_links_score_above_chance(make, topical, protocol):
    """Knowing the topics would give .85 to .9: a fifth of the negatives are of the same topic."""
    train, test = split_edges(topical, 0.7, protocol=protocol)
    assert evaluate(make().fit(train), test).auc > 0.7


@pytest.mark.parametrize(
    "texts",
    [
        ["", "", ""],
        ["one", "two", "three"],
        ["the same words", "the same words", "the same words"],
        ["a single word", "", "another thing altogether"],
    ],
)
def test_tiny_networks_work(make, texts):
    tiny = TextNetwork(range(3), texts, np.array([[0, 1]]))
    scores = make().fit(tiny).score_matrix(np.arange(3), np.arange(3))
    assert np.isfinite(scores).all()


def test_a_network_without_links_works(make, network):
    bare = network.with_edges(np.empty((0, 2), dtype=np.int64))
    scores = make().fit(bare).score_indices(np.array([0, 36]), np.array([3, 39]))
    assert np.isfinite(scores).all()


# What each method does


def test_cosines_are_those_of_the_rows_and_zero_for_a_row_of_zeros():
    method = CosineMethod()
    method.embedding_ = np.array([[3.0, 4.0], [0.0, 0.0], [0.0, 2.0], [-3.0, -4.0]])
    sources, targets = np.array([0, 0, 0, 0, 1]), np.array([0, 1, 2, 3, 1])
    assert method.score_indices(sources, targets) == pytest.approx([1, 0, 0.8, -1, 0])
    assert np.array_equal(unit_rows(method.embedding_)[1], [0, 0])


def test_tfidf_rows_have_unit_length_and_stay_sparse():
    rows = tfidf_rows(["red apple", "red pear", "", "green pear pear"])
    assert rows.shape == (4, 2)  # red and pear are in two texts
    assert rows.nnz == 4
    assert np.sqrt((rows.toarray() ** 2).sum(axis=1)) == pytest.approx([1, 1, 0, 1])


def test_lsa_keeps_the_inner_products_of_what_it_need_not_reduce():
    rows = tfidf_rows(["red apple pie", "red pear pie", "pear or apple"])
    reduced = lsa(rows, 300, seed=0)
    assert reduced.shape == (3, 3)
    np.testing.assert_allclose(reduced @ reduced.T, (rows @ rows.T).toarray(), atol=1e-12)


def test_diffusion_against_dense_matrices(network):
    links = network.links
    adjacency = np.eye(40)
    adjacency[links[:, 0], links[:, 1]] = adjacency[links[:, 1], links[:, 0]] = 1
    scale = np.diag(adjacency.sum(axis=1) ** -0.5)
    spread = scale @ adjacency @ scale
    np.testing.assert_allclose(normalised_adjacency(links, 40).toarray(), spread, atol=1e-12)
    text = lsa(tfidf_rows(network.texts), 300, seed=0)
    z = text
    for _ in range(8):
        z = 0.3 * text + 0.7 * spread @ z
    expected = z - 0.5 * z.mean(axis=0)
    np.testing.assert_allclose(DiffusedText().fit(network).embedding_, expected, atol=1e-6)
