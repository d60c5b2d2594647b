"""Platt's fit and calibration errors against slow computations; separable and constant data."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from vhe.errors import VHEError
from vhe.predict.calibration import (
    brier,
    fit_platt,
    pooled_curve,
    reliability_curve,
    sigmoid,
)


def platt_loss(weights, scores, labels) -> float:
    linked, unlinked = np.sum(labels == 1), np.sum(labels == 0)
    target = np.where(labels == 1, (linked + 1) / (linked + 2), 1 / (unlinked + 2))
    logits = weights[0] * scores + weights[1]
    return np.sum(np.logaddexp(0, -logits) * target + np.logaddexp(0, logits) * (1 - target))


def test_the_fit_recovers_the_parameters_of_the_data():
    rng = np.random.default_rng(0)
    scores = rng.uniform(-1, 1, 200_000)
    labels = rng.random(len(scores)) < sigmoid(6 * scores - 2)
    assert fit_platt(scores, labels) == pytest.approx((6, -2), abs=0.1)


def test_the_fit_is_the_minimum_of_the_loss():
    rng = np.random.default_rng(1)
    scores = rng.normal(size=80)
    labels = (scores + rng.normal(size=80) > 0.3).astype(int)
    found = minimize(platt_loss, np.zeros(2), args=(scores, labels), tol=1e-12).x
    assert fit_platt(scores, labels) == pytest.approx(tuple(found), abs=1e-4)


@pytest.mark.parametrize("size", [2, 20, 2000])
def test_separable_scores_have_a_finite_increasing_fit(size):
    labels = np.repeat([0, 1], size // 2)
    scores = np.linspace(-1, 1, size)
    a, b = fit_platt(scores, labels)
    assert np.isfinite([a, b]).all()
    assert a > 0
    assert reliability_curve(sigmoid(a * scores + b), labels).error < 0.35


@settings(deadline=None, max_examples=200)
@given(
    st.lists(
        st.tuples(st.floats(-1e6, 1e6), st.booleans()),
        min_size=1,
        max_size=30,
    )
)
def test_the_fit_is_finite_and_no_worse_than_a_constant(data):
    scores, labels = np.array([s for s, _ in data]), np.array([y for _, y in data])
    a, b = fit_platt(scores, labels)
    assert np.isfinite([a, b]).all()
    base = np.array([0.0, 0.0])
    assert platt_loss((a, b), scores, labels) <= platt_loss(base, scores, labels) + 1e-6


def test_the_scale_of_the_scores_does_not_matter():
    rng = np.random.default_rng(2)
    scores = rng.normal(size=300)
    labels = scores + rng.normal(size=300) > 0
    a, b = fit_platt(scores, labels)
    scaled = fit_platt(1e-7 * scores + 3e-6, labels)
    assert scaled[0] == pytest.approx(1e7 * a, rel=1e-4)
    assert scaled[1] == pytest.approx(b - 30 * a, rel=1e-4)


def test_constant_scores_have_the_base_rate():
    a, b = fit_platt(np.full(300, 0.1), np.arange(300) < 100)
    assert a == 0
    assert sigmoid(np.array(b)) == pytest.approx(1 / 3, abs=0.01)


def test_a_single_class_has_a_probability_near_its_label():
    scores = np.linspace(0, 1, 50)
    for label in (0, 1):
        a, b = fit_platt(scores, np.full(50, label))
        assert np.abs(sigmoid(a * scores + b) - label).max() < 0.05


def test_the_brier_score_is_the_mean_squared_error():
    assert brier(np.array([0.5, 1.0, 0.0]), np.array([1, 1, 1])) == pytest.approx(1.25 / 3)


def test_the_calibration_error_against_a_loop():
    rng = np.random.default_rng(3)
    probabilities = np.append(rng.random(500), [0.0, 1.0, 0.3])
    labels = (rng.random(503) < probabilities**2).astype(int)
    expected = 0.0
    for low in np.arange(10) / 10:
        high = low + 0.1
        held = [
            k
            for k, p in enumerate(probabilities)
            if low <= p < high - 1e-12 or (p == 1 and low == 0.9)
        ]
        gap = abs(np.mean(probabilities[held]) - np.mean(labels[held]))
        expected += gap * len(held) / len(labels)
    assert reliability_curve(probabilities, labels).error == pytest.approx(expected)


def test_calibrated_probabilities_have_a_small_error_and_others_do_not():
    rng = np.random.default_rng(4)
    truth = rng.random(50_000)
    labels = rng.random(50_000) < truth
    assert reliability_curve(truth, labels).error < 0.01
    assert reliability_curve(truth**3, labels).error > 0.1


def test_the_reliability_curve_omits_empty_bins():
    curve = reliability_curve(np.array([0.05, 0.15, 0.15, 1.0]), np.array([0, 1, 0, 1]))
    assert curve.probability == pytest.approx([0.05, 0.15, 1.0])
    assert curve.frequency == pytest.approx([0, 0.5, 1])
    assert curve.count.tolist() == [1, 2, 1]


def test_an_integer_weight_counts_a_pair_several_times():
    rng = np.random.default_rng(5)
    probabilities, labels = rng.random(200), rng.integers(2, size=200)
    weights = rng.integers(1, 4, size=200)
    twice = np.repeat(probabilities, weights), np.repeat(labels, weights)
    assert brier(probabilities, labels, weights) == pytest.approx(brier(*twice))
    assert reliability_curve(probabilities, labels, weights=weights).error == pytest.approx(
        reliability_curve(*twice).error
    )


def test_pooled_curves_of_parts_are_the_curve_of_the_whole():
    rng = np.random.default_rng(6)
    probabilities, labels = rng.random(300), rng.integers(2, size=300)
    parts = [reliability_curve(probabilities[k::3], labels[k::3]) for k in range(3)]
    pooled, whole = pooled_curve(parts), reliability_curve(probabilities, labels)
    assert pooled.probability == pytest.approx(whole.probability)
    assert pooled.frequency == pytest.approx(whole.frequency)
    assert pooled.count.tolist() == whole.count.tolist()


@pytest.mark.parametrize(
    ("values", "labels", "words"),
    [
        ([0.1, 0.2], [1], "2 scores and 1 labels"),
        ([], [], "0 scores"),
        ([np.nan], [1], "not finite"),
        ([0.5], [2], "neither 0 nor 1"),
        ([1.5], [1], r"outside \[0, 1\]"),
    ],
)
def test_invalid_data_are_refused(values, labels, words):
    with pytest.raises(VHEError, match=words):
        brier(np.array(values), np.array(labels))
