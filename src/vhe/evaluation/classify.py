"""Vertex classification: a linear SVM on embeddings that were trained without labels."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from vhe.errors import VHEError
from vhe.runtime.messages import counted

if TYPE_CHECKING:
    from scipy import sparse

COSTS = (0.01, 0.1, 1.0, 10.0, 100.0)  # candidates for C of the SVM
FOLDS = 5
NEIGHBOURS = 10  # on a map, for its purity


@dataclass(frozen=True)
class ClassScores:
    """Scores of vertex classification on the test vertices.

    Attributes
    ----------
    accuracy, macro_f1 : fractions between 0 and 1; F1 is averaged over the classes of the test
        vertices.
    labelled : fraction of the labelled vertices that the classifier was trained on.
    train, test : numbers of training and test vertices.
    cost : C of the SVM.
    """

    accuracy: float
    macro_f1: float
    labelled: float
    train: int
    test: int
    cost: float


def evaluate_classification(
    embedding: np.ndarray | sparse.csr_array,
    labels: Sequence[Hashable | None] | None,
    share: float,
    seed: int = 0,
) -> ClassScores:
    """Train a linear SVM on some labelled vertices and score it on the others.

    Rows are scaled to unit length; C is chosen by cross-validation on the training vertices.

    Parameters
    ----------
    embedding : (n, d), trained on the whole network without labels.
    labels : one per row; vertices with label None are ignored.
    share : fraction of the labelled vertices to train on, between 0 and 1.
    seed : random seed of the split; see `split_labels`.
    """
    from sklearn.metrics import accuracy_score, f1_score
    from sklearn.preprocessing import normalize

    classes, rows = number_labels(labels)  # (k,), (k,)
    if embedding.shape[0] != len(labels or ()):
        raise VHEError(
            f"the embedding has {embedding.shape[0]} rows, but there are {len(labels or ())} "
            "labels; give one label (or None) per row"
        )
    train, test = split_labels(classes, share, seed)
    unit = normalize(embedding[rows].astype(np.float64))
    cost = choose_cost(unit[train], classes[train], seed)
    predicted = _classify(unit[train], classes[train], unit[test], cost, seed)
    truth = classes[test]
    f1 = f1_score(truth, predicted, labels=np.unique(truth), average="macro", zero_division=0)
    return ClassScores(
        accuracy=float(accuracy_score(truth, predicted)),
        macro_f1=float(f1),
        labelled=float(share),
        train=len(train),
        test=len(test),
        cost=cost,
    )


def map_purity(points: np.ndarray, labels: Sequence[Hashable | None] | None) -> float:
    """Return the mean fraction of the 10 nearest points on a map (n, 2) with the same label."""
    from sklearn.neighbors import NearestNeighbors

    classes, rows = number_labels(labels)
    near = min(NEIGHBOURS, len(rows) - 1)
    found = NearestNeighbors(n_neighbors=near).fit(points[rows]).kneighbors(return_distance=False)
    return float((classes[found] == classes[:, None]).mean())


def number_labels(labels: Sequence[Hashable | None] | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the class index of each labelled vertex, and the index of that vertex."""
    import pandas

    given: Any = labels
    classes, names = pandas.Series(given, dtype=object).factorize()  # -1: no label
    if len(names) < 2:
        raise VHEError(
            f"the network has {counted(len(names), 'distinct label')}, but classification needs "
            "at least two: add a label column (or group.txt)"
        )
    rows = np.flatnonzero(classes >= 0)
    return classes[rows], rows


def split_labels(classes: np.ndarray, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return sorted training and test positions in ``classes``; neither set is empty.

    The split is uniformly random, except that every class has at least one training vertex: where
    it would have none, its first vertex in the random order replaces the last one drawn.
    """
    if not 0 < share < 1:
        raise VHEError(
            f"the labelled fraction is {share}, but must be between 0 and 1, such as 0.3"
        )
    order = np.random.default_rng(seed).permutation(len(classes))
    _, first = np.unique(classes[order], return_index=True)
    if len(first) == len(classes):
        raise VHEError("no two vertices have the same label: classification needs repeated labels")
    # One vertex of each class moves to the front, which changes the training set only where a
    # class would be missing from it.
    order = np.concatenate([order[first], np.delete(order, first)])
    drawn = min(max(round(share * len(classes)), len(first)), len(classes) - 1)
    return np.sort(order[:drawn]), np.sort(order[drawn:])


def choose_cost(rows: np.ndarray | sparse.csr_array, classes: np.ndarray, seed: int) -> float:
    """Return the C of `COSTS` with the best cross-validated accuracy; ties go to the smallest.

    Return 1 where every class has a single vertex and cross-validation is impossible.
    """
    from sklearn.model_selection import StratifiedKFold

    folds = min(FOLDS, int(np.bincount(classes).max()))
    if folds < 2:
        return 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a class has fewer vertices than folds
        splits = StratifiedKFold(folds, shuffle=True, random_state=seed)
        parts = list(splits.split(rows, classes))
    correct = np.zeros(len(COSTS), dtype=np.int64)
    for k, cost in enumerate(COSTS):
        for train, test in parts:
            predicted = _classify(rows[train], classes[train], rows[test], cost, seed)
            correct[k] += np.count_nonzero(predicted == classes[test])
    return COSTS[int(correct.argmax())]


def _classify(
    rows: np.ndarray | sparse.csr_array,
    classes: np.ndarray,
    test_rows: np.ndarray | sparse.csr_array,
    cost: float,
    seed: int,
) -> np.ndarray:
    """Return the classes of ``test_rows`` predicted by an SVM trained on ``rows``."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import LinearSVC

    if len(np.unique(classes)) == 1:  # a fold of a tiny network
        return np.full(test_rows.shape[0], classes[0])
    with warnings.catch_warnings():
        # It affects large C only, which cross-validation rejects.
        warnings.simplefilter("ignore", ConvergenceWarning)
        svm = LinearSVC(C=cost, dual="auto", random_state=seed).fit(rows, classes)
    predicted: np.ndarray = svm.predict(test_rows)
    return predicted
