"""New vertices: h* from the neighbours or from the ELBO, and embeddings in the fitted contexts."""

from typing import get_args

import numpy as np
import pytest
import torch

from vhe.config import PairVHEConfig
from vhe.data.network import TextNetwork
from vhe.data.sampling import LinkSet, Pairs, random_stream
from vhe.data.text import Corpus
from vhe.pair import inductive
from vhe.pair.embedding import local_embedding
from vhe.pair.inductive import (
    Bound,
    InductiveMethod,
    InductivePairs,
    embed_new,
    neighbours_structure,
    pooled,
    with_structure,
)
from vhe.pair.model import PairVAE, TextPairs
from vhe.pair.training import PairTrainer, train

CPU = torch.device("cpu")
NO_LINKS = np.zeros((0, 2), dtype=np.int64)
TEXTS = ["t0w1 t0w2 t0w3 common1", "t3w1 t3w4", "", "unknown words only", "t1w1 " * 30]
PAPER = {
    "residual": False,
    "shared_posterior": False,
    "link_posterior": "mlp",
    "target": "max",
    "fixed_target": False,
    "near_pairs": 0,
}
N, D = 60, 16


class Fitted:
    """A trained model with its network."""

    def __init__(self, network: TextNetwork, config: PairVHEConfig) -> None:
        self.network = network
        self.corpus = Corpus.build(network.texts, min_count=1, max_words=config.max_words)
        self.model = PairVAE(config, len(self.corpus.vocabulary), N, pi0=0.05)
        self.model.initialise(self.corpus, 0)
        trainer = PairTrainer(self.model, self.corpus, network.links, NO_LINKS, seed=0)
        train(trainer, validate_every=100)
        self.model.eval()

    def encode(self, texts: list[str]) -> Corpus:
        return Corpus.encode(texts, self.corpus.vocabulary, max_words=16)

    def embed(
        self,
        texts: list[str],
        links: np.ndarray = NO_LINKS,
        method: InductiveMethod = "fast",
        contexts: int = 6,
        **more: object,
    ) -> InductivePairs:
        return embed_new(
            self.model,
            self.corpus,
            self.network.links,
            self.encode(texts),
            links,
            method=method,
            contexts=contexts,
            seed=0,
            **more,
        )


@pytest.fixture(scope="module")
def fitted(network: TextNetwork, pair_config: PairVHEConfig) -> Fitted:
    """With the default form of the model; must not be changed."""
    return Fitted(network, pair_config.replace(steps=60, structure_rate=0.1))


@pytest.fixture(scope="module")
def paper(network: TextNetwork, pair_config: PairVHEConfig) -> Fitted:
    """With the form of the model that the paper has; must not be changed."""
    return Fitted(network, pair_config.replace(**PAPER, learning_rate=1e-2, structure_rate=1e-2))


# --- h* from the neighbours


def cosines_by_hand(fitted: Fitted, new: Corpus) -> np.ndarray:
    texts, new_texts = pooled(fitted.model, fitted.corpus), pooled(fitted.model, new)
    centre = texts.mean(axis=0)
    found = np.zeros((len(new), N))
    for k in range(len(new)):
        for j in range(N):
            a, b = new_texts[k] - centre, texts[j] - centre
            if new_texts[k].any() and texts[j].any():
                found[k, j] = a @ b / np.linalg.norm(a) / np.linalg.norm(b)
    return found


def system_by_hand(fitted: Fitted, new: Corpus, links: np.ndarray) -> np.ndarray:
    """The formula of the module, with dense matrices."""
    config, k = fitted.model.config, len(new)
    weight = np.zeros((k, N + k))
    for row, cosine in enumerate(cosines_by_hand(fitted, new)):
        for j in np.argsort(-cosine, kind="stable")[:10]:
            weight[row, j] += max(cosine[j], 0) / 10
    for i, j in links:
        weight[i - N, j] += 1
        if j >= N:
            weight[j - N, i] += 1
    total = weight.sum(axis=1)
    share = weight / np.maximum(total, 1e-12)[:, None]
    table = fitted.model.structure.weight.detach().numpy()
    if not config.residual:
        right = share[:, :N] @ table
        return np.linalg.solve(np.eye(k) - share[:, N:], right)
    with torch.no_grad():
        texts = [torch.from_numpy(pooled(fitted.model, c)) for c in (fitted.corpus, new)]
        h = [torch.from_numpy(table), torch.zeros(k, D)]
        codes, own = (
            fitted.model.integrator(x, x, s, s).linked.mean_i.numpy()
            for x, s in zip(texts, h, strict=True)
        )
    text = 2 * config.precision * (1 + config.negatives)
    link = config.homophily / (1 - config.homophily**2) * np.minimum(total, 1)
    matrix = np.diag(text + link + 1) - link[:, None] * share[:, N:]
    right = text * own + link[:, None] * (share[:, :N] @ codes)
    return np.linalg.solve(matrix, right) - own


