"""Networks with planted communities and topics."""

import numpy as np
import pytest

from vhe.data.network import TextNetwork

SIZE = 20  # vertices per community


@pytest.fixture(scope="session")
def planted() -> TextNetwork:
    """Three communities, given by the labels; the last vertex has no link. Texts are random."""
    rng = np.random.default_rng(1)
    group = np.arange(3 * SIZE) // SIZE
    i, j = np.triu_indices(3 * SIZE, 1)
    drawn = rng.random(len(i)) < np.where(group[i] == group[j], 0.3, 0.01)
    texts = [" ".join(f"word{k}" for k in rng.integers(60, size=5)) for _ in group]
    labels = [int(g) for g in group]
    edges = np.stack([i[drawn], j[drawn]], axis=1)
    return TextNetwork(range(len(group) + 1), [*texts, ""], edges, [*labels, None], name="planted")


@pytest.fixture(scope="session")
def topical() -> TextNetwork:
    """Five topics of 40 vertices.

    A vertex has about eight links inside its topic and one outside; six of the ten words of a text
    are of its topic. Texts alone and links alone are both sufficient to find the topics.
    """
    rng = np.random.default_rng(2)
    topic = np.arange(200) // 40
    i, j = np.triu_indices(200, 1)
    drawn = rng.random(len(i)) < np.where(topic[i] == topic[j], 0.2, 0.006)
    own, any_topic = rng.integers(12, size=(200, 6)), rng.integers(60, size=(200, 4))
    words = np.concatenate([12 * topic[:, None] + own, any_topic], axis=1)
    texts = [" ".join(f"word{k}" for k in row) for row in words]
    return TextNetwork(range(200), texts, np.stack([i[drawn], j[drawn]], axis=1), name="topical")
