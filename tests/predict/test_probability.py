"""Calibration: probabilities that increase with the score, and the degree term."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vhe.data.network import TextNetwork
from vhe.data.sampling import LinkSet
from vhe.estimators import VHE
from vhe.predict.calibration import ReliabilityCurve
from vhe.predict.probability import (
    KNEE,
    NEGATIVES,
    Calibration,
    _cross_fitted_curve,
    asinh_transform,
    at_density,
    calibrate,
    log_degree,
)

Embedding = Callable[[np.ndarray, np.ndarray], np.ndarray]


def run(
    embedding: Embedding,
    held_out: np.ndarray,
    known: np.ndarray,
    n: int,
    degree_weight: float | None = None,
    seed: int = 0,
) -> tuple[Calibration, ReliabilityCurve]:
    degree = np.bincount(np.concatenate([known, held_out]).ravel(), minlength=n)
    return calibrate(
        embedding, held_out, LinkSet(known, n), degree, degree_weight=degree_weight, seed=seed
    )


def fixed(rows: np.ndarray) -> Embedding:
    return lambda masked, vertices: rows[vertices]


@pytest.fixture(scope="module")
def groups() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Embeddings in six groups, links inside of the groups: held out, and known."""
    rng = np.random.default_rng(0)
    n, group = 90, np.arange(90) % 6
    rows = (np.eye(6)[group] + 0.4 * rng.normal(size=(n, 6))).astype(np.float32)
    i, j = np.triu_indices(n, 1)
    links = rng.permutation(np.column_stack([i, j])[group[i] == group[j]])
    return rows, links[:80], links[80:200]


def test_probabilities_increase_with_the_score(groups: Any) -> None:
    rows, held_out, known = groups
    calibration, curve = run(fixed(rows), held_out, known, len(rows))
    assert calibration.slope > 0
    probabilities = calibration.probability(np.linspace(-1, 1, 101))
    assert (np.diff(probabilities) > 0).all()
    assert probabilities[0] < 0.1
    assert probabilities[-1] > 0.75
    assert curve.error < 0.2
    assert run(fixed(rows), held_out, known, len(rows))[0] == calibration
    assert run(fixed(rows), held_out, known, len(rows), seed=1)[0] != calibration


def test_links_and_non_links_have_the_same_total_weight(groups: Any) -> None:
    """The mean probability of links and that of other pairs have the mean ½."""
    rows, held_out, known = groups
    calibration, curve = run(fixed(rows), held_out, known, len(rows), degree_weight=0.0)
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    others = np.random.default_rng(5).integers(len(rows), size=(4000, 2))
    linked = LinkSet(np.concatenate([known, held_out]), len(rows))
    others = others[(others[:, 0] != others[:, 1]) & ~linked.linked(*others.T)]
    means = [
        calibration.probability((unit[p[:, 0]] * unit[p[:, 1]]).sum(axis=1)).mean()
        for p in (held_out, others)
    ]
    assert np.mean(means) == pytest.approx(0.5, abs=0.06)
    assert means[0] > means[1] + 0.2
    assert np.average(curve.frequency, weights=curve.count) == pytest.approx(0.5)
    assert curve.count.sum() == pytest.approx(2 * NEGATIVES * len(held_out))


def test_each_held_out_link_is_masked_once_while_it_is_scored(groups: Any) -> None:
    rows, held_out, known = groups
    masks: list[int] = []

    def embedding(masked: np.ndarray, vertices: np.ndarray) -> np.ndarray:
        assert 0 < len(masked) <= len(held_out) / 2
        assert set(held_out[masked].ravel()) <= set(vertices)
        masks.extend(masked.tolist())
        return rows[vertices]

    run(embedding, held_out, known, len(rows))
    assert sorted(masks) == list(range(len(held_out)))


