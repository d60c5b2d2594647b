"""Contributions of words add up to the text part, text and structure to the cosine."""

import numpy as np
import pytest

from vhe.estimators import VHE
from vhe.graph.attribution import Attribution, CodeParts, attribute
from vhe.text.codes import TextCodes
from vhe.text.lsa import CENTRE_SHARE, EMPTY_CENTRE

D = 6
RNG = np.random.default_rng(0)
WORDS = RNG.normal(size=(12, D)).astype(np.float32)
CENTRE = RNG.normal(size=D).astype(np.float32)
CODES = tuple(RNG.normal(size=(2, D)).astype(np.float32))
TOKENS = {
    "different": ([1, 2, 3], [4, 5]),
    "repeated": ([1, 1, 2, 1], [3, 3]),
    "shared": ([1, 2], [2, 1, 7]),
    "empty": ([], [4, 5]),
    "both empty": ([], []),
}
SHARES = (0.4, 0.7)


def of_texts(words, centre, tokens, codes, shares) -> Attribution:
    """Without vectors."""
    none = np.zeros(0, dtype=np.float32)
    ends = [CodeParts(t, none, z, s) for t, z, s in zip(tokens, codes, shares, strict=True)]
    return attribute(words, centre, 0.0, (ends[0], ends[1]))


def text_code(tokens: list[int]) -> tuple[np.ndarray, list[np.ndarray]]:
    """The text code m without noise, and the part of each token in it."""
    if not tokens:
        return EMPTY_CENTRE * CENTRE, []
    u = sum((1 + np.log(tokens.count(t))) * WORDS[t].astype(np.float64) for t in set(tokens))
    factor = D**0.5 / np.linalg.norm(u)
    parts = [factor * (1 + np.log(tokens.count(t))) / tokens.count(t) * WORDS[t] for t in tokens]
    return factor * u - CENTRE_SHARE * CENTRE, parts


@pytest.mark.parametrize("name", TOKENS)
def test_contributions_by_hand(name):
    tokens = tuple(np.array(t, dtype=np.int32) for t in TOKENS[name])
    found = of_texts(WORDS, CENTRE, tokens, CODES, SHARES)
    a, b = CODES
    length = 2 * np.linalg.norm(a) * np.linalg.norm(b)
    constants = 0.0
    for these, share, other, contributions in zip(
        TOKENS[name], SHARES, (b, a), (found.source, found.target), strict=True
    ):
        _, parts = text_code(these)
        expected = [share * float(part @ other) / length for part in parts]
        assert contributions.shape == (len(these),)
        np.testing.assert_allclose(contributions, expected, rtol=1e-4, atol=1e-6)
        centre = -CENTRE_SHARE if these else EMPTY_CENTRE
        constants += share * centre * float(CENTRE @ other) / length
    total = found.source.sum() + found.target.sum() + constants
    assert found.text_score == pytest.approx(float(total), abs=1e-6)
    texts = [share * text_code(t)[0] for share, t in zip(SHARES, TOKENS[name], strict=True)]
    expected = (texts[0] @ b + texts[1] @ a) / length
    assert found.text_score == pytest.approx(float(expected), abs=1e-5)


def test_the_text_part_and_the_structure_part_are_the_cosine(fitted: VHE) -> None:
    """The structure part is that of what the posterior mean has from the neighbours: W z / A."""
    graph, network, corpus = fitted._graph, fitted.network_, fitted._corpus
    degree = network.degrees + 1.0
    weights = np.zeros((60, 60))
    for i, j in network.links:
        weights[i, j] += graph.link_strength * (degree[i] * degree[j]) ** -0.25
    near = np.bincount(graph.neighbours.pairs.ravel(), minlength=60) + 1.0
    for (i, j), cosine in zip(graph.neighbours.pairs, graph.neighbours.cosines, strict=True):
        weights[i, j] += graph.text_knn_weight * cosine * (near[i] * near[j]) ** -0.5
    weights += weights.T
    structure = weights @ graph.mean / graph.diagonal[:, None]
    for i, j in ((0, 5), (3, 40), (7, 8)):
        tokens = tuple(corpus.tokens[corpus.offsets[v] : corpus.offsets[v + 1]] for v in (i, j))
        codes = graph.mean[i], graph.mean[j]
        shares = float(graph.own_share[i]), float(graph.own_share[j])
        found = of_texts(graph.words, graph.centre, tokens, codes, shares)
        length = np.linalg.norm(codes[0]) * np.linalg.norm(codes[1])
        rest = (structure[i] @ codes[1] + structure[j] @ codes[0]) / (2 * length)
        cosine = codes[0] @ codes[1] / length
        assert found.text_score + rest == pytest.approx(float(cosine), abs=1e-3)


def test_the_text_part_is_that_of_the_text_codes(fitted: VHE) -> None:
    import torch

    graph, corpus = fitted._graph, fitted._corpus
    texts = TextCodes(corpus)(torch.from_numpy(graph.words)).numpy() * graph.own_share[:, None]
    i, j = 2, 17
    tokens = tuple(corpus.tokens[corpus.offsets[v] : corpus.offsets[v + 1]] for v in (i, j))
    z = graph.mean
    shares = float(graph.own_share[i]), float(graph.own_share[j])
    found = of_texts(graph.words, graph.centre, tokens, (z[i], z[j]), shares)
    expected = (texts[i] @ z[j] + texts[j] @ z[i]) / 2
    expected /= np.linalg.norm(z[i]) * np.linalg.norm(z[j])
    assert found.text_score == pytest.approx(float(expected), abs=1e-5)


def test_a_code_of_zero_has_no_text_part():
    tokens = np.array([1, 2], dtype=np.int32)
    zero = np.zeros(D, dtype=np.float32)
    found = of_texts(WORDS, CENTRE, (tokens, tokens), (zero, zero), SHARES)
    assert found.text_score == 0


@pytest.mark.parametrize("weight", [0.4, 1.0])
def test_texts_vectors_and_neighbours_are_the_cosine(weight: float) -> None:
    """With own shares of 1 the code is [√(1 - w) m, √w a], and nothing comes from neighbours."""
    d = D if weight < 1 else 0
    words, centre = WORDS[:, :d], CENTRE[:d]
    vectors = RNG.normal(size=(2, 4)).astype(np.float32)
    ends = []
    for tokens, vector in zip(([1, 2, 3], [4, 4, 5]), vectors, strict=True):
        text = text_code(tokens)[0] if d else np.zeros(0)
        code = np.append((1 - weight) ** 0.5 * text, weight**0.5 * vector).astype(np.float32)
        ends.append(CodeParts(np.array(tokens, dtype=np.int32), vector, code, 1.0))
    found = attribute(words, centre, weight, (ends[0], ends[1]))
    a, b = (end.code.astype(np.float64) for end in ends)
    length = np.linalg.norm(a) * np.linalg.norm(b)
    assert found.text_score == pytest.approx(a[:d] @ b[:d] / length, abs=1e-5)
    assert found.vector_score == pytest.approx(a[d:] @ b[d:] / length, abs=1e-5)
