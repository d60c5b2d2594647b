"""NewVertices stand where the joint posterior, or the bound, puts them; residents do not move."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from vhe.config import VHEConfig
from vhe.data.network import TextNetwork
from vhe.data.sampling import Pairs
from vhe.data.text import Corpus
from vhe.errors import VHEError
from vhe.estimators import VHE
from vhe.graph.prior import NEIGHBOURS, STRENGTH, GraphPrior, TextCodes
from vhe.pair import inductive as unseen
from vhe.pair.inductive import Bound, TrainingGraph, joined, place, taken, text_codes
from vhe.pair.model import PairVAE, TextPairs

New = Callable[..., VHE]

PAPER = {
    "structure": "learned",
    "residual": False,
    "shared_posterior": False,
    "link_posterior": "mlp",
    "target": "max",
    "fixed_target": False,
}
NO_LINKS = np.zeros((0, 2), dtype=np.int64)
TEXTS = ["t0w1 t0w2 t0w3 common1", "t3w1 t3w4", "", "nobody knows these", "t1w1 " * 30]


@pytest.fixture(scope="module")
def papers(network: TextNetwork, new: New) -> VHE:
    """A model with the paper's parts; nobody may change it."""
    return new(**PAPER).fit(network)


def residents_of(model: VHE) -> TrainingGraph:
    return TrainingGraph(model._model, model._corpus, model.network_.links)


# --- the fast way


def test_the_codes_of_texts_are_those_of_the_graph_prior(fitted: VHE) -> None:
    words = fitted._model.words.weight.detach()
    theirs = TextCodes(fitted._corpus, torch.device("cpu"))(words).numpy()
    ours = text_codes(fitted._corpus, words[1:].numpy())
    np.testing.assert_allclose(ours - ours.mean(axis=0) / 2, theirs, rtol=1e-4, atol=1e-5)


