"""The link posterior: what it is fitted to, which features count, and its probabilities."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import check_grad
from sklearn.metrics import roc_auc_score

import vhe
from vhe.data.network import TextNetwork
from vhe.data.sampling import LinkSet
from vhe.estimators import VHE
from vhe.predict import link_posterior
from vhe.predict.calibration import ReliabilityCurve, sigmoid
from vhe.predict.link_posterior import (
    ANY_SIGN,
    NEGATIVES,
    SLOPES,
    LinkPosterior,
    MaskedRows,
    _calibration,
    _choice_loss,
    _loss,
    _others_help,
    at_density,
    fit_link_posterior,
)
from vhe.predict.pair_features import GROUPS, VertexRows, paired, vertex_rows
from vhe.runtime.arrays import unit_rows

GRAPH = ("embedding", *GROUPS["degree"], *GROUPS["structure"])
ALL = ("embedding", *(name for names in GROUPS.values() for name in names))


def table(rows: np.ndarray, links: np.ndarray, names: tuple[str, ...] = ALL) -> VertexRows:
    """Vertices with an embedding and links, without words."""
    scales = {name: rows for name in ("embedding", *GROUPS["scales"])}
    return vertex_rows(scales, sparse.csr_array((len(rows), 1)), links, names, seed=0)


def masking(
    rows: np.ndarray, held_out: np.ndarray, known: np.ndarray, names: tuple[str, ...]
) -> MaskedRows:
    """The rows of a network with the links ``known`` and ``held_out`` and a fixed embedding."""

    def masked_rows(masked: np.ndarray, isolated: np.ndarray, vertices: np.ndarray) -> VertexRows:
        hidden = (held_out[:, None] == masked).all(axis=2).any(axis=1)
        links = np.concatenate([known, held_out[~hidden]])
        links = links[~np.isin(links, isolated).any(axis=1)]
        return table(rows, links, names).take(vertices)

    return masked_rows


def run(
    rows: np.ndarray,
    held_out: np.ndarray,
    known: np.ndarray,
    names: tuple[str, ...] = GRAPH,
    seed: int = 0,
) -> tuple[LinkPosterior, ReliabilityCurve]:
    everything = np.concatenate([known, held_out])
    masked_rows = masking(rows, held_out, known, names)
    return fit_link_posterior([(masked_rows, held_out)], everything, names, len(rows), seed)


@pytest.fixture(scope="module")
def groups() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Embeddings in six groups, links inside of the groups: held out, and known."""
    rng = np.random.default_rng(0)
    n, group = 90, np.arange(90) % 6
    rows = (np.eye(6)[group] + 0.4 * rng.normal(size=(n, 6))).astype(np.float32)
    i, j = np.triu_indices(n, 1)
    links = rng.permutation(np.column_stack([i, j])[group[i] == group[j]])
    return rows, links[:80], links[80:200]


# --- the loss


def test_the_gradient_of_the_loss_against_finite_differences() -> None:
    rng = np.random.default_rng(0)
    x, ridge = rng.normal(size=(7, 5, 3)), np.array([0.6, 60.0, 2.0])
    centre = np.array([0.3, -0.1, 0.0])
    for scale in (0.0, 1.0, 4.0):
        start = scale * rng.normal(size=4)

        def loss(u: np.ndarray) -> Any:
            return _loss(u, x, ridge, centre)

        error = check_grad(lambda u: loss(u)[0], lambda u: loss(u)[1], start)
        assert error < 1e-3 * max(1, np.abs(loss(start)[1]).max())


def test_the_loss_against_loops() -> None:
    rng = np.random.default_rng(1)
    x, ridge, u = rng.normal(size=(6, 5, 2)), np.array([0.5, 3.0]), np.array([0.7, -0.4, 0.2])
    centre = np.array([0.1, 0.2])
    expected = 0.25 * 0.6**2 + 1.5 * 0.6**2
    for query in x:
        scores = [0.7 * a - 0.4 * b for a, b in query]
        expected -= np.log(sigmoid(np.float64(scores[0] + 0.2)))
        expected -= sum(np.log(1 - sigmoid(np.float64(s + 0.2))) for s in scores[1:]) / 4
        expected -= 0.5 * np.log(np.exp(scores[0]) / np.exp(scores).sum())
    assert _loss(u, x, ridge, centre)[0] == pytest.approx(expected)


