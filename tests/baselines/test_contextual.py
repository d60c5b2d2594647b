"""The neural text baselines: objective, symmetry, training, unseen vertices."""

import copy
import signal
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from vhe.baselines import contextual
from vhe.baselines.cane import CANE
from vhe.baselines.cene import CENE, TEXT_WEIGHT
from vhe.baselines.contextual import CANEObjective, Contextual, ContextualPairs
from vhe.baselines.dmte import DMTE
from vhe.baselines.matrices import as_tensor, transition_matrix
from vhe.baselines.pwa import PWA, ControlledPWA
from vhe.baselines.unseen import CANEMLP, PWAMLP, WANEMLP, CANEText, PWAText, WANEText
from vhe.baselines.wane import WANE
from vhe.config import PairVHEConfig
from vhe.data.network import TextNetwork
from vhe.data.sampling import Pairs
from vhe.data.text import Corpus
from vhe.errors import VHEError
from vhe.pair.model import TextPairs
from vhe.runtime.arrays import unit_rows

SMALL = {
    "max_words": 16,
    "min_count": 1,
    "word_dim": 8,
    "structure_dim": 8,
    "kernels": 4,
    "kernel_width": 3,
    "steps": 10,
    "validate_every": 5,
    "contexts": 2,
}
BASELINES = [PWA, CANE, WANE, CENE, DMTE]
CPU = torch.device("cpu")


def initialised(kind: type[Contextual], corpus: Corpus, **settings) -> ContextualPairs:
    """A model with random weights, including the structure vectors."""
    method = kind(**{**SMALL, **settings})
    model = method.pairs(method.config, method.objective, corpus)
    model.initialise(corpus, 0)
    with torch.no_grad():
        model.structure.weight.normal_(0, 1, generator=torch.Generator().manual_seed(1))
    return model.eval()


def some_pairs(corpus: Corpus, linked: bool = True) -> TextPairs:
    rng = np.random.default_rng(2)
    i, j = rng.permutation(len(corpus))[:24].reshape(2, 12)
    w = (np.arange(12) % 2).astype(np.float32) if linked else np.zeros(12, dtype=np.float32)
    return TextPairs.of(Pairs(i, j, w, np.ones(12, dtype=bool)), corpus, CPU)


def swapped(pairs: TextPairs) -> TextPairs:
    return replace(pairs, i=pairs.j, j=pairs.i, tokens_i=pairs.tokens_j, tokens_j=pairs.tokens_i)


def vectors(model: ContextualPairs, pairs: TextPairs) -> tuple[torch.Tensor, torch.Tensor]:
    with torch.no_grad():
        points = model.infer([pairs]).linked
    return points.mean_i, points.mean_j


@pytest.mark.parametrize("kind", BASELINES)
def test_swapping_a_pair_swaps_its_vectors(kind, corpus):
    model, pairs = initialised(kind, corpus), some_pairs(corpus)
    first, second = vectors(model, pairs)
    other, one = vectors(model, swapped(pairs))
    torch.testing.assert_close(first, one)
    torch.testing.assert_close(second, other)
    assert not torch.allclose(first, second)


@pytest.mark.parametrize("kind", BASELINES)
def test_padding_does_not_matter(kind, corpus):
    model, pairs = initialised(kind, corpus), some_pairs(corpus)
    wider = replace(
        pairs,
        tokens_i=torch.nn.functional.pad(pairs.tokens_i, (0, 3)),
        tokens_j=torch.nn.functional.pad(pairs.tokens_j, (0, 2)),
    )
    for narrow, wide in zip(vectors(model, pairs), vectors(model, wider), strict=True):
        torch.testing.assert_close(narrow, wide)


@pytest.mark.parametrize("kind", [PWA, CANE, WANE])
def test_a_text_depends_on_its_context_and_is_zero_if_empty(kind, corpus):
    model, pairs = initialised(kind, corpus), some_pairs(corpus)
    others = replace(pairs, tokens_j=pairs.tokens_j.roll(1, dims=0))
    text = model.config.structure_dim
    assert not torch.allclose(
        vectors(model, pairs)[0][:, text:], vectors(model, others)[0][:, text:]
    )
    empty = replace(pairs, tokens_i=torch.zeros_like(pairs.tokens_i))
    first, second = vectors(model, empty)
    assert (first[:, text:] == 0).all()
    assert torch.isfinite(second).all()


