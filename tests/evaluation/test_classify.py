"""Vertex classification: scores of a split, and no use of test labels."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.metrics import f1_score
from sklearn.svm import LinearSVC

from vhe.data.network import TextNetwork
from vhe.errors import VHEError
from vhe.evaluation import classify
from vhe.evaluation.classify import (
    COSTS,
    choose_cost,
    evaluate_classification,
    map_purity,
    split_labels,
)
from vhe.evaluation.methods import make


@pytest.fixture(scope="module")
def clusters() -> tuple[np.ndarray, list[str | None]]:
    """Three overlapping clusters in five dimensions; every seventh vertex has no label."""
    rng = np.random.default_rng(1)
    topic = np.arange(120) % 3
    rows = rng.normal(size=(120, 5)) + 2.5 * np.eye(3, 5)[topic]
    return rows, [None if k % 7 == 0 else f"topic {t}" for k, t in enumerate(topic)]


def test_clusters_are_classified_and_noise_is_not(clusters) -> None:
    rows, labels = clusters
    assert evaluate_classification(rows, labels, 0.5).accuracy > 0.8
    noise = np.random.default_rng(0).normal(size=rows.shape)
    scores = [evaluate_classification(noise, labels, 0.5, seed).accuracy for seed in range(4)]
    assert np.mean(scores) < 0.5


def test_scores_against_scikit_learn(clusters) -> None:
    rows, labels = clusters
    scores = evaluate_classification(rows, labels, 0.4, seed=2)
    known = [k for k, label in enumerate(labels) if label is not None]
    unit = rows[known] / np.linalg.norm(rows[known], axis=1, keepdims=True)
    truth = np.array([labels[k] for k in known])
    train, test = split_labels(np.unique(truth, return_inverse=True)[1], 0.4, seed=2)
    svm = LinearSVC(C=scores.cost, random_state=2).fit(unit[train], truth[train])
    predicted = svm.predict(unit[test])
    assert scores.accuracy == pytest.approx((predicted == truth[test]).mean())
    assert scores.macro_f1 == pytest.approx(f1_score(truth[test], predicted, average="macro"))
    assert (scores.train, scores.test) == (len(train), len(test))
    assert scores.train == round(0.4 * len(known))


def test_vertices_without_a_label_are_ignored(clusters) -> None:
    rows, labels = clusters
    nonsense = rows.copy()
    nonsense[::7] = np.nan
    assert evaluate_classification(nonsense, labels, 0.5) == evaluate_classification(
        rows, labels, 0.5
    )


def test_sparse_and_dense_embeddings_agree(clusters) -> None:
    rows, labels = clusters
    dense = evaluate_classification(rows, labels, 0.5, seed=1)
    compressed = evaluate_classification(sparse.csr_array(rows), labels, 0.5, seed=1)
    assert compressed.accuracy == pytest.approx(dense.accuracy, abs=0.03)


def test_scores_depend_on_the_seed_only(clusters) -> None:
    rows, labels = clusters
    assert evaluate_classification(rows, labels, 0.3, 5) == evaluate_classification(
        rows, labels, 0.3, 5
    )
    classes = np.arange(50) % 4
    assert not np.array_equal(split_labels(classes, 0.5, 0)[0], split_labels(classes, 0.5, 1)[0])


def test_c_is_chosen_on_training_vertices_only(clusters, monkeypatch) -> None:
    rows, labels = clusters
    calls = []

    def spy(train_rows, train_classes, seed):
        calls.append((len(train_rows), len(train_classes)))
        return choose_cost(train_rows, train_classes, seed)

    monkeypatch.setattr(classify, "choose_cost", spy)
    scores = evaluate_classification(rows, labels, 0.3)
    assert calls == [(scores.train, scores.train)]
    assert scores.cost in COSTS


@given(
    counts=st.lists(st.integers(1, 12), min_size=2, max_size=6).filter(lambda c: max(c) > 1),
    share=st.floats(0.01, 0.99),
    seed=st.integers(0, 1000),
)
@settings(max_examples=60, deadline=None)
def test_every_class_has_a_training_vertex_and_the_sets_are_disjoint(counts, share, seed) -> None:
    classes = np.repeat(np.arange(len(counts)), counts)
    train, test = split_labels(classes, share, seed)
    assert set(classes[train]) == set(range(len(counts)))
    assert sorted([*train, *test]) == list(range(len(classes)))
    assert len(test) >= 1


def test_a_split_with_all_classes_is_uniformly_random() -> None:
    classes = np.arange(200) % 2
    order = np.random.default_rng(4).permutation(200)
    train, _ = split_labels(classes, 0.3, 4)
    assert np.array_equal(train, np.sort(order[:60]))


def test_a_class_of_one_vertex_is_accepted() -> None:
    rows = np.random.default_rng(0).normal(size=(7, 3))
    scores = evaluate_classification(rows, ["a", "a", "a", "a", "a", "a", "b"], 0.5)
    assert 0 <= scores.accuracy <= 1


@pytest.mark.parametrize(
    ("labels", "share", "message"),
    [
        (None, 0.5, "0 distinct labels"),
        (["a"] * 6, 0.5, "1 distinct label,"),
        (list("abcdef"), 0.5, "no two vertices"),
        (list("aabbcc"), 1.0, "between 0 and 1"),
        (list("aabb"), 0.5, "6 rows, but there are 4 labels"),
    ],
)
def test_invalid_labels_and_shares_are_refused(labels, share, message) -> None:
    with pytest.raises(VHEError, match=message):
        evaluate_classification(np.ones((6, 2)), labels, share)


def test_topics_are_predicted_from_diffused_text(network: TextNetwork) -> None:
    rows = make("diffused-text", 0).fit(network).embedding_
    assert evaluate_classification(rows, network.labels, 0.3).accuracy > 0.8


def test_purity_is_the_fraction_of_neighbours_with_the_same_label() -> None:
    points = np.array([[0.0, 0], [0, 1], [9, 0], [9, 1], [50, 50]])
    assert map_purity(points, ["a", "a", "b", "b", None]) == pytest.approx(1 / 3)
    many = np.concatenate([np.random.default_rng(0).normal(size=(20, 2)) + 99 * k for k in (0, 1)])
    assert map_purity(many, ["a"] * 20 + ["b"] * 20) == 1
    assert map_purity(many, ["a", "b"] * 20) < 0.7
