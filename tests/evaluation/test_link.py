"""Link prediction scores against direct computations, with many ties; future links."""

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score

import vhe.evaluation.link as link
from vhe.data.network import TextNetwork
from vhe.data.splits import LinkTest, split_edges, split_vertices
from vhe.errors import VHEError
from vhe.evaluation.link import (
    balanced_average_precision,
    evaluate,
    exact_auc,
    future_links,
    hits,
    mean_reciprocal_rank,
    pooled_auc,
)


class Table:
    """A method with fixed scores."""

    def __init__(self, scores: np.ndarray) -> None:
        self.scores = scores
        self.asked: list[np.ndarray] = []  # the sources of each matrix
        self.largest = 0

    def score_indices(self, sources, targets):
        return self.scores[sources, targets]

    def score_matrix(self, sources, targets):
        self.asked.append(sources)
        self.largest = max(self.largest, len(sources) * len(targets))
        return self.scores[np.ix_(sources, targets)]


def network_and_table(seed: int, vertices: int = 30, lines: int = 90, values: int = 5):
    rng = np.random.default_rng(seed)
    edges = rng.integers(vertices, size=(lines, 2))
    network = TextNetwork(range(vertices), ["a text"] * vertices, edges)
    return network, Table(rng.integers(values, size=(vertices, vertices)).astype(float))


def point(edge: float, negative: float) -> float:
    return 1.0 if edge > negative else 0.5 if edge == negative else 0.0


@pytest.mark.parametrize("values", [2, 5, 10**9])
def test_the_auc_of_lines_is_the_expectation_over_negatives(values):
    network, table = network_and_table(1, values=values)
    _, test = split_edges(network, 0.6, protocol="lines")
    among = sorted({v for pair in test.pairs.tolist() for v in pair})
    each = [
        np.mean([point(table.scores[i, j], table.scores[i, v]) for v in among if v != j])
        for i, j in test.pairs.tolist()
    ]
    assert evaluate(table, test).auc == pytest.approx(np.mean(each), abs=1e-12)


def test_the_auc_of_lines_has_bounded_memory_and_scores_each_source_once_per_chunk(monkeypatch):
    network, table = network_and_table(2, vertices=40, lines=400)
    _, test = split_edges(network, 0.3, protocol="lines")
    whole = exact_auc(table, test)
    assert len(table.asked) == 1
    assert len(table.asked[0]) == len(np.unique(test.pairs[:, 0]))
    table.asked.clear()
    monkeypatch.setattr(link, "SCORES_AT_ONCE", 300)
    table.largest = 0
    assert exact_auc(table, test) == pytest.approx(whole, abs=1e-12)
    assert table.largest <= 300
    assert len(table.asked) > 5
    assert all(len(np.unique(sources)) == len(sources) for sources in table.asked)


@pytest.mark.parametrize("protocol", ["clean", "lines"])
@pytest.mark.parametrize("values", [2, 5, 10**9])
def test_every_score_against_a_direct_computation(protocol, values):
    network, table = network_and_table(3, values=values)
    _, test = split_edges(network, 0.5, seed=1, protocol=protocol)
    scores = evaluate(table, test)
    positives = [table.scores[i, j] for i, j in test.pairs.tolist()]
    negatives = [[table.scores[i, j] for i, j in row] for row in test.negatives().tolist()]
    labels = [1] * len(positives) + [0] * (100 * len(positives))
    pooled = positives + [score for row in negatives for score in row]
    weights = [1] * len(positives) + [0.01] * (100 * len(positives))
    if protocol == "clean":
        assert scores.auc == pytest.approx(roc_auc_score(labels, pooled), abs=1e-12)
    expected = average_precision_score(labels, pooled, sample_weight=weights)
    assert scores.ap == pytest.approx(expected, abs=1e-9)
    reciprocal, hit = [], []
    for edge, row in zip(positives, negatives, strict=True):
        above, ties = sum(n > edge for n in row), sum(n == edge for n in row)
        ranks = [above + 1 + k for k in range(ties + 1)]  # equally likely
        reciprocal.append(1 / np.mean(ranks))
        hit.append(np.mean([rank <= 10 for rank in ranks]))
    assert scores.mrr == pytest.approx(np.mean(reciprocal), abs=1e-12)
    assert scores.hits10 == pytest.approx(np.mean(hit), abs=1e-12)
    assert all(type(value) is float for value in (scores.auc, scores.ap, scores.mrr, scores.hits10))
    assert scores.edges == len(test)
    assert scores.protocol == protocol


numbers = st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=12)


@settings(deadline=None)
@given(numbers, numbers)
def test_pooled_scores_agree_with_scikit_learn(positives, negatives):
    labels = [1] * len(positives) + [0] * len(negatives)
    weights = [1 / len(positives)] * len(positives) + [1 / len(negatives)] * len(negatives)
    p, n = np.array(positives), np.array(negatives)
    assert pooled_auc(p, n) == pytest.approx(roc_auc_score(labels, positives + negatives))
    expected = average_precision_score(labels, positives + negatives, sample_weight=weights)
    assert balanced_average_precision(p, n) == pytest.approx(expected)


def test_extreme_scores():
    low, high = np.zeros(4), np.ones(4)
    assert pooled_auc(high, low) == balanced_average_precision(high, low) == 1
    assert pooled_auc(low, high) == 0
    assert pooled_auc(low, low) == balanced_average_precision(low, low) == 0.5
    best, worst = np.full((4, 100), -1.0), np.full((4, 100), 2.0)
    assert mean_reciprocal_rank(high, best) == hits(high, best, 10) == 1
    assert mean_reciprocal_rank(high, worst) == pytest.approx(1 / 101)
    assert hits(high, worst, 10) == 0
    assert hits(high, np.ones((4, 100)), 10) == pytest.approx(10 / 101)


