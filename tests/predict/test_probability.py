"""Scores are cosines, and a calibration makes of them probabilities that grow with them."""

from pathlib import Path

import numpy as np
import pytest

from vhe.config import VHEConfig
from vhe.data.network import TextNetwork
from vhe.data.sampling import LinkSet
from vhe.data.text import Corpus
from vhe.estimators import VHE
from vhe.pair.model import PairVAE
from vhe.predict.probability import KNEE, Calibration, asinh_transform, calibrate, cosine, log_degree


def test_the_cosine_of_rows() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(2, 50, 6)).astype(np.float32)
    found = cosine(first, second)
    wanted = [a @ b / (np.sqrt(a @ a) * np.sqrt(b @ b)) for a, b in zip(first, second, strict=True)]
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(cosine(3 * first, 0.1 * second), found, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(cosine(first, -first), -np.ones(50), rtol=1e-5)


def test_the_cosine_with_zero_is_zero() -> None:
    rows = np.array([[0, 0], [1, 2]], dtype=np.float32)
    assert cosine(rows, rows[::-1]).tolist() == [0, 0]
    assert cosine(rows[:0], rows[:0]).shape == (0,)


def test_the_cosine_of_long_and_of_short_rows() -> None:
    rows = np.array([[1e15, 0], [1e-15, 0]], dtype=np.float32)
    assert cosine(rows, rows[::-1]) == pytest.approx([1, 1])


def degrees(network: TextNetwork) -> np.ndarray:
    return np.bincount(network.links.ravel(), minlength=len(network))


def calibration_of(fitted: VHE, held_out: np.ndarray, seed: int = 0) -> Calibration:
    network = fitted.network_
    return calibrate(
        fitted._model,
        fitted._corpus,
        LinkSet(network.links, len(network)),
        held_out,
        degree=degrees(network),
        contexts=4,
        seed=seed,
    )[0]


def test_probabilities_grow_with_the_score(fitted: VHE) -> None:
    calibration = calibration_of(fitted, fitted.network_.links[::3])
    assert calibration.slope > 0
    chances = calibration.probability(np.linspace(-1, 1, 101))
    assert (np.diff(chances) > 0).all()
    assert chances[0] < 0.2
    assert chances[-1] > 0.5
    assert calibration_of(fitted, fitted.network_.links[::3]) == calibration


def test_links_and_non_links_weigh_the_same(fitted: VHE) -> None:
    """The mean probability over the pairs that it is fitted on is their share of links."""
    links = fitted.network_.links
    calibration = calibration_of(fitted, links)
    rng = np.random.default_rng(5)
    others = rng.integers(len(fitted.network_), size=(4000, 2))
    known = LinkSet(links, len(fitted.network_))
    others = others[(others[:, 0] != others[:, 1]) & ~known.linked(*others.T)]
    means = [
        calibration.probability(fitted.score_indices(*pairs.T)).mean() for pairs in (links, others)
    ]
    assert np.mean(means) == pytest.approx(0.5, abs=0.1)
    assert means[0] > means[1] + 0.2


TINY = {
    "two vertices": (2, [(0, 1)]),
    "a path": (3, [(0, 1), (1, 2)]),
    "a triangle": (3, [(0, 1), (1, 2), (0, 2)]),
    "a clique": (5, [(i, j) for i in range(5) for j in range(i)]),
    "a star": (6, [(0, j) for j in range(1, 6)]),
    "two pairs": (4, [(0, 1), (2, 3)]),
}


@pytest.mark.parametrize("name", TINY)
@pytest.mark.parametrize("texts", ["alike", "different", "empty"])
def test_a_calibration_of_next_to_nothing_is_finite(
    name: str, texts: str, config: VHEConfig
) -> None:
    n, links = TINY[name]
    words = {
        "alike": ["a b c"] * n,
        "different": [f"w{k} x{k}" for k in range(n)],
        "empty": [""] * n,
    }
    network = TextNetwork(range(n), words[texts], links)
    corpus = Corpus.build(network.texts, min_count=1, max_words=config.max_words)
    model = PairVAE(config, len(corpus.vocabulary), n, pi0=0.5).eval()
    model.start(corpus, 0)
    everything, nothing = network.links, network.links[:0]
    for known, held_out in ((nothing, everything), (everything[1:], everything[:1])):
        calibration, curve = calibrate(
            model,
            corpus,
            LinkSet(known, n),
            held_out,
            degree=degrees(network),
            contexts=2,
            seed=0,
        )
        assert np.isfinite([*vars(calibration).values()]).all()
        assert 0 <= curve.error <= 1
        assert calibration.slope >= 0  # a higher score is never a lower probability


def test_the_warped_score_is_straight_and_then_a_logarithm() -> None:
    small = np.linspace(-0.01, 0.01, 5)
    np.testing.assert_allclose(asinh_transform(small), small / KNEE, rtol=1e-2)
    np.testing.assert_allclose(np.diff(asinh_transform(np.array([2.0, 4.0]))), np.log(2), rtol=1e-2)
    assert (np.diff(asinh_transform(np.linspace(-1, 1, 99))) > 0).all()
    assert asinh_transform(np.float32(0.3)).dtype == np.float64


def test_a_few_held_out_links_are_left_out_at_a_time(fitted: VHE) -> None:
    held_out = fitted.network_.links[::4]
    known = LinkSet(fitted.network_.links, len(fitted.network_))
    told: list[int] = []

    def leave_out(rows: np.ndarray) -> None:
        assert 0 < len(rows) <= len(held_out) / 2
        told.extend(rows.tolist())

    _, curve = calibrate(
        fitted._model,
        fitted._corpus,
        known,
        held_out,
        degree=degrees(fitted.network_),
        contexts=2,
        seed=0,
        leave_out=leave_out,
    )
    assert sorted(told) == list(range(len(held_out)))
    assert curve.count.sum() == pytest.approx(2 * 10 * len(held_out), rel=1e-6)


# --- degree_weight


def test_fame_grows_with_the_links_and_is_usually_nothing() -> None:
    found = log_degree(np.array([0, 1, 1, 50]))
    assert found.mean() == pytest.approx(0, abs=1e-6)
    assert (np.diff(found[[0, 1, 3]]) > 0).all()
    assert found[1] == found[2]


@pytest.fixture(scope="module")
def hubs(config: VHEConfig) -> tuple[VHE, VHE]:
    """Models of texts that say nothing: of links that all have one of a few ends, and of links that
    all vertices have equally many of."""
    rng = np.random.default_rng(0)
    n, texts = 120, [" ".join(rng.choice(list("abcdefgh"), 5)) for _ in range(120)]
    star = [(int(rng.integers(6)), v) for v in range(6, n) for _ in range(2)]
    ring = [(v, (v + step) % n) for v in range(n) for step in (1, 2)]
    made = [
        VHE.from_config(config, random_state=0).fit(TextNetwork(range(n), texts, links))
        for links in (star, ring)
    ]
    return made[0], made[1]


def test_popularity_counts_where_a_few_vertices_have_most_links(hubs: tuple[VHE, VHE]) -> None:
    star, ring = hubs
    assert star._calibration.degree_weight > 0
    assert (star.degree_bias_[:6] > star.degree_bias_[6:].max()).all()
    assert ring._calibration.degree_weight == 0
    assert not ring.degree_bias_.any()
    likeliest = [found.id for found in star.suggest_links(100, 3)]
    assert set(likeliest) < set(range(6))


def test_a_score_is_the_cosine_and_the_popularity_of_both_ends(hubs: tuple[VHE, VHE]) -> None:
    star, _ = hubs
    ends = np.array([3, 50, 7]), np.array([90, 2, 8])
    likeness = cosine(star.embedding_[ends[0]], star.embedding_[ends[1]])
    popular = star.degree_bias_[ends[0]] + star.degree_bias_[ends[1]]
    scores = star.score_indices(*ends)
    np.testing.assert_allclose(scores, likeness + popular, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(np.diag(star.score_matrix(*ends)), scores, rtol=1e-4, atol=1e-6)
    found = star.explain(3, 90)
    assert found.score == pytest.approx(scores[0], abs=1e-5)
    chance = star.predict_proba([(3, 90)])[0]
    assert found.probability == pytest.approx(chance, abs=1e-5)


def test_a_popular_model_is_saved_and_a_vertex_that_is_added_is_of_usual_popularity(
    hubs: tuple[VHE, VHE], tmp_path: Path
) -> None:
    star, _ = hubs
    star.save(tmp_path / "m")
    loaded = VHE.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.degree_bias_, star.degree_bias_)
    loaded.add_vertices({"new": "a b c"}, [("new", 0)])
    np.testing.assert_array_equal(loaded.degree_bias_, np.append(star.degree_bias_, 0))


def test_a_link_does_not_make_its_own_ends_popular(config: VHEConfig) -> None:
    """Every linked vertex has one link and half of the vertices none: without the link itself its
    ends are as unknown as the others."""
    texts = [f"word{v % 7} word{v % 5}" for v in range(240)]
    network = TextNetwork(range(240), texts, [(v, v + 60) for v in range(60)])
    model = VHE.from_config(config, random_state=0).fit(network)
    assert model._calibration.degree_weight == 0