def test_a_calibration_reads_only_the_masked_embedding(groups: Any) -> None:
    """An embedding that knows each link unless it is masked says nothing about masked links."""
    rows, held_out, known = groups
    n = len(rows)
    noise = np.random.default_rng(1).normal(size=(n, 6)).astype(np.float32)

    def leaking(masked: np.ndarray, vertices: np.ndarray) -> np.ndarray:
        hidden = np.isin(vertices, held_out[masked])
        return np.where(hidden[:, None], noise[vertices], rows[vertices])

    _, informed = run(fixed(rows), held_out, known, n)
    calibration, _ = run(leaking, held_out, known, n)
    strong = run(fixed(rows), held_out, known, n)[0]
    assert calibration.slope < strong.slope / 2
    assert informed.error < 0.2


TINY = {
    "two vertices": (2, [(0, 1)]),
    "a path": (3, [(0, 1), (1, 2)]),
    "a triangle": (3, [(0, 1), (1, 2), (0, 2)]),
    "a clique": (5, [(i, j) for i in range(5) for j in range(i)]),
    "a star": (6, [(0, j) for j in range(1, 6)]),
    "two pairs": (4, [(0, 1), (2, 3)]),
}


@pytest.mark.parametrize("name", TINY)
@pytest.mark.parametrize("rows", ["equal", "orthogonal", "zero", "random"])
def test_the_calibration_of_a_tiny_network_is_finite(name: str, rows: str) -> None:
    n, links = TINY[name]
    embedding = {
        "equal": np.ones((n, 6)),
        "orthogonal": np.eye(n, 6),
        "zero": np.zeros((n, 6)),
        "random": np.random.default_rng(0).normal(size=(n, 6)),
    }[rows].astype(np.float32)
    everything = np.array(links)
    for known, held_out in ((everything[:0], everything), (everything[1:], everything[:1])):
        calibration, curve = run(fixed(embedding), held_out, known, n)
        assert np.isfinite([*vars(calibration).values()]).all()
        assert 0 <= curve.error <= 1
        assert calibration.slope >= 0  # a higher score never has a lower probability


def test_the_transformed_score_is_linear_and_then_logarithmic() -> None:
    small = np.linspace(-0.01, 0.01, 5)
    np.testing.assert_allclose(asinh_transform(small), small / KNEE, rtol=1e-2)
    np.testing.assert_allclose(np.diff(asinh_transform(np.array([2.0, 4.0]))), np.log(2), rtol=1e-2)
    assert (np.diff(asinh_transform(np.linspace(-1, 1, 99))) > 0).all()
    assert asinh_transform(np.float32(0.3)).dtype == np.float64


def test_the_probability_at_a_density_follows_bayes_rule() -> None:
    balanced = np.random.default_rng(0).uniform(size=9)
    odds = balanced / (1 - balanced) * (0.01 / 0.99)
    np.testing.assert_allclose(at_density(balanced, 0.01), odds / (1 + odds))
    np.testing.assert_allclose(at_density(balanced, 0.5), balanced)
    assert at_density(np.array([0.0, 1.0]), 0.01).tolist() == [0, 1]


# --- the degree term


def test_the_logarithm_of_the_degree_is_centred() -> None:
    degree = np.array([0, 1, 1, 50])
    found = log_degree(degree)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, np.log1p(degree) - np.log1p(degree).mean(), rtol=1e-5)


def test_a_given_degree_weight_is_not_chosen(groups: Any) -> None:
    rows, held_out, known = groups
    found, _ = run(fixed(rows), held_out, known, len(rows), degree_weight=0.3)
    assert found.degree_weight == 0.3


@pytest.mark.parametrize("shape", ["hubs", "ring"])
def test_the_degree_weight_is_chosen_by_what_it_explains(shape: str) -> None:
    rng = np.random.default_rng(0)
    n = 120
    star = np.array([(hub, v) for v in range(6, n) for hub in rng.choice(6, 2, replace=False)])
    ring = np.array([(v, (v + step) % n) for v in range(n) for step in (1, 2)])
    links = rng.permutation(star if shape == "hubs" else ring)
    rows = (1 + 0.2 * rng.normal(size=(n, 4))).astype(np.float32)
    found, _ = run(fixed(rows), links[:50], links[50:], n)
    assert (found.degree_weight > 0) == (shape == "hubs")


