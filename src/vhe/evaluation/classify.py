"""How much an embedding says about labels it has never seen: a linear SVM on its rows."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from vhe.errors import VHEError
from vhe.predict.scoring import unit_rows

if TYPE_CHECKING:
    from scipy import sparse

COSTS = (0.01, 0.1, 1.0, 10.0, 100.0)  # C of the SVM, of which cross-validation chooses
FOLDS = 5
NEAR = 10  # points on a map that stand around a vertex


@dataclass(frozen=True)
class ClassScores:
    """Scores of vertex classification on the vertices whose label was hidden.

    Attributes
    ----------
    accuracy, macro_f1 : fractions between 0 and 1; F1 is averaged over the classes that the
        hidden vertices have.
    labelled : share of the vertices with a label that the classifier was shown.
    shown, hidden : number of vertices on each side.
    cost : C of the SVM.
    """

    accuracy: float
    macro_f1: float
    labelled: float
    shown: int
    hidden: int
    cost: float

    def as_dict(self) -> dict[str, Any]:
        """The scores by name, ready for JSON."""
        return asdict(self)


def evaluate_classification(
    embedding: np.ndarray | sparse.csr_array,
    labels: Sequence[Hashable | None] | None,
    share: float,
    seed: int = 0,
) -> ClassScores:
    """Show a linear SVM the labels of some vertices, and ask it for those of the others.

    Rows are scaled to unit length; C is chosen by cross-validation among the shown vertices.

    Parameters
    ----------
    embedding : (n, d), learned from the whole network without its labels.
    labels : n, None for a vertex that has none and is left out.
    share : of the vertices with a label that are shown, between 0 and 1.
    seed : of the split; see `split_labels`.
    """
    from sklearn.metrics import accuracy_score, f1_score

    classes, rows = number_labels(labels)  # (k,), (k,)
    if embedding.shape[0] != len(labels or ()):
        raise VHEError(
            f"The embedding has {embedding.shape[0]} rows for {len(labels or ())} labels; "
            "give a label (or None) for each row."
        )
    shown, hidden = split_labels(classes, share, seed)
    unit = _unit(embedding[rows])
    cost = choose_cost(unit[shown], classes[shown], seed)
    answer = _classify(unit[shown], classes[shown], unit[hidden], cost, seed)
    truth = classes[hidden]
    f1 = f1_score(truth, answer, labels=np.unique(truth), average="macro", zero_division=0)
    return ClassScores(
        accuracy=float(accuracy_score(truth, answer)),
        macro_f1=float(f1),
        labelled=float(share),
        shown=len(shown),
        hidden=len(hidden),
        cost=cost,
    )


def map_purity(points: np.ndarray, labels: Sequence[Hashable | None] | None) -> float:
    """How well a map (n, 2) keeps the labels apart: of the 10 nearest points, the share that have
    the same label, as a mean over the vertices that have one."""
    from sklearn.neighbors import NearestNeighbors

    classes, rows = number_labels(labels)
    near = min(NEAR, len(rows) - 1)
    found = NearestNeighbors(n_neighbors=near).fit(points[rows]).kneighbors(return_distance=False)
    return float((classes[found] == classes[:, None]).mean())


def number_labels(labels: Sequence[Hashable | None] | None) -> tuple[np.ndarray, np.ndarray]:
    """The class (a number) of each vertex that has a label, and the number of that vertex."""
    given = () if labels is None else labels
    number: dict[Hashable, int] = {}
    pairs = [
        (number.setdefault(label, len(number)), k)
        for k, label in enumerate(given)
        if label is not None
    ]
    if len(number) < 2:
        raise VHEError(
            f"The vertices have {len(number)} different label(s); classification needs at least "
            "two: give a label column (or group.txt) beside the texts."
        )
    classes, rows = np.array(pairs, dtype=np.int64).T
    return classes, rows


def split_labels(classes: np.ndarray, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """PackedTokens in ``classes`` that are shown and that are hidden, sorted; at least one is hidden.

    The split is uniformly random unless a class would be hidden altogether: then the first vertex
    of that class in the random order takes the place of the last one that was drawn.
    """
    if not 0 < share < 1:
        raise VHEError(f"The labelled share is {share}; it must lie between 0 and 1, such as 0.3.")
    order = np.random.default_rng(seed).permutation(len(classes))
    _, first = np.unique(classes[order], return_index=True)
    if len(first) == len(classes):
        raise VHEError("No two vertices have the same label, so that none can be foretold.")
    # One of each class goes to the front. Where all of them are among those drawn anyway, the
    # drawn set is the same as without.
    order = np.concatenate([order[first], np.delete(order, first)])
    drawn = min(max(round(share * len(classes)), len(first)), len(classes) - 1)
    return np.sort(order[:drawn]), np.sort(order[drawn:])


def choose_cost(rows: np.ndarray | sparse.csr_array, classes: np.ndarray, seed: int) -> float:
    """The C of `COSTS` with the best cross-validated accuracy, the least where several are.

    Where no class has two vertices to divide, 1.
    """
    from sklearn.model_selection import StratifiedKFold

    folds = min(FOLDS, int(np.bincount(classes).max()))
    if folds < 2:
        return 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a class has fewer vertices than folds
        divided = StratifiedKFold(folds, shuffle=True, random_state=seed).split(rows, classes)
        parts = list(divided)
    right = np.zeros(len(COSTS), dtype=np.int64)
    for k, cost in enumerate(COSTS):
        for fit, ask in parts:
            answer = _classify(rows[fit], classes[fit], rows[ask], cost, seed)
            right[k] += np.count_nonzero(answer == classes[ask])
    return COSTS[int(right.argmax())]


def _classify(
    rows: np.ndarray | sparse.csr_array,
    classes: np.ndarray,
    asked: np.ndarray | sparse.csr_array,
    cost: float,
    seed: int,
) -> np.ndarray:
    """The classes of the rows ``asked``, from an SVM that knows ``classes`` of ``rows``."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import LinearSVC

    if len(np.unique(classes)) == 1:  # a fold of a tiny network
        return np.full(asked.shape[0], classes[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a C that is too large loses anyway
        svm = LinearSVC(C=cost, dual="auto", random_state=seed).fit(rows, classes)
    answer: np.ndarray = svm.predict(asked)
    return answer


def _unit(rows: np.ndarray | sparse.csr_array) -> np.ndarray | sparse.csr_array:
    if isinstance(rows, np.ndarray):
        return unit_rows(rows.astype(np.float64))
    from sklearn.preprocessing import normalize

    scaled: sparse.csr_array = normalize(rows)
    return scaled