def test_a_vertex_that_comes_back_is_where_the_joint_posterior_has_it(
    fitted: VHE, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The posterior mean of one vertex given all others is its row of the solved system."""
    monkeypatch.setattr(unseen, "SOFTNESS", 0.0)
    links, corpus, model = fitted.network_.links, fitted._corpus, fitted._model
    codes = TextCodes(corpus, torch.device("cpu"))(model.words.weight.detach())
    coupling = GraphPrior(links, corpus.lengths).coupling()
    whole = coupling.posterior_mean(codes, rounds=200).numpy()
    residents = TrainingGraph(unseen.with_structure(model, whole), corpus, links)
    vertex = int(fitted.network_.degrees.argmax())
    partners = links[(links == vertex).any(axis=1)].sum(axis=1) - vertex
    residents.degrees[partners] -= 1  # the vertex is not there yet
    known = np.column_stack([np.full(len(partners), len(residents)), partners])
    found, variance, own = residents.structure_of(taken(corpus, np.array([vertex])), known)
    np.testing.assert_allclose(found[0], whole[vertex], rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(1 / variance, coupling.diagonal[vertex], rtol=1e-5)
    assert own[0] == pytest.approx(float(coupling.precision[vertex] * variance[0]), rel=1e-5)


def test_newcomers_with_links_among_them_against_a_dense_system(fitted: VHE) -> None:
    residents, n = residents_of(fitted), len(fitted.network_)
    texts = residents.encode(["t0w1 t0w2", "t0w3 common1 common2", "t2w2", "common3"])
    known = np.array([[n, 0], [n, n + 1], [n + 1, n + 2], [n + 1, 7]])
    found, variance, _ = residents.structure_of(texts, known)

    words = fitted._model.words.weight[1:].detach().numpy()
    raw, new = text_codes(fitted._corpus, words), text_codes(texts, words)
    center, h = raw.mean(axis=0), fitted._model.structure.weight.detach().numpy()
    log_length = np.log1p(fitted._corpus.lengths).mean()
    degree = np.concatenate([fitted.network_.degrees, np.zeros(4)])
    np.add.at(degree, known.ravel(), 1)
    matrix, right = np.zeros((4, 4)), np.zeros((4, h.shape[1]))
    for k in range(4):
        precision = np.exp((np.log1p(texts.lengths[k]) - log_length) / 2)
        matrix[k, k] += precision
        right[k] += precision * (new[k] - center / 2)
        a, b = new[k] - center, raw - center
        cosine = b @ a / np.linalg.norm(b, axis=1) / np.linalg.norm(a)
        for j in np.argsort(-cosine)[:NEIGHBOURS]:
            soft = unseen.SOFTNESS * max(cosine[j], 0) / (NEIGHBOURS + 1)
            matrix[k, k] += soft
            right[k] += soft * h[j]
    for i, j in known:
        link_strength = STRENGTH * ((degree[i] + 1) * (degree[j] + 1)) ** -0.25
        matrix[i - n, i - n] += link_strength
        if j >= n:
            matrix[j - n, j - n] += link_strength
            matrix[i - n, j - n] -= link_strength
            matrix[j - n, i - n] -= link_strength
        else:
            right[i - n] += link_strength * h[j]
    np.testing.assert_allclose(found, np.linalg.solve(matrix, right), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(1 / variance, np.diag(matrix), rtol=1e-4)


def test_the_own_share_of_a_resident_is_that_of_the_graph_prior(fitted: VHE) -> None:
    residents, links = residents_of(fitted), fitted.network_.links
    coupling = GraphPrior(links, fitted._corpus.lengths).coupling()
    wanted = (coupling.precision / coupling.diagonal).squeeze(1)
    for vertex in (0, 9, 33):
        assert residents.own_share(vertex) == pytest.approx(float(wanted[vertex]), rel=1e-4)
    soft = TrainingGraph(fitted._model, fitted._corpus, links, text_knn_weight=2.0)
    assert soft.own_share(9) < residents.own_share(9)


@pytest.mark.parametrize("way", ["fast", "paper"])
def test_a_text_is_placed_by_its_topic(fitted: VHE, way: unseen.InductiveMethod) -> None:
    mean, std = fitted.embed_texts(TEXTS, method=way)
    assert mean.shape == std.shape == (5, 16)
    assert mean.dtype == std.dtype == np.float32
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()
    assert std.min() > 0
    for row, topic in ((0, 0), (1, 3), (4, 1)):
        near = [vertex for vertex, _ in fitted.nearest(mean[row], 5)]
        labels = [fitted.network_.labels[fitted.network_.index(v)] for v in near]
        assert labels.count(f"topic {topic}") >= 4


def test_a_text_stands_where_it_does_whoever_comes_with_it(fitted: VHE) -> None:
    together = fitted.embed_texts(TEXTS)
    for k, text in enumerate(TEXTS):
        for alone, among in zip(fitted.embed_texts([text]), together, strict=True):
            np.testing.assert_allclose(alone[0], among[k], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("way", ["fast", "paper"])
def test_links_pull_and_make_surer(fitted: VHE, way: unseen.InductiveMethod) -> None:
    links = [(0, f"v{k}") for k in (1, 6, 11, 16)]  # of another topic than the text
    (far,), (unsure,) = fitted.embed_texts(["t0w1 t0w2 common1"], method=way)
    (near,), (sure,) = fitted.embed_texts(["t0w1 t0w2 common1"], links, method=way)
    partners = fitted.embed([vertex for _, vertex in links]).mean(axis=0)

    def cosine(z: np.ndarray) -> float:
        return float(z @ partners / np.linalg.norm(z) / np.linalg.norm(partners))

    assert cosine(near) > cosine(far) + 0.1
    if way == "fast":
        assert sure.mean() < unsure.mean() - 0.01


def test_many_are_placed_in_parts(
    hasty: New, network: TextNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted = hasty(embedding="average").fit(network)
    texts = list(fitted.network_.texts)
    links = [(k, f"v{(k + 5) % 60}") for k in range(0, 60, 7)]
    whole = fitted.embed_texts(texts, links)
    monkeypatch.setattr(unseen, "AT_ONCE", 7)
    done: list[int] = []
    for part, all_ in zip(fitted.embed_texts(texts, links), whole, strict=True):
        np.testing.assert_allclose(part, all_, rtol=1e-3, atol=1e-4)
    residents = residents_of(fitted)
    place(residents, residents.encode(texts[:20]), NO_LINKS, way="fast", contexts=2, seed=0,
          progress=done.append)  # fmt: skip
    assert done == [7, 14, 20]


# --- the paper's way


@pytest.mark.parametrize("decoder", ["gaussian", "multinomial"])
@pytest.mark.parametrize("parts", ["ours", "paper's"])
def test_the_bound_is_that_of_training(
    parts: str, decoder: str, config: VHEConfig, corpus: Corpus
) -> None:
    changes = PAPER if parts == "paper's" else {}
    model = PairVAE(config.replace(decoder=decoder, **changes), len(corpus.vocabulary), 60, 0.03)
    model.start(corpus, 0)
    model.structure.weight.data.normal_(generator=torch.Generator().manual_seed(1))
    rng = np.random.default_rng(0)
    i, j = rng.integers(60, size=(2, 12))
    linked = np.arange(12) % 3 == 0
    pairs = Pairs(i, j, linked.astype(np.float32), linked)
    batch = [
        TextPairs.of(pairs[rows], corpus, torch.device("cpu"))
        for rows in (np.arange(5), np.arange(5, 12))
    ]
    noise = torch.Generator().manual_seed(2)
    wanted = model.loss(batch, noise).bound
    found = Bound(model, batch)(model.structure.weight, torch.Generator().manual_seed(2))
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-3)


def test_climbing_raises_the_bound_and_moves_nothing_else(papers: VHE) -> None:
    model, residents = papers._model, residents_of(papers)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    texts = residents.encode(TEXTS[:2])
    placed = [
        place(residents, texts, NO_LINKS, way=way, contexts=6, seed=0) for way in ("fast", "paper")
    ]
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name])
    contexts = unseen.random_stream(0, 9).permutation(60)[:6]
    corpus = joined(papers._corpus, texts)
    bounds = []
    for found in placed:
        table = torch.from_numpy(np.concatenate([residents.structure, found.structure]))
        i, j = np.repeat([60, 61], 6), np.tile(contexts, 2)
        unknown = Pairs(i, j, np.zeros(12, np.float32), np.zeros(12, bool))
        batch = [TextPairs.of(unknown, corpus, torch.device("cpu"))]
        draws = [
            Bound(model, batch)(table, torch.Generator().manual_seed(k)).detach().view(2, 6)
            for k in range(20)
        ]
        bounds.append(torch.stack(draws).mean(dim=(0, 2)))
    assert (bounds[1] > bounds[0]).all()


# --- adding


def test_vertices_are_added_and_saved(hasty: New, network: TextNetwork, tmp_path: Path) -> None:
    model = hasty().fit(network)
    seen, std = model.embedding_.copy(), model.embedding_std_.copy()
    new = {"x": "t0w1 t0w2", 7: "t3w1 t3w2", ("a", 1): ""}
    edges = [("x", "v0"), ("v3", 7), (7, "x"), ("x", "x")]
    wanted = model.embed_texts(list(new.values()), [(0, "v0"), (1, "v3")])
    assert model.add_vertices(new, edges, labels={"x": "topic 0"}) is model
    grown = model.network_
    assert grown.ids == (*network.ids, "x", 7, ("a", 1))
    assert grown.texts[-3:] == tuple(new.values())
    assert grown.labels == (*network.labels, "topic 0", None, None)
    assert len(grown.links) == len(network.links) + 3
    assert len(grown.edges) == len(network.edges) + 4
    np.testing.assert_array_equal(model.embedding_[:60], seen)
    np.testing.assert_array_equal(model.embedding_std_[:60], std)
    np.testing.assert_allclose(model.embedding_[62], wanted[0][2], rtol=1e-3, atol=1e-4)
    assert np.abs(model.embedding_[60] - wanted[0][0]).max() > 1e-3  # its link with 7 counts
    assert model.result_["added"] == 3
    assert "v0" not in [link.id for link in model.suggest_links("x", k=100)]

    model.save(tmp_path / "grown")
    loaded = VHE.load(tmp_path / "grown")
    assert loaded.network_.ids == grown.ids
    np.testing.assert_array_equal(loaded.network_.links, grown.links)
    np.testing.assert_array_equal(loaded.embedding_, model.embedding_)
    np.testing.assert_array_equal(loaded.embedding_std_, model.embedding_std_)
    assert loaded.suggest_links(7, k=3) == model.suggest_links(7, k=3)
    assert loaded.embed(contexts="all").shape == (63, 16)
    more = [m.add_vertices({"y": "t1w1"}, [("y", "x")]).embedding_[-1] for m in (model, loaded)]
    np.testing.assert_array_equal(*more)
    assert loaded.result_["added"] == 4


def test_nothing_is_added(hasty: New, network: TextNetwork) -> None:
    model = hasty().fit(network)
    mean, std = model.embed_texts([])
    assert mean.shape == std.shape == (0, 16)
    assert model.add_vertices({}).embedding_.shape == (60, 16)


@pytest.mark.parametrize("structure", ["learned", "none"])
def test_other_structures_take_newcomers_too(
    structure: str, hasty: New, network: TextNetwork, tmp_path: Path
) -> None:
    model = hasty(structure=structure).fit(network)
    model.add_vertices({"x": "t0w1 t0w2", "y": "nobody knows"}, [("x", "v0")])
    assert np.isfinite(model.embedding_).all()
    assert model.nearest("x", 1)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(VHE.load(tmp_path / "model").embedding_, model.embedding_)


@pytest.mark.parametrize(
    ("texts", "edges", "said"),
    [
        ({"v1": "text"}, [], "'v1' is a vertex already"),
        ({"x": "text"}, [("x", "v99")], "'v99'"),
        ({"x": "text"}, [("v1", "v2")], "between two vertices that were there already"),
        ({"x": 5}, [], "text"),
        ({"x": "text"}, ["xv"], "pairs"),
    ],
)
def test_what_cannot_be_added_changes_nothing(
    fitted: VHE, texts: dict, edges: list, said: str
) -> None:
    before = fitted.network_, fitted.embedding_, fitted._model
    with pytest.raises(VHEError, match=said):
        fitted.add_vertices(texts, edges)
    assert (fitted.network_, fitted.embedding_, fitted._model) == before


def test_texts_that_are_none(fitted: VHE) -> None:
    for wrong, said in (("a text", "list of strings"), ([5], "list of strings")):
        with pytest.raises(VHEError, match=said):
            fitted.embed_texts(wrong)
    with pytest.raises(VHEError, match="text 1, but there are 1"):
        fitted.embed_texts(["a"], [(1, "v0")])
    with pytest.raises(VHEError, match="'v99'"):
        fitted.embed_texts(["a"], [(0, "v99")])
    with pytest.raises(VHEError, match="'slow'"):
        fitted.embed_texts(["a"], method="slow")


def test_parts_of_a_corpus() -> None:
    texts = ["a b c", "", "c d", "e"]
    corpus = Corpus.build(texts, min_count=1)
    some = taken(corpus, np.array([2, 1, 0]))
    assert [some.padded(np.array([k]))[0].tolist() for k in range(3)] == [[3, 4], [0], [1, 2, 3]]
    both = joined(some, taken(corpus, np.array([3])))
    assert both.lengths.tolist() == [2, 0, 3, 1]
    assert both.padded(np.array([3]))[0].tolist() == [5]
    assert replace(both) == both