@pytest.mark.parametrize("form", ["fitted", "paper"])
def test_structure_from_neighbours_against_a_dense_system(
    form: str, request: pytest.FixtureRequest
) -> None:
    fitted: Fitted = request.getfixturevalue(form)
    new = fitted.encode(["t0w1 t0w2", "t0w3 common1 common2", "t2w2", "common3"])
    links = np.array([[N, 0], [N, N + 1], [N + 1, N + 2], [N + 1, 7]])
    found = neighbours_structure(fitted.model, fitted.corpus, new, links)
    assert found.dtype == np.float32
    expected = system_by_hand(fitted, new, links)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)
    reversed_ends = neighbours_structure(fitted.model, fitted.corpus, new, links[:, ::-1])
    np.testing.assert_allclose(found, reversed_ends, rtol=1e-5, atol=1e-6)


def test_a_text_without_neighbours_has_no_structure(fitted: Fitted) -> None:
    found = neighbours_structure(fitted.model, fitted.corpus, fitted.encode(["", "xyz"]), NO_LINKS)
    assert np.abs(found).max() < 0.2 * np.abs(fitted.model.structure.weight.detach().numpy()).max()


# --- embeddings


@pytest.mark.parametrize("method", get_args(InductiveMethod))
def test_a_text_is_near_its_topic(fitted: Fitted, method: InductiveMethod) -> None:
    found = fitted.embed(TEXTS, method=method)
    assert found.mean.shape == found.variance.shape == found.structure.shape == (5, D)
    for array in (found.mean, found.variance, found.structure):
        assert array.dtype == np.float32
        assert np.isfinite(array).all()
    assert found.variance.min() > 0
    known = inductive.embed_new(
        fitted.model,
        fitted.corpus,
        fitted.network.links,
        fitted.corpus,
        NO_LINKS,
        method="fast",
        contexts=6,
        seed=0,
    ).mean
    unit = known / np.linalg.norm(known, axis=1, keepdims=True)
    for row, topic in ((0, 0), (1, 3), (4, 1)):
        near = np.argsort(-(unit @ found.mean[row]))[:5]
        assert [fitted.network.labels[j] for j in near].count(f"topic {topic}") >= 4


def test_the_embedding_is_that_of_the_contexts(fitted: Fitted) -> None:
    """Against pairs with each context, in turn as first and second, one at a time."""
    links = np.array([[N, 3], [N + 1, 8]])
    found = fitted.embed(TEXTS[:2], links)
    table = fitted.model.structure.weight.detach().numpy()
    model = with_structure(fitted.model, np.concatenate([table, found.structure]))
    corpus = fitted.corpus.joined(fitted.encode(TEXTS[:2]))
    chosen = random_stream(0, 9).permutation(N)[:6]
    known = LinkSet(links, N + 2)
    for row in range(2):
        means, variances = [], []
        for number, context in enumerate(chosen):
            pair = [np.array([N + row]), np.array([context])]
            local = local_embedding(
                model, corpus, known, *(pair if number % 2 == 0 else pair[::-1])
            )
            end = "i" if number % 2 == 0 else "j"
            means.append(getattr(local, f"mean_{end}")[0].astype(np.float64))
            variances.append(getattr(local, f"variance_{end}")[0].astype(np.float64))
        np.testing.assert_allclose(found.mean[row], np.mean(means, axis=0), rtol=1e-3, atol=1e-4)
        total = np.mean(variances, axis=0) + np.var(means, axis=0)
        np.testing.assert_allclose(found.variance[row], total, rtol=1e-3, atol=1e-4)