@pytest.fixture(scope="module")
def hubs(new: Callable[..., VHE]) -> tuple[VHE, VHE]:
    """Models of equal texts: with a few hubs, and with the same degree everywhere."""
    rng = np.random.default_rng(0)
    n, texts = 120, ["a b c"] * 120
    star = [(int(rng.integers(6)), v) for v in range(6, n) for _ in range(2)]
    ring = [(v, (v + step) % n) for v in range(n) for step in (1, 2)]
    made = [
        new(random_state=0, max_steps=5, validation=0.4).fit(TextNetwork(range(n), texts, links))
        for links in (star, ring)
    ]
    return made[0], made[1]


def test_degrees_count_where_a_few_vertices_have_most_links(hubs: tuple[VHE, VHE]) -> None:
    star, ring = hubs
    assert star._calibration.degree_weight > 0
    assert (star.degree_bias_[:6] > star.degree_bias_[6:].max()).all()
    assert ring._calibration.degree_weight == 0
    assert not ring.degree_bias_.any()
    likeliest = [found.id for found in star.suggest_links(100, 3)]
    assert set(likeliest) < set(range(6))


def test_scores_and_explanations_include_the_degree_bias(hubs: tuple[VHE, VHE]) -> None:
    star, _ = hubs
    ends = np.array([3, 50, 7]), np.array([90, 2, 8])
    a, b = (star.embedding_[end] for end in ends)
    cosine = (a * b).sum(axis=1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    bias = star.degree_bias_[ends[0]] + star.degree_bias_[ends[1]]
    scores = star.score_indices(*ends)
    np.testing.assert_allclose(scores, cosine + bias, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(np.diag(star.score_matrix(*ends)), scores, rtol=1e-4, atol=1e-6)
    found = star.explain(3, 90)
    assert found.score == pytest.approx(scores[0], abs=1e-5)
    assert found.probability == pytest.approx(star.predict_proba([(3, 90)])[0], abs=1e-5)


def test_the_degree_bias_is_saved_and_new_vertices_have_the_average(
    hubs: tuple[VHE, VHE], tmp_path: Path
) -> None:
    star, _ = hubs
    star.save(tmp_path / "m")
    loaded = VHE.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.degree_bias_, star.degree_bias_)
    loaded.add_vertices({"new": "a b c"}, [("new", 0)])
    np.testing.assert_array_equal(loaded.degree_bias_, np.append(star.degree_bias_, 0))


def test_a_link_does_not_count_in_the_degree_of_its_own_ends() -> None:
    """Linked vertices have one link, the others none: without the link itself all are equal, with
    it the degree would tell links from other pairs."""
    n, links = 240, np.array([(v, v + 60) for v in range(60)])
    rows = (1 + 0.2 * np.random.default_rng(0).normal(size=(n, 4))).astype(np.float32)
    assert run(fixed(rows), links, links[:0], n)[0].degree_weight == 0
    # held-out links that are masked in other folds do count
    pairs = np.concatenate([links, [(v, (v + 1) % 60) for v in range(60)]])
    assert run(fixed(rows), pairs[60:], links, n)[0].degree_weight > 0


def test_held_out_links_are_no_negatives() -> None:
    clique = np.array([(i, j) for i in range(6) for j in range(i)])
    _, curve = run(fixed(np.eye(6, dtype=np.float32)), clique, clique[:0], 6)
    np.testing.assert_array_equal(curve.frequency, np.ones(len(curve.frequency)))
    _, curve = run(fixed(np.eye(6, dtype=np.float32)), clique[:5], clique[5:], 6)
    np.testing.assert_array_equal(curve.frequency, np.ones(len(curve.frequency)))


def test_the_reliability_curve_is_cross_fitted() -> None:
    """Each half is predicted with the base rate of the other half, which is the opposite."""
    half = np.arange(200) < 100
    linked = np.where(half, np.arange(200) % 10 > 0, np.arange(200) % 10 == 0)
    curve = _cross_fitted_curve(np.ones(200), linked, half)
    assert curve.probability == pytest.approx([0.1, 0.9], abs=0.02)
    assert curve.frequency == pytest.approx([0.9, 0.1])
    assert curve.error == pytest.approx(0.8, abs=0.02)
