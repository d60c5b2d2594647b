"""The features of pairs against naive computations: loops, networkx, dense linear algebra."""

from collections.abc import Callable, Iterator

import networkx as nx
import numpy as np
import pytest
from scipy import sparse

from vhe.predict import pair_features
from vhe.predict.pair_features import (
    GROUPS,
    KNEE,
    VertexRows,
    crossed,
    fold_in,
    neighbour_weights,
    paired,
    structure_factors,
    vertex_rows,
)

ALL = ("embedding", *(name for names in GROUPS.values() for name in names))
N = 30
SOURCES, TARGETS = (side.ravel() for side in np.indices((N, N)))


def random_links(n: int, m: int, seed: int = 0) -> np.ndarray:
    """Distinct links; the last three vertices have none."""
    i, j = np.triu_indices(n - 3, 1)
    chosen = np.random.default_rng(seed).choice(len(i), m, replace=False)
    return np.column_stack([i, j])[chosen]


LINKS = random_links(N, 50)


def degrees(links: np.ndarray, n: int) -> list[int]:
    return [sum(v in link for link in links.tolist()) for v in range(n)]


@pytest.fixture(scope="module")
def rows() -> VertexRows:
    rng = np.random.default_rng(1)
    scales = {name: rng.normal(size=(N, 4)) for name in ("embedding", "weak links", "strong links")}
    scales["embedding"][5] = 0
    counts = rng.poisson(0.3, size=(N, 40)) * rng.uniform(0.1, 3, size=(N, 40))
    counts[7] = 0
    length = np.linalg.norm(counts, axis=1, keepdims=True)
    words = sparse.csr_array((counts / np.where(length > 0, length, 1)).astype(np.float32))
    return vertex_rows(scales, words, LINKS, ALL, seed=0)


def values(rows: VertexRows, name: str) -> np.ndarray:
    """A feature of all pairs: (n, n)."""
    ((found, value),) = paired(rows.take(SOURCES), rows.take(TARGETS), (name,))
    assert found == name
    assert value.dtype == np.float64
    return value.reshape(N, N)


@pytest.mark.parametrize("name", ["embedding", "weak links", "strong links"])
def test_a_scale_is_the_asinh_of_the_cosine(rows: VertexRows, name: str) -> None:
    found = values(rows, name)
    for i in range(N):
        for j in range(N):
            a, b = rows.scales[name][i].astype(float), rows.scales[name][j].astype(float)
            length = np.linalg.norm(a) * np.linalg.norm(b)
            cosine = a @ b / length if length else 0.0
            assert found[i, j] == pytest.approx(np.arcsinh(cosine / KNEE), abs=1e-5)
    if name == "embedding":
        assert not found[5].any()  # a row of zeros


def test_the_rows_of_a_scale_have_unit_length() -> None:
    given = np.array([[3.0, 4.0], [0.0, 0.0], [0.0, -2.0]])
    found = vertex_rows({"embedding": given}, sparse.csr_array((3, 1)), LINKS[:0], (), 0)
    np.testing.assert_allclose(found.scales["embedding"], [[0.6, 0.8], [0, 0], [0, -1]], rtol=1e-6)
    assert found.structure.shape == (3, 0)  # that no name asks for


def test_words_that_both_texts_have(rows: VertexRows) -> None:
    found, dense = values(rows, "words"), rows.words.toarray().astype(float)
    for i in range(N):
        for j in range(N):
            both = [w for w in range(40) if dense[i, w] > 0 and dense[j, w] > 0]
            cosine = sum(dense[i, w] * dense[j, w] for w in both)
            assert found[i, j] == pytest.approx(np.log(1 + 100 * cosine), abs=1e-5)
            assert (found[i, j] > 0) == bool(both)


def test_degrees_and_isolated_vertices(rows: VertexRows) -> None:
    degree = degrees(LINKS, N)
    found, isolated = values(rows, "degree"), values(rows, "isolated")
    assert degree[-1] == 0 < max(degree)
    for i in range(N):
        for j in range(N):
            assert found[i, j] == pytest.approx(np.log((1 + degree[i]) * (1 + degree[j])))
            assert isolated[i, j] == float(0 in (degree[i], degree[j]))