def test_an_embedding_does_not_depend_on_other_new_vertices(fitted: Fitted) -> None:
    whole = fitted.embed(TEXTS)
    for k, text in enumerate(TEXTS):
        alone = fitted.embed([text])
        np.testing.assert_allclose(alone.mean[0], whole.mean[k], rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(alone.variance[0], whole.variance[k], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("method", get_args(InductiveMethod))
def test_links_pull_a_new_vertex(fitted: Fitted, method: InductiveMethod) -> None:
    text = ["t0w1 t0w2 common1"]
    links = np.array([[N, k] for k in (1, 6, 11, 16)])  # vertices of another topic than the text
    without, linked = (
        fitted.embed(text, known, method=method).mean[0] for known in (NO_LINKS, links)
    )
    partners = fitted.embed([fitted.network.texts[k] for k in links[:, 1]]).mean.mean(axis=0)

    def cosine(z: np.ndarray) -> float:
        return float(z @ partners / np.linalg.norm(z) / np.linalg.norm(partners))

    assert cosine(linked) > cosine(without) + 0.1


def test_many_new_vertices_are_embedded_in_parts(
    fitted: Fitted, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = list(fitted.network.texts)
    links = np.array([[N + k, (k + 5) % N] for k in range(0, N, 7)])
    whole = fitted.embed(texts, links)
    monkeypatch.setattr(inductive, "AT_ONCE", 7)
    done: list[int] = []
    parts = fitted.embed(texts, links, progress=done.append)
    np.testing.assert_allclose(parts.mean, whole.mean, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(parts.variance, whole.variance, rtol=1e-3, atol=1e-4)
    assert done == [7, 14, 21, 28, 35, 42, 49, 56, 60]


def test_the_bound_has_links_with_fitted_vertices_only(
    fitted: Fitted, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def optimise(model: PairVAE, texts: Corpus, pairs: Pairs, start: np.ndarray, seed: int):
        seen.append(pairs)
        return start

    monkeypatch.setattr(inductive, "_optimise", optimise)
    links = np.array([[N, N + 1], [3, N], [N + 2, N], [N + 1, 5]])
    fitted.embed(TEXTS[:3], links, method="paper", contexts=2)
    (pairs,) = seen
    known = zip(pairs.i[pairs.known], pairs.j[pairs.known], strict=True)
    assert sorted(known) == [(N, 3), (N + 1, 5)]
    assert pairs.j.max() < N


def test_no_new_vertices(fitted: Fitted) -> None:
    found = fitted.embed([])
    assert found.mean.shape == found.variance.shape == found.structure.shape == (0, D)


@pytest.mark.parametrize("method", get_args(InductiveMethod))
def test_a_model_without_structure(
    network: TextNetwork, pair_config: PairVHEConfig, method: InductiveMethod
) -> None:
    bare = Fitted(network, pair_config.replace(structure="none", steps=2))
    found = bare.embed(TEXTS, np.array([[N, 3]]), method=method)
    assert found.structure.shape == (5, 0)
    assert np.isfinite(found.mean).all()


# --- h* by the ELBO


@pytest.mark.parametrize("decoder", ["gaussian", "multinomial"])
@pytest.mark.parametrize("form", [{}, PAPER], ids=["default", "paper"])
def test_the_bound_is_that_of_training(
    form: dict, decoder: str, pair_config: PairVHEConfig, corpus: Corpus
) -> None:
    config = pair_config.replace(decoder=decoder, **form)
    model = PairVAE(config, len(corpus.vocabulary), N, 0.03)
    model.initialise(corpus, 0)
    model.structure.weight.data.normal_(generator=torch.Generator().manual_seed(1))
    i, j = np.random.default_rng(0).integers(N, size=(2, 12))
    linked = np.arange(12) % 3 == 0
    pairs = Pairs(i, j, linked.astype(np.float32), linked)
    batch = [TextPairs.of(pairs[rows], corpus, CPU) for rows in (np.arange(5), np.arange(5, 12))]
    expected = model.loss(batch, torch.Generator().manual_seed(2))["bound"]
    h_i, h_j = model.structure.weight[np.stack([i, j])]
    found = Bound(model, batch)(h_i, h_j, torch.Generator().manual_seed(2))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("form", ["fitted", "paper"])
def test_optimising_raises_the_bound_and_changes_nothing_else(
    form: str, request: pytest.FixtureRequest
) -> None:
    fitted: Fitted = request.getfixturevalue(form)
    model = fitted.model
    before = {name: value.clone() for name, value in model.state_dict().items()}
    found = [fitted.embed(TEXTS[:2], method=method) for method in get_args(InductiveMethod)]
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name])
    contexts = random_stream(0, 9).permutation(N)[:6]
    corpus = fitted.corpus.joined(fitted.encode(TEXTS[:2]))
    bounds = []
    for each in found:
        table = torch.from_numpy(
            np.concatenate([model.structure.weight.detach().numpy(), each.structure])
        )
        i, j = np.repeat([N, N + 1], 6), np.tile(contexts, 2)
        unknown = Pairs(i, j, np.zeros(12, np.float32), np.zeros(12, bool))
        bound = Bound(model, [TextPairs.of(unknown, corpus, CPU)])
        draws = [
            bound(table[i], table[j], torch.Generator().manual_seed(k)).detach().view(2, 6)
            for k in range(20)
        ]
        bounds.append(torch.stack(draws).mean(dim=(0, 2)))
    assert (bounds[1] > bounds[0]).all()


def test_a_known_link_changes_the_optimum(fitted: Fitted) -> None:
    links = np.array([[N, 1]])
    without, linked = (
        fitted.embed(TEXTS[:1], known, method="paper") for known in (NO_LINKS, links)
    )
    assert np.abs(without.structure - linked.structure).max() > 0.1


def test_selecting_and_joining_texts() -> None:
    corpus = Corpus.build(["a b c", "", "c d", "e"], min_count=1)
    some = corpus.select(np.array([2, 1, 0]))
    assert [some.padded(np.array([k]))[0].tolist() for k in range(3)] == [[3, 4], [0], [1, 2, 3]]
    both = some.joined(corpus.select(np.array([3])))
    assert both.lengths.tolist() == [2, 0, 3, 1]
    assert both.padded(np.array([3]))[0].tolist() == [5]


def test_another_structure_table_leaves_the_model_unchanged(fitted: Fitted) -> None:
    table = fitted.model.structure.weight
    other = with_structure(fitted.model, np.ones((N + 3, D), dtype=np.float32))
    assert other.structure.weight.shape == (N + 3, D)
    assert other.words is fitted.model.words
    assert fitted.model.structure.weight is table