def test_the_loss_of_large_scores_is_finite() -> None:
    x = np.array([[[1e3], [-1e3]], [[-1e3], [1e3]]])
    value, gradient = _loss(np.array([5.0, 0.0]), x, np.ones(1), np.zeros(1))
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()


# --- the sample


def test_links_and_unlinked_pairs_have_the_same_total_weight(groups: Any) -> None:
    """The mean probability of links and that of other pairs have the mean ½."""
    rows, held_out, known = groups
    posterior, curve = run(rows, held_out, known, ("embedding",))
    others = np.random.default_rng(5).integers(len(rows), size=(4000, 2))
    everything = np.concatenate([known, held_out])
    linked = LinkSet(everything, len(rows))
    others = others[(others[:, 0] != others[:, 1]) & ~linked.linked(*others.T)]
    vertices = table(rows, everything, ("embedding",))
    means = [sigmoid(posterior.log_odds(vertices, *p.T)).mean() for p in (held_out, others)]
    assert np.mean(means) == pytest.approx(0.5, abs=0.06)
    assert means[0] > means[1] + 0.2
    assert np.average(curve.frequency, weights=curve.count) == pytest.approx(0.5)
    assert curve.count.sum() == pytest.approx(4 * len(held_out))


def test_each_held_out_link_is_masked_once_while_it_is_scored(groups: Any) -> None:
    rows, held_out, known = groups
    masks: list[list[int]] = []
    original = masking(rows, held_out, known, ("embedding",))

    def spy(masked: np.ndarray, isolated: np.ndarray, vertices: np.ndarray) -> VertexRows:
        assert not len(isolated)
        assert 0 < len(masked) <= len(held_out) / 2
        assert set(masked.ravel()) <= set(vertices)
        masks.extend(masked.tolist())
        return original(masked, isolated, vertices)

    everything = np.concatenate([known, held_out])
    for folds in ([held_out], [held_out[:30], held_out[30:]]):
        masks.clear()
        fit_link_posterior([(spy, fold) for fold in folds], everything, ("embedding",), 90, 0)
        assert sorted(masks) == sorted(held_out.tolist())


def test_links_of_a_fold_are_scored_by_the_rows_of_that_fold(groups: Any) -> None:
    rows, held_out, known = groups
    everything, names = np.concatenate([known, held_out]), ("embedding", *GROUPS["degree"])
    original = masking(rows, held_out, known, names)
    folds = held_out[:30], held_out[30:]

    def spied(fold: np.ndarray) -> MaskedRows:
        def spy(masked: np.ndarray, isolated: np.ndarray, vertices: np.ndarray) -> VertexRows:
            assert {tuple(link) for link in masked.tolist()} <= {tuple(k) for k in fold.tolist()}
            return original(masked, isolated, vertices)

        return spy

    posterior, _ = fit_link_posterior(
        [(spied(fold), fold) for fold in folds], everything, names, 90, 0, whole_vertices=True
    )
    assert posterior.weights["embedding"] > 0