@pytest.mark.parametrize("kind", [PWA, CANE, WANE, DMTE])
def test_the_objective_against_a_loop_over_pairs(kind, corpus):
    weights = CANEObjective(text=0.7, text_structure=0.5, structure_text=0.1)
    model, pairs = initialised(kind, corpus, weights=weights), some_pairs(corpus)
    z_i, z_j = (z.numpy().astype(np.float64) for z in vectors(model, pairs))
    expected = []
    for k, w in enumerate(pairs.links.numpy()):
        s_i, t_i, s_j, t_j = z_i[k, :8], z_i[k, 8:], z_j[k, :8], z_j[k, 8:]

        def term(u, v, w=w):
            return -np.log1p(np.exp(-(u @ v if w else -(u @ v))))

        both_directions = [(s_i, t_i, s_j, t_j), (s_j, t_j, s_i, t_i)]
        total = 0.0
        for s, t, other_s, other_t in both_directions:
            total += term(s, other_s) + 0.7 * term(t, other_t)
            total += 0.5 * term(t, other_s) + 0.1 * term(s, other_t)
        expected.append(-total / 2)
    terms = model.loss([pairs], torch.Generator().manual_seed(0))
    np.testing.assert_allclose(model.objective(terms).detach(), expected, rtol=1e-4)
    assert terms.means()["text"] == pytest.approx(float(terms["text"].detach().mean()))


def test_parts_of_a_batch_are_concatenated_in_order(corpus):
    model, pairs = initialised(CANE, corpus), some_pairs(corpus)
    halves = [
        TextPairs(**{name: value[rows] for name, value in vars(pairs).items()})
        for rows in (slice(0, 5), slice(5, 12))
    ]
    generator = torch.Generator()
    whole, parts = model.loss([pairs], generator), model.loss(halves, generator)
    torch.testing.assert_close(model.objective(whole), model.objective(parts))


def test_the_terms_of_cene_against_a_loop(corpus):
    model, pairs = initialised(CENE, corpus), some_pairs(corpus)
    # every vertex has the same text: all draws of negatives have the same sum
    tokens = pairs.tokens_i[:1]
    offsets = torch.arange(len(corpus)) * int((tokens > 0).sum())
    model.bags = tokens[tokens > 0].repeat(len(corpus)), offsets
    terms = model.loss([pairs], torch.Generator().manual_seed(0))
    u = model.structure.weight.detach().numpy().astype(np.float64)
    t = model.words.weight.detach()[tokens[0][tokens[0] > 0]].mean(dim=0).numpy()

    def log_sigmoid(x):
        return -np.log1p(np.exp(-x))

    for k, w in enumerate(pairs.links.numpy()):
        product = u[pairs.i[k]] @ u[pairs.j[k]]
        assert float(terms["link"][k].detach()) == pytest.approx(
            log_sigmoid(product if w else -product), rel=1e-4
        )
    vertices = np.unique(np.concatenate([pairs.i, pairs.j]))
    assert len(terms["text"]) == len(vertices) == 24
    negative_nodes = log_sigmoid(-(u[vertices] @ t))
    own = log_sigmoid(u[vertices] @ t) + 25 * negative_nodes
    drawn = terms["text"].detach().numpy() - own  # 25 other vertices for each text
    assert (drawn <= 25 * negative_nodes.max() + 1e-3).all()
    assert (drawn >= 25 * negative_nodes.min() - 1e-3).all()
    expected = -(16 * terms["link"].mean() + TEXT_WEIGHT * terms["text"].mean())
    torch.testing.assert_close(model.objective(terms), expected)


def test_transitions_to_all_neighbours_are_equally_likely():
    found = as_tensor(transition_matrix(np.array([[0, 1], [0, 2]]), 4)).to_dense()
    expected = [[0, 0.5, 0.5, 0], [1, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]]
    torch.testing.assert_close(found, torch.tensor(expected))


def test_dmte_diffuses_texts_over_the_links(corpus, network):
    model = initialised(DMTE, corpus)
    before = model.diffused().detach()
    model.use_links(network.links)
    words = model.words.weight.detach()
    x = torch.stack([words[corpus.padded(np.array([k]))[0]].mean(dim=0) for k in range(60)])
    p = as_tensor(transition_matrix(network.links, 60)).to_dense()
    w0, w1, w2 = (step.weight.detach().T for step in model.steps)
    torch.testing.assert_close(before, x @ w0)
    expected = x @ w0 + 0.3 * p @ x @ w1 + 0.1 * p @ p @ x @ w2
    torch.testing.assert_close(model.diffused().detach(), expected)


def test_word_dropout_masks_that_fraction_of_words(corpus):
    model = initialised(WANE, corpus, weights=CANEObjective(word_dropout=0.8))
    tokens = torch.ones(100, 100, dtype=torch.int64)
    pairs = replace(some_pairs(corpus), tokens_i=tokens, tokens_j=tokens)
    left = model.dropped(pairs, torch.Generator().manual_seed(0))
    first, second = left.tokens_i, left.tokens_j
    assert float((first == 0).float().mean()) == pytest.approx(0.8, abs=0.02)
    assert not torch.equal(first, second)
    with pytest.raises(VHEError, match="word_dropout is 1"):
        CANEObjective(word_dropout=1)