def test_common_neighbours_against_networkx(
    rows: VertexRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of networkx with 1 / log(1 + degree) for 1 / log(degree), which is infinite for degree 1."""
    graph = nx.Graph()
    graph.add_nodes_from(range(N))
    graph.add_edges_from(LINKS.tolist())
    found = values(rows, "neighbours")
    shifted = {(i, j): 0.0 for i in range(N) for j in range(N)}
    for i, j in shifted:
        for k in set(graph[i]) & set(graph[j]):
            shifted[i, j] += 1 / np.log(1 + graph.degree(k))
        assert found[i, j] == pytest.approx(np.log(1 + shifted[i, j]), abs=1e-5)
    assert found.max() > 0.5
    # networkx itself, with its weights
    own = np.array([1 / np.log(d) if d > 1 else 0.0 for _, d in graph.degree()], dtype=np.float32)
    monkeypatch.setattr(pair_features, "neighbour_weights", lambda degree: own)
    none = {"embedding": np.zeros((N, 1))}
    same = values(vertex_rows(none, rows.words, LINKS, (), 0), "neighbours")
    pairs = [(i, j) for i in range(N) for j in range(i)]
    for i, j, index in nx.adamic_adar_index(graph, pairs):
        assert same[i, j] == pytest.approx(np.log(1 + index), abs=1e-5)


def test_the_weights_of_common_neighbours_are_finite() -> None:
    weights = neighbour_weights(np.array([0, 1, 2, 1000]))
    np.testing.assert_allclose(weights, 1 / np.log([2, 2, 3, 1001]), rtol=1e-6)


# --- structure


def dense_factors(links: np.ndarray, n: int, rank: int) -> np.ndarray:
    """The best approximation of rank ``rank`` of the scaled adjacency matrix, scaled back."""
    adjacency = np.zeros((n, n))
    for i, j in links.tolist():
        adjacency[i, j] = adjacency[j, i] = 1
    root = np.sqrt(1 + adjacency.sum(axis=1))
    value, vector = np.linalg.eigh(adjacency / root / root[:, None])
    largest = np.argsort(-np.abs(value))[:rank]
    low = (vector[:, largest] * value[largest]) @ vector[:, largest].T
    return low * root * root[:, None]


def ring(n: int) -> np.ndarray:
    return np.array([(k, (k + 1) % n) for k in range(n)])


def bipartite(n: int, m: int) -> np.ndarray:
    drawn = np.random.default_rng(3).integers(n // 2, size=(m, 2))
    drawn[:, 1] += n // 2
    return np.unique(drawn, axis=0)


@pytest.mark.parametrize(
    "links",
    [LINKS, ring(N), bipartite(N, 60), np.array([[0, 1]]), np.array([(0, k) for k in range(1, N)])],
    ids=["random", "ring", "bipartite", "one link", "star"],
)
def test_structure_factors_against_an_eigendecomposition(links: np.ndarray) -> None:
    """Eigenvalues of a bipartite network come in pairs λ and -λ."""
    factors, signs = structure_factors(links, N, seed=0)
    assert factors.shape == (N, N - 1)
    assert factors.dtype == signs.dtype == np.float32
    found = (factors * signs) @ factors.T
    np.testing.assert_allclose(found, dense_factors(links, N, N - 1), atol=0.05)


def blocks(n: int, count: int) -> np.ndarray:
    """Links inside of groups, and a few others."""
    rng = np.random.default_rng(5)
    group = np.arange(n) % count
    i, j = np.triu_indices(n, 1)
    likely = np.where(group[i] == group[j], 0.6, 0.01)
    return np.column_stack([i, j])[rng.random(len(i)) < likely]


def test_a_low_rank_is_nearly_the_best_approximation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_features, "STRUCTURE_DIM", 6)
    links = blocks(120, 6)
    factors, signs = structure_factors(links, 120, seed=0)
    assert factors.shape == (120, 6)
    root = np.sqrt(1 + np.array(degrees(links, 120)))
    scaled = dense_factors(links, 120, 120) / root / root[:, None]
    errors = [
        np.linalg.norm(scaled - low / root / root[:, None])
        for low in ((factors * signs) @ factors.T, dense_factors(links, 120, 6))
    ]
    assert errors[0] < 1.02 * errors[1]
    again, _ = structure_factors(links, 120, seed=0)
    np.testing.assert_array_equal(factors, again)


def test_the_structure_of_pairs(rows: VertexRows) -> None:
    expected = np.arcsinh(dense_factors(LINKS, N, N - 1) / KNEE)
    np.testing.assert_allclose(values(rows, "structure"), expected, atol=1e-3)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_structure_factors_of_tiny_networks(n: int) -> None:
    for links in (np.zeros((0, 2), dtype=np.int64), np.array([[0, 1]])[: n - 1]):
        factors, signs = structure_factors(links, n, seed=0)
        assert factors.shape == (n, len(signs))
        assert np.isfinite(factors).all()
        new = fold_in(sparse.csr_array(np.ones((2, n), np.float32)), factors, signs)
        assert new.shape == (2, len(signs))
        assert np.isfinite(new).all()


def test_new_factors_are_the_least_squares_fit_to_the_links(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pair_features, "STRUCTURE_DIM", 6)
    links = blocks(120, 6)
    factors, signs = structure_factors(links, 120, seed=0)
    new = np.zeros((3, 120), dtype=np.float32)
    new[0, [0, 6, 12, 18, 24]] = 1  # of the first group
    new[1, [3, 9]] = 1
    found = fold_in(sparse.csr_array(new), factors, signs)
    expected = [np.linalg.lstsq(factors * signs, row, rcond=None)[0] for row in new]
    np.testing.assert_allclose(found, expected, rtol=0.02, atol=0.02)
    assert not found[2].any()  # without links
    scores = (found[0] * signs) @ factors.T
    group = np.arange(120) % 6
    assert scores[group == 0].min() > scores[group != 0].max()


# --- pairs and all pairs


@pytest.mark.parametrize("name", ALL)
def test_paired_is_the_diagonal_of_crossed(rows: VertexRows, name: str) -> None:
    rng = np.random.default_rng(2)
    a, b = rows.take(rng.integers(N, size=25)), rows.take(rng.integers(N, size=25))
    (_, pairs), (_, matrix) = next(paired(a, b, (name,))), next(crossed(a, b, (name,)))
    assert pairs.shape == (25,)
    assert matrix.shape == (25, 25)
    np.testing.assert_allclose(np.diag(matrix), pairs, rtol=1e-5, atol=1e-5)
    (_, swapped) = next(paired(b, a, (name,)))
    np.testing.assert_allclose(swapped, pairs, rtol=1e-6, atol=1e-6)
    (_, other) = next(crossed(a.take(slice(3, 5)), b, (name,)))
    np.testing.assert_allclose(other, matrix[3:5], rtol=1e-5, atol=1e-6)


Features = Callable[[VertexRows, VertexRows, tuple[str, ...]], Iterator[tuple[str, np.ndarray]]]


@pytest.mark.parametrize("features", [paired, crossed])
def test_features_are_in_the_order_of_the_names(rows: VertexRows, features: Features) -> None:
    names = tuple(reversed(ALL))
    assert tuple(name for name, _ in features(rows, rows, names)) == names
    assert list(features(rows, rows, ())) == []
    nobody = rows.take(np.zeros(0, dtype=np.int64))
    assert len(nobody) == 0
    for _, value in features(nobody, nobody, ALL):
        assert value.size == 0


def test_rows_of_some_vertices(rows: VertexRows) -> None:
    chosen = np.array([4, 4, 29])
    some = rows.take(chosen)
    assert len(some) == 3
    np.testing.assert_array_equal(some.degree, rows.degree[chosen])
    np.testing.assert_array_equal(some.structure, rows.structure[chosen])
    np.testing.assert_array_equal(some.words.toarray(), rows.words.toarray()[chosen])
    np.testing.assert_array_equal(some.adjacency.toarray(), rows.adjacency.toarray()[chosen])
    for name in some.scales:
        np.testing.assert_array_equal(some.scales[name], rows.scales[name][chosen])


def test_structure_factors_of_large_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    links = np.unique(np.sort(rng.integers(400, size=(1500, 2)), axis=1), axis=0)
    links = links[links[:, 0] != links[:, 1]]

    def approximation() -> np.ndarray:
        factors, signs = structure_factors(links, 400, seed=0)
        return (factors * signs) @ factors.T

    exact = pair_features.adjacency_matrix(links, 400).toarray()
    usual = np.linalg.norm(approximation() - exact)
    monkeypatch.setattr("vhe.predict.pair_features.IN_PLACE", 0)
    assert np.linalg.norm(approximation() - exact) == pytest.approx(usual, rel=0.03)