def test_folds_share_the_number_of_links_that_are_read(
    groups: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, held_out, known = groups
    monkeypatch.setattr(link_posterior, "MOST_LINKS", 20)
    count = 0
    original = masking(rows, held_out, known, ("embedding",))

    def spy(masked: np.ndarray, isolated: np.ndarray, vertices: np.ndarray) -> VertexRows:
        nonlocal count
        count += len(masked)
        return original(masked, isolated, vertices)

    everything = np.concatenate([known, held_out])
    folds = [(spy, held_out[:40]), (spy, held_out[40:])]
    fit_link_posterior(folds, everything, ("embedding",), 90, 0)
    assert count == 20


def test_isolated_vertices_have_weights_of_their_own(groups: Any) -> None:
    """Each sampled end has all of its links masked, and pairs of either kind their own weights."""
    rows, held_out, known = groups
    everything, names = np.concatenate([known, held_out]), (*GRAPH, "degree", "isolated")
    names = tuple(dict.fromkeys(names))
    original = masking(rows, held_out, known, names)
    seen: list[int] = []

    def spy(masked: np.ndarray, isolated: np.ndarray, vertices: np.ndarray) -> VertexRows:
        found = original(masked, isolated, vertices)
        assert not found.degree[np.isin(vertices, isolated)].any()
        degree = np.bincount(everything.ravel(), minlength=len(rows))
        assert degree[np.unique(isolated)].sum() <= max(0.1 * len(everything), 20)
        seen.extend(isolated.tolist())
        return found

    arguments = [(spy, held_out)], everything, names, len(rows), 0
    posterior, _ = fit_link_posterior(*arguments, whole_vertices=True)
    assert set(seen) <= set(held_out.ravel().tolist())
    assert len(seen) >= 6
    assert set(posterior.isolated_weights) == set(names)
    assert posterior.isolated_weights["isolated"] == 0  # the same in all of these pairs
    alone = np.append(known, held_out, axis=0)
    vertices = table(rows, alone[~(alone == 0).any(axis=1)], names)  # vertex 0 has no link
    i, j = np.array([0, 1, 2]), np.array([3, 0, 4])
    found = posterior.log_odds(vertices, i, j)
    for k, (weights, offset) in enumerate(
        [(posterior.isolated_weights, posterior.isolated_offset)] * 2
        + [(posterior.weights, posterior.offset)]
    ):
        ends = vertices.take(i[k : k + 1]), vertices.take(j[k : k + 1])
        expected = offset + sum(weights[n] * float(v[0]) for n, v in paired(*ends, names))
        assert found[k] == pytest.approx(expected)
        assert offset + sum(posterior.parts(*ends).values()) == pytest.approx(expected)
    matrix = posterior.log_odds_matrix(vertices.take(i), vertices.take(j))
    np.testing.assert_allclose(np.diag(matrix), found, rtol=1e-5)
    plain, _ = fit_link_posterior(*arguments)
    assert (plain.weights, plain.isolated_weights) == (posterior.weights, {})


@pytest.mark.parametrize("size", [5, 40])
def test_negatives_are_unlinked_pairs_of_the_ends(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of vertices that are linked with all others but one."""
    links = np.array([(i, j) for i in range(size) for j in range(i) if j + 1 < i or j % 2])
    held_out, known = links[::3], np.concatenate([links[1::3], links[2::3]])
    rows = np.random.default_rng(0).normal(size=(size, 3))
    seen: list[np.ndarray] = []

    def spy(a: VertexRows, b: VertexRows, names: Any) -> Any:
        seen.append(np.column_stack([a.scales["embedding"][:, 0], b.scales["embedding"][:, 0]]))
        return paired(a, b, names)

    monkeypatch.setattr(link_posterior, "paired", spy)
    run(rows, held_out, known, ("embedding",))
    unit = unit_rows(rows.astype(np.float32))[:, 0]
    number = {float(value): vertex for vertex, value in enumerate(unit)}
    pairs = np.array([[number[float(v)] for v in pair] for pair in np.concatenate(seen)])
    queries = pairs.reshape(-1, 1 + NEGATIVES, 2)
    linked = LinkSet(links, size)
    assert linked.linked(*queries[:, 0].T).all()
    negatives = queries[:, 1:]
    assert (negatives[:, :, 0] == queries[:, :1, 0]).all()
    assert (negatives[:, :, 0] != negatives[:, :, 1]).all()
    assert not linked.linked(negatives[:, :, 0], negatives[:, :, 1]).any()
    degree = np.bincount(links.ravel(), minlength=size)
    asked = {(int(i), int(j)) for i, j in queries[:, 0] if degree[i] < size - 1}
    both = [*held_out.tolist(), *held_out[:, ::-1].tolist()]
    assert asked == {(i, j) for i, j in both if degree[i] < size - 1}


def test_a_complete_graph_has_no_negatives() -> None:
    clique = np.array([(i, j) for i in range(6) for j in range(i)])
    posterior, curve = run(np.eye(6), clique[:5], clique[5:])
    assert posterior.names == ("embedding",)
    np.testing.assert_array_equal(curve.frequency, [1])


# --- leaks


def test_the_posterior_reads_only_masked_rows(groups: Any) -> None:
    """An embedding that knows each link unless it is masked says nothing about masked links."""
    rows, held_out, known = groups
    noise = np.random.default_rng(1).normal(size=rows.shape).astype(np.float32)
    everything = np.concatenate([known, held_out])

    def leaking(masked: np.ndarray, isolated: np.ndarray, vertices: np.ndarray) -> VertexRows:
        hidden = np.isin(vertices, masked)
        chosen = np.where(hidden[:, None], noise[vertices], rows[vertices])
        return table(chosen, known[:0], ("embedding",))

    names = ("embedding",)
    leaky, _ = fit_link_posterior([(leaking, held_out)], everything, names, len(rows), 0)
    honest, curve = run(rows, held_out, known, names)
    assert leaky.weights["embedding"] < honest.weights["embedding"] / 2
    assert curve.error < 0.2


@pytest.mark.parametrize("leak", [True, False])
def test_a_feature_that_reveals_links_counts_only_where_they_are_not_masked(leak: bool) -> None:
    """Pairs of which every link is held out: without the mask the structure shows each link, with
    it nothing."""
    n, rng = 200, np.random.default_rng(0)
    links = np.array([(k, k + 100) for k in range(100)])
    rows = rng.normal(size=(n, 8))

    def revealing(masked: np.ndarray, isolated: np.ndarray, vertices: np.ndarray) -> VertexRows:
        shown = links if leak else links[~np.isin(links[:, 0], masked[:, 0])]
        return table(rows, shown, GRAPH).take(vertices)

    found, curve = fit_link_posterior([(revealing, links)], links, GRAPH, n, 0)
    counts = found.weights["structure"] > 0.1
    assert counts == leak
    assert (curve.probability.max() > 0.95) == leak


def test_a_link_does_not_count_in_the_degree_of_its_own_ends() -> None:
    """Linked vertices have one link, the others none: without the link itself all are equal."""
    n, links = 240, np.array([(v, v + 60) for v in range(60)])
    rows = 1 + 0.2 * np.random.default_rng(0).normal(size=(n, 4))
    found, _ = run(rows, links, links[:0], ("embedding", *GROUPS["degree"]))
    assert found.weights["degree"] <= 0
    assert found.weights["isolated"] >= 0
    # held-out links that are masked in other folds do count
    pairs = np.concatenate([links, [(v, (v + 1) % 60) for v in range(60)]])
    found, _ = run(rows, pairs[60:], links, ("embedding", *GROUPS["degree"]))
    assert found.weights["degree"] > 0


def test_the_reliability_curve_is_cross_fitted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each half of the links, with both ends of each, is judged by a fit to the other half."""
    n = 80
    held_out = np.array([(k, k + 40) for k in range(40)])
    fitted: list[np.ndarray] = []

    def spy(features: np.ndarray, names: tuple[str, ...]) -> LinkPosterior:
        fitted.append(features[:, 0, 0])
        return LinkPosterior({"embedding": 0.0}, 0.0)

    monkeypatch.setattr(link_posterior, "_fit", spy)
    rows = np.random.default_rng(0).normal(size=(n, 3))
    run(rows, held_out, held_out[:0], ("embedding",))
    one, other, whole = (set(values.round(6).tolist()) for values in fitted)
    assert not one & other
    assert one | other == whole
    assert len(fitted[0]) == len(fitted[1]) == 40  # 20 links, both ends


# --- which features count


def test_few_links_leave_the_embedding_alone(groups: Any) -> None:
    rows, held_out, known = groups
    few, _ = run(rows, held_out[:2], known)
    many, _ = run(rows, held_out, known)
    unlike = {name: abs(weight) for name, weight in few.weights.items() if name != "embedding"}
    assert few.weights["embedding"] > 5 * max(unlike.values())
    structure = [p.weights["structure"] + p.weights["neighbours"] for p in (few, many)]
    assert structure[1] > 3 * structure[0]


def test_the_embedding_ranks_pairs_even_if_few_links_speak_against_it() -> None:
    """One link between unlike vertices is no reason to stop ranking by likeness."""
    rows = np.array([[1, 0], [0.9, 0.1], [-1, 0.1], [-0.9, 0], [0.8, 0.3], [1, 0.4]])
    known = np.array([[0, 1], [2, 3]])
    posterior, _ = run(rows, np.array([[1, 2]]), known, ("embedding",))
    assert posterior.weights["embedding"] > 0
    everyone = table(rows, known, ("embedding",))
    scores = posterior.log_odds_matrix(everyone.take(np.array([0])), everyone)[0]
    assert scores[5] > scores[2]
    assert abs(sigmoid(scores) - 0.5).max() < 0.1  # but it says little


def test_an_embedding_of_nearly_parallel_rows_ranks_pairs(groups: Any) -> None:
    """Cosines between 0.97 and 1 rank pairs, as those between -1 and 1 do."""
    rows, held_out, known = groups
    narrow = np.concatenate([rows, np.full((len(rows), 1), 10)], axis=1)
    posterior, _ = run(narrow, held_out, known, ("embedding",))
    everyone = table(narrow, known, ("embedding",))
    others = np.random.default_rng(1).integers(len(rows), size=(500, 2))
    scores = [posterior.log_odds(everyone, *pairs.T) for pairs in (held_out, others)]
    assert roc_auc_score([1] * len(held_out) + [0] * 500, np.concatenate(scores)) > 0.7


@pytest.mark.parametrize("seed", range(3))
def test_weights_are_not_negative_except_those_of_degrees(seed: int) -> None:
    """Links between unlike vertices that have no common neighbour."""
    rng = np.random.default_rng(seed)
    n, group = 80, np.arange(80) % 2
    rows = (np.eye(2)[group] + 0.3 * rng.normal(size=(n, 2))).astype(np.float32)
    i, j = np.triu_indices(n, 1)
    across = rng.permutation(np.column_stack([i, j])[group[i] != group[j]])
    posterior, _ = run(rows, across[:60], across[60:120], ALL, seed)
    assert set(posterior.weights) == set(ALL)
    for name, weight in posterior.weights.items():
        assert weight >= 0 or name in ANY_SIGN
    assert posterior.weights["embedding"] < 0.05


@pytest.mark.parametrize("shape", ["hubs", "ring"])
def test_degrees_count_where_a_few_vertices_have_most_links(shape: str) -> None:
    rng = np.random.default_rng(0)
    n = 200
    star = np.array([(hub, v) for v in range(6, n) for hub in rng.choice(6, 2, replace=False)])
    ring = np.array([(v, (v + step) % n) for v in range(n) for step in (1, 2)])
    links = rng.permutation(star if shape == "hubs" else ring)
    rows = (1 + 0.2 * rng.normal(size=(n, 4))).astype(np.float32)
    found, _ = run(rows, links[:80], links[80:], ("embedding", *GROUPS["degree"]))
    assert (found.weights["degree"] > 0.1) == (shape == "hubs")


def block_network(n: int, count: int, share: float, distance: int) -> TextNetwork:
    """Links between groups at a distance on a ring of groups; texts of random words."""
    rng = np.random.default_rng(1)
    texts = [" ".join(f"w{k}" for k in rng.integers(60, size=8)) for _ in range(n)]
    i, j = np.triu_indices(n, 1)
    linked = ((i - j) % count == distance) | ((j - i) % count == distance)
    linked &= rng.random(len(i)) < share
    return TextNetwork(range(n), texts, np.column_stack([i, j])[linked])


def auc(test: Any, score: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> float:
    rng = np.random.default_rng(0)
    n = len(test.network)
    others = rng.integers(n, size=(4000, 2))
    linked = LinkSet(test.network.links, n)
    others = others[(others[:, 0] != others[:, 1]) & ~linked.linked(*others.T)]
    pairs = np.concatenate([test.pairs, others])
    return float(roc_auc_score(np.arange(len(pairs)) < len(test.pairs), score(*pairs.T)))


def cosines(model: VHE) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    unit = model.embedding_ / np.linalg.norm(model.embedding_, axis=1, keepdims=True)
    return lambda i, j: (unit[i] * unit[j]).sum(axis=1)


def test_structure_counts_where_texts_are_useless(new: Callable[..., VHE]) -> None:
    """Linked vertices are in different groups, so that likeness does not help either."""
    train, test = block_network(240, 12, 0.7, distance=1).split_edges(0.7)
    model = new(random_state=0, validation=0.2, max_steps=0).fit(train)
    assert model._link_posterior.weights["structure"] > 0.5
    found = auc(test, model.score_indices)
    assert found > auc(test, cosines(model)) + 0.1
    alone = new(random_state=0, validation=0.2, max_steps=0, link_features="").fit(train)
    assert found > auc(test, alone.score_indices) + 0.1
    assert vhe.evaluate(model, test).auc > vhe.evaluate(alone, test).auc + 0.1


def test_common_neighbours_count_where_links_are_local(new: Callable[..., VHE]) -> None:
    """Each vertex of a ring is linked with the next eight; the texts say nothing."""
    n, rng = 200, np.random.default_rng(0)
    texts = [" ".join(f"w{w}" for w in rng.integers(60, size=8)) for _ in range(n)]
    links = np.array([(v, (v + step) % n) for v in range(n) for step in range(1, 9)])
    train, test = TextNetwork(range(n), texts, links).split_edges(0.7)
    model = new(random_state=0, validation=0.2, max_steps=0).fit(train)
    weights = model._link_posterior.weights
    assert weights["structure"] + weights["neighbours"] > 0.2
    assert auc(test, model.score_indices) > auc(test, cosines(model)) + 0.01


def test_features_that_do_not_help_have_no_weight(new: Callable[..., VHE]) -> None:
    """In groups all links are equally likely, and the embedding knows the groups."""
    train, test = block_network(200, 8, 0.6, distance=0).split_edges(0.7)
    model = new(random_state=0, validation=0.2, max_steps=0).fit(train)
    assert model._link_posterior.names == ("embedding",)
    assert set(model._link_posterior.weights) == set(ALL)
    assert auc(test, model.score_indices) == pytest.approx(auc(test, cosines(model)))


def choices(gain: float, links: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Features of two ends per link: an embedding of noise, and another with a gain."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(2 * links, 1 + NEGATIVES, 2))
    features[:, 0, 1] += gain
    return features, np.repeat(rng.permutation(links), 2)


@pytest.mark.parametrize("seed", range(5))
def test_the_other_features_must_help(seed: int) -> None:
    names = ("embedding", "words")
    assert _others_help(*choices(2.0, 60, seed), names)
    features, number = choices(2.0, 60, seed)
    features[:, :, 0] = features[:, :, 1]  # nothing that the embedding does not say
    features[:, :, 1] = np.random.default_rng(seed).normal(size=features.shape[:2])
    assert not _others_help(features, number, names)


def test_each_link_is_judged_by_a_fit_to_other_links(monkeypatch: pytest.MonkeyPatch) -> None:
    features, number = choices(1.0, 20)
    features[:, 0, 0] = number  # shows which links a fit reads
    fitted: list[tuple[int, set[float]]] = []

    def spy(features: np.ndarray, names: tuple[str, ...]) -> LinkPosterior:
        fitted.append((features.shape[2], set(features[:, 0, 0].tolist())))
        return LinkPosterior(dict.fromkeys(names, 0.0), 0.0)

    judged: list[np.ndarray] = []
    original = link_posterior._choice_loss

    def loss(scores: np.ndarray) -> np.ndarray:
        judged.append(scores)
        return original(scores)

    monkeypatch.setattr(link_posterior, "_fit", spy)
    monkeypatch.setattr(link_posterior, "_choice_loss", loss)
    assert not _others_help(features, number, ("embedding", "words"))  # equal losses: no gain
    everything = set(range(20))
    for k in range(0, len(fitted), 2):
        (one, alone), (two, both) = fitted[k : k + 2]
        assert (one, two) == (1, 2)
        assert alone == both < everything
        assert 2 * len(everything - alone) == len(judged[k])  # both ends of the other links
    left_out = [everything - read for _, read in fitted[::2]]
    assert sum(map(len, left_out)) == len(set.union(*left_out)) == 20


def test_the_loss_of_a_choice_against_a_loop() -> None:
    scores = np.random.default_rng(0).normal(size=(4, 5))
    expected = [-np.log(np.exp(row[0]) / np.exp(row).sum()) for row in scores]
    np.testing.assert_allclose(_choice_loss(scores), expected)
    assert np.isfinite(_choice_loss(np.array([[1e4, -1e4], [-1e4, 1e4]]))).all()


def test_words_count_where_linked_texts_share_rare_words(new: Callable[..., VHE]) -> None:
    """Each pair has a word of its own among many words that all share."""
    rng = np.random.default_rng(2)
    n = 300
    links = np.array([(k, k + n // 2) for k in range(n // 2)])
    texts = [
        " ".join([f"pair{k % (n // 2)}", *(f"w{w}" for w in rng.integers(80, size=12))])
        for k in range(n)
    ]
    model = new(random_state=0, validation=0.4, max_steps=0).fit(
        TextNetwork(range(n), texts, links)
    )
    weights = model._link_posterior.weights
    assert weights["words"] > 0.2
    others = rng.integers(n, size=(500, 2))
    others = others[(others[:, 0] % (n // 2)) != (others[:, 1] % (n // 2))]
    scores = [model.score_indices(*pairs.T) for pairs in (links, others)]
    assert np.median(scores[0]) > np.quantile(scores[1], 0.99)


# --- calibration


@pytest.mark.parametrize("names", [("embedding",), GRAPH])
def test_probabilities_are_moderate_where_all_texts_are_equal(names: tuple[str, ...]) -> None:
    """Rounding errors are no evidence, however well they separate a few links."""
    rng = np.random.default_rng(0)
    n = 60
    links = np.unique(np.sort(rng.integers(n, size=(120, 2)), axis=1), axis=0)
    links = links[links[:, 0] < links[:, 1]]
    rows = 1 + 1e-4 * rng.normal(size=(n, 4))
    posterior, curve = run(rows, links[::4], np.delete(links, np.s_[::4], axis=0), names)
    assert posterior.weights["embedding"] == 0
    everyone = table(rows, links, names)
    chosen = rng.integers(n, size=(500, 2))
    probability = sigmoid(posterior.log_odds(everyone, *chosen.T))
    assert 0.1 < probability.min() <= probability.max() < 0.97
    assert curve.error < 0.4


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1.0])
@pytest.mark.parametrize("centre", [-3.0, 0.0, 50.0])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_slope_of_the_calibration_is_bounded(scale: float, centre: float, sign: int) -> None:
    """A bounded slope does not shift the probabilities, whatever the mean of the scores."""
    linked = np.zeros((40, 1 + NEGATIVES), dtype=bool)
    linked[:, 0] = True
    noise = np.random.default_rng(0).normal(size=linked.shape)
    scores = centre + scale * (sign * 2 * linked + noise)
    slope, offset = _calibration(scores.ravel(), linked.ravel())
    assert SLOPES[0] <= slope <= SLOPES[1]
    probability = sigmoid(slope * scores + offset)
    balanced = (probability[:, 0].mean() + probability[:, 1:].mean()) / 2
    assert balanced == pytest.approx(0.5, abs=0.03)


def test_the_probability_at_a_density_follows_bayes_rule() -> None:
    balanced = np.random.default_rng(0).uniform(size=9)
    odds = balanced / (1 - balanced) * (0.01 / 0.99)
    np.testing.assert_allclose(at_density(balanced, 0.01), odds / (1 + odds))
    np.testing.assert_allclose(at_density(balanced, 0.5), balanced)
    assert at_density(np.array([0.0, 1.0]), 0.01).tolist() == [0, 1]


def test_the_same_seed_gives_the_same_posterior(groups: Any) -> None:
    rows, held_out, known = groups
    posterior, curve = run(rows, held_out, known)
    assert curve.error < 0.2
    assert run(rows, held_out, known)[0] == posterior
    assert run(rows, held_out, known, seed=1)[0] != posterior


TINY = {
    "two vertices": (2, [(0, 1)]),
    "a path": (3, [(0, 1), (1, 2)]),
    "a triangle": (3, [(0, 1), (1, 2), (0, 2)]),
    "a clique": (5, [(i, j) for i in range(5) for j in range(i)]),
    "a star": (6, [(0, j) for j in range(1, 6)]),
    "two pairs": (4, [(0, 1), (2, 3)]),
}


@pytest.mark.parametrize("name", TINY)
@pytest.mark.parametrize("kind", ["equal", "orthogonal", "zero", "random"])
def test_the_posterior_of_a_tiny_network_is_finite(name: str, kind: str) -> None:
    n, links = TINY[name]
    rows = {
        "equal": np.ones((n, 6)),
        "orthogonal": np.eye(n, 6),
        "zero": np.zeros((n, 6)),
        "random": np.random.default_rng(0).normal(size=(n, 6)),
    }[kind]
    everything = np.array(links)
    for known, held_out in ((everything[:0], everything), (everything[1:], everything[:1])):
        posterior, curve = run(rows, held_out, known, ALL)
        assert np.isfinite([posterior.offset, *posterior.weights.values()]).all()
        assert 0 <= curve.error <= 1
        assert posterior.weights["embedding"] >= 0


# --- scores


@pytest.fixture(scope="module")
def scored(groups: Any) -> tuple[LinkPosterior, VertexRows]:
    rows, _, known = groups
    weights = dict(zip(ALL, (1.5, 0.3, 0.0, 0.2, -0.4, -0.7, 0.9, 1.1), strict=True))
    return LinkPosterior(weights, -0.8), table(rows, known)


def test_the_log_odds_are_the_weighted_sum_of_the_features(scored: Any) -> None:
    posterior, rows = scored
    i, j = np.array([0, 5, 80, 3]), np.array([6, 2, 7, 3])
    features = dict(paired(rows.take(i), rows.take(j), ALL))
    expected = -0.8 + sum(posterior.weights[name] * features[name] for name in ALL)
    found = posterior.log_odds(rows, i, j)
    np.testing.assert_allclose(found, expected)
    matrix = posterior.log_odds_matrix(rows.take(i), rows.take(j))
    np.testing.assert_allclose(np.diag(matrix), expected, rtol=1e-4, atol=1e-5)
    assert matrix.shape == (4, 4)
    for k in range(4):
        parts = posterior.parts(rows.take(i[k : k + 1]), rows.take(j[k : k + 1]))
        assert sum(parts.values()) - 0.8 == pytest.approx(found[k], abs=1e-12)
        assert tuple(parts) == posterior.names
    assert "strong links" not in posterior.names  # it has the weight 0
    assert posterior.log_odds(rows, i[:0], j[:0]).shape == (0,)


@pytest.mark.parametrize("at_once", [1, 7, 2**15])
def test_long_lists_of_pairs_are_scored_in_parts(
    scored: Any, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    posterior, rows = scored
    i, j = np.random.default_rng(0).integers(len(rows), size=(2, 20))
    expected = posterior.log_odds(rows, i, j)
    monkeypatch.setattr(link_posterior, "PAIRS_AT_ONCE", at_once)
    np.testing.assert_allclose(posterior.log_odds(rows, i, j), expected, rtol=1e-12)


def test_more_likeness_never_lowers_the_score(scored: Any) -> None:
    posterior, rows = scored
    i, j = np.array([0]), np.array([1])
    angles = np.linspace(np.pi, 0, 9)
    found = []
    for angle in angles:
        ends = np.zeros_like(rows.scales["embedding"])
        ends[0, 0], ends[1, :2] = 1, (np.cos(angle), np.sin(angle))
        turned = replace(rows, scales=dict.fromkeys(rows.scales, ends))
        found.append(posterior.log_odds(turned, i, j)[0])
    assert (np.diff(found) > 0).all()