@pytest.mark.parametrize("kind", BASELINES)
def test_training_from_random_words_separates_topics(kind, network):
    settings = {**SMALL, "word_init": "random", "steps": 120, "patience": 9, "validation": 0.2}
    settings["validate_every"] = 40
    method = kind(**settings).fit(network)
    unit = unit_rows(method.embedding_)
    pairs = np.triu_indices(len(network), 1)
    topic = np.array(network.labels)
    same = topic[pairs[0]] == topic[pairs[1]]
    assert roc_auc_score(same, (unit @ unit.T)[pairs]) > 0.8
    start, *scores = (record["validation_auc"] for record in method.history_)
    assert max(scores) > start


@pytest.mark.parametrize("kind", BASELINES)
def test_sizes_are_those_of_the_papers(kind):
    assert kind().config.latent_dim == 200


def test_an_unknown_setting_is_refused():
    with pytest.raises(VHEError, match=r"PWA: .*nonsense"):
        PWA(nonsense=3)


@pytest.mark.parametrize("kind", [PWA, ControlledPWA])
def test_ctrl_c_interrupts_a_fit(kind, network, monkeypatch):
    step = contextual.PairTrainer.step

    def interrupted(self, number):
        if number == 2:
            signal.raise_signal(signal.SIGINT)
        return step(self, number)

    monkeypatch.setattr(contextual.PairTrainer, "step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        kind(**SMALL).fit(network)


def test_controlled_pwa_has_the_training_of_the_pair_model(network):
    config, recipe = ControlledPWA().config, PairVHEConfig()
    for name in (
        *("word_dim", "structure_dim", "word_init", "negatives"),
        *("warmup", "decay", "steps", "contexts"),
    ):
        assert getattr(config, name) == getattr(recipe, name), name
    assert config.batch_size == recipe.batch_size + recipe.near_pairs
    assert config.patience is None
    method = ControlledPWA(**SMALL).fit(network)
    assert not method.model_.structure.sparse
    assert method.history_[-1]["step"] == SMALL["steps"]


def test_pwa_labels_unknown_edges_by_their_texts(corpus):
    model, pairs = initialised(PWA, corpus), some_pairs(corpus)
    pairs = replace(pairs, known=torch.arange(12) % 3 != 0)
    t_i, t_j = model.texts([pairs])
    found = model.labels([pairs], t_i, t_j)
    assert not found.requires_grad
    cosine = (unit_rows(t_i.detach().numpy()) * unit_rows(t_j.detach().numpy())).sum(axis=1)
    expected = np.where(pairs.known, pairs.links, 1 / (1 + np.exp(5 - 10 * cosine)))
    np.testing.assert_allclose(found, expected, rtol=1e-4)


# Unseen vertices


@pytest.fixture(scope="module", params=[CANEText, CANEMLP, WANEText, WANEMLP, PWAText, PWAMLP])
def unseen(request, network):
    settings = {**SMALL, "steps": 40, "learning_rate": 0.01, "batch_size": 64, "contexts": 4}
    return request.param(**settings).fit(network)


def rows_of(method, texts):
    """Rows of texts that are added; the method itself does not change."""
    extended = copy.copy(method).add_vertices(dict(enumerate(texts)))
    before = len(method.embedding_)
    assert np.array_equal(extended.embedding_[:before], method.embedding_)
    return extended.embedding_[before:]


def test_new_texts_have_rows_near_their_topic(unseen, network):
    texts = ["t0w1 t0w2 t0w5 common1", "t3w1 t3w4 t3w7 t3w2 nobodyknows", ""]
    rows = rows_of(unseen, texts)
    assert rows.shape == (3, unseen.embedding_.shape[1])
    assert np.isfinite(rows).all()
    cosine = unit_rows(rows) @ unit_rows(unseen.embedding_).T
    topic = np.array(network.labels)
    for row, own in ((0, "topic 0"), (1, "topic 3")):
        assert cosine[row, topic == own].mean() > cosine[row, topic != own].mean() + 0.1
    assert np.array_equal(rows, rows_of(unseen, texts))
    assert rows_of(unseen, []).shape == (0, unseen.embedding_.shape[1])


def test_a_seen_text_added_again_has_about_its_old_row(unseen, network):
    texts = list(network.texts)
    rows, seen = rows_of(unseen, texts), unseen.embedding_
    half = unseen.contextual.config.word_dim
    cosine = (unit_rows(rows[:, -half:]) * unit_rows(seen[:, -half:])).sum(axis=1)
    assert np.median(cosine) > 0.9


def test_new_texts_have_rows_without_links(network):
    bare = TextNetwork(network.ids, network.texts, np.empty((0, 2), dtype=np.int64))
    assert np.isfinite(rows_of(CANEMLP(**SMALL).fit(bare), ["t0w1"])).all()