def test_an_oracle_is_perfect_only_if_negatives_are_checked():
    network, _ = network_and_table(4)
    linked = np.zeros((30, 30))
    linked[network.edges[:, 0], network.edges[:, 1]] = 1
    oracle = Table(np.maximum(linked, linked.T))
    clean = evaluate(oracle, split_edges(network, 0.5)[1])
    assert (clean.auc, clean.ap, clean.mrr, clean.hits10) == (1, 1, 1, 1)
    assert evaluate(oracle, split_edges(network, 0.5, protocol="lines")[1]).auc < 1


def test_unseen_vertices_are_scored_by_the_indices_of_the_test():
    network, _ = network_and_table(5)
    _, test = split_vertices(network, 0.5)
    linked = np.zeros((30, 30))
    linked[test.network.edges[:, 0], test.network.edges[:, 1]] = 1
    assert evaluate(Table(np.maximum(linked, linked.T)), test).auc == 1


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_scores_that_are_not_finite_are_refused(value):
    network, _ = network_and_table(6)
    _, test = split_edges(network, 0.5)
    with pytest.raises(VHEError, match="not finite"):
        evaluate(Table(np.full((30, 30), value)), test)


def test_scores_are_json_serialisable():
    network, table = network_and_table(7)
    scores = evaluate(table, split_edges(network, 0.5)[1])
    assert json.loads(json.dumps(scores.as_dict())) == {
        "auc": scores.auc,
        "ap": scores.ap,
        "mrr": scores.mrr,
        "hits10": scores.hits10,
        "edges": scores.edges,
        "protocol": "clean",
    }


class Fitted(Table):
    """A method with fixed scores and a network with string ids."""

    def __init__(self, scores: np.ndarray, links: np.ndarray) -> None:
        super().__init__(scores)
        ids = [f"v{k}" for k in range(len(scores))]
        self.network_ = TextNetwork(ids, ["a text"] * len(scores), links, name="net")


@pytest.fixture
def fitted() -> Fitted:
    """20 vertices in a ring; scores are random."""
    ring = np.column_stack([np.arange(20), (np.arange(20) + 1) % 20])
    return Fitted(np.random.default_rng(0).random((20, 20)), ring)


FUTURE = [("v0", "v5"), ("v7", "v2"), ("v3", "v9")]


@pytest.mark.parametrize("form", ["list", "iterator", "table"])
def test_future_links_are_scored_like_held_out_ones(form: str, fitted: Fitted):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame([(b, a) for a, b in FUTURE], columns=["target", "source"])
    given = {"list": FUTURE, "iterator": iter(FUTURE), "table": table.assign(note="x")}[form]
    scores = evaluate(fitted, given)
    pairs = np.array([(0, 5), (2, 7), (3, 9)])
    whole = fitted.network_.with_edges(np.concatenate([fitted.network_.links, pairs]))
    test = LinkTest(fitted.network_, whole, pairs, "clean", 20 / 23, 0)
    assert scores == evaluate(fitted, test)
    assert scores.edges == 3


def test_negatives_of_future_links_are_links_of_neither_kind(fitted: Fitted):
    test = future_links(fitted, FUTURE)
    linked = {frozenset(link) for link in test.network.links.tolist()}
    assert len(linked) == 23
    assert not linked & {frozenset(pair) for row in test.negatives().tolist() for pair in row}
    assert len(test.train.links) == 20


def test_known_links_are_excluded_with_a_warning(fitted: Fitted, logs: Any):
    given = [*FUTURE, ("v1", "v0"), ("v4", "v5"), ("v5", "v0"), ("v6", "v6")]
    with logs("excluded 2 of 5 links that net already has"):
        assert evaluate(fitted, given) == evaluate(fitted, FUTURE)
    with (
        logs("excluded 1 of 1 link"),
        pytest.raises(VHEError, match="no held-out edges"),
    ):
        evaluate(fitted, [("v1", "v0")])


@pytest.mark.parametrize(
    ("links", "message"),
    [
        ([("v0", "v5"), ("v0", "v99")], r"link 1: unknown vertex id 'v99'"),
        ([("v0", 5)], "link 0: unknown vertex id 5"),
        (["v0"], "pairs of ids"),
        ([("v0",)], "pairs of ids"),
        (7, "pairs of ids"),
        ([], "no held-out edges"),
    ],
)
def test_invalid_future_links_are_refused(links, message: str, fitted: Fitted):
    with pytest.raises(VHEError, match=message):
        evaluate(fitted, links)


def test_a_table_without_the_columns_and_a_method_without_a_network_are_refused(fitted: Fitted):
    pandas = pytest.importorskip("pandas")
    with pytest.raises(VHEError, match="no column 'target'"):
        evaluate(fitted, pandas.DataFrame({"source": ["v0"], "other": ["v1"]}))
    with pytest.raises(VHEError, match="Table has no network_"):
        evaluate(Table(fitted.scores), FUTURE)


def test_scoring_imports_no_heavy_packages():
    program = (
        "import sys, vhe.data.splits, vhe.evaluation.link, vhe.predict.calibration, "
        "vhe.predict.scoring; "
        "print({'torch', 'sklearn', 'pandas', 'scipy', 'networkx'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert done.stdout.strip() == "set()"
