"""Skip-gram on random walks (Mikolov et al. 2013), trained by gensim; for DeepWalk and node2vec."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from vhe.baselines.walks import Walker
from vhe.errors import VHEError
from vhe.predict.scoring import CosineMethod


class SkipGramOnWalks(CosineMethod):
    """Settings and training that DeepWalk and node2vec have in common."""

    negatives: ClassVar[int]  # of each pair; 0: hierarchical softmax

    def __init__(
        self, dimensions: int, walks: int, length: int, window: int, random_state: int
    ) -> None:
        self.dimensions = dimensions
        self.walks = walks
        self.length = length
        self.window = window
        self.random_state = random_state

    def _embed(
        self, walker: Walker, walks: int, length: int, p: float = 1.0, q: float = 1.0
    ) -> np.ndarray:
        """Vectors (n, dimensions) from ``walks`` walks of ``length`` vertices from each vertex."""
        rng = np.random.default_rng(self.random_state)
        return skip_gram(
            walker.corpus(walks, length, rng, p, q),
            walker.vertices,
            dimensions=self.dimensions,
            window=self.window,
            negatives=self.negatives,
            seed=self.random_state,
        )


class Sentences:
    """Walks (m, length) as lists of words for gensim; can be iterated repeatedly."""

    def __init__(self, walks: np.ndarray, words: np.ndarray) -> None:
        self.walks = walks
        self.words = words

    def __iter__(self) -> Iterator[list[str]]:
        for start in range(0, len(self.walks), 1024):
            yield from self.words[self.walks[start : start + 1024]].tolist()


def skip_gram(
    walks: np.ndarray, vertices: int, *, dimensions: int, window: int, negatives: int, seed: int
) -> np.ndarray:
    """Vectors (vertices, dimensions) that predict the vertices nearby in a walk.

    One epoch of SGD over the walks, with a learning rate that decays from .025. A vertex that is in
    no walk has a row of zeros.

    Parameters
    ----------
    walks : (m, length) vertex numbers.
    window : maximum distance of two vertices in a walk.
    negatives : per pair; 0: hierarchical softmax.
    """
    try:
        from gensim.models import Word2Vec
    except ImportError:
        raise VHEError(
            "skip-gram on walks needs gensim, which is not installed; "
            "install it with: pip install 'vhe[baselines]'"
        ) from None

    rows = np.zeros((vertices, dimensions), dtype=np.float32)
    counts = np.bincount(walks.ravel(), minlength=vertices)
    seen = np.flatnonzero(counts)
    if not len(seen):
        return rows
    model = Word2Vec(
        vector_size=dimensions,
        window=window,
        sg=1,
        hs=int(negatives == 0),
        negative=negatives,
        min_count=1,
        sample=0,
        seed=seed,
        workers=1,  # with more, the order of the updates would depend on thread scheduling
    )
    words = np.arange(vertices).astype(str).astype(object)
    model.build_vocab_from_freq(dict(zip(words[seen], counts[seen].tolist(), strict=True)))
    model.train(Sentences(walks, words), total_examples=len(walks), epochs=1)
    rows[np.array(model.wv.index_to_key, dtype=np.int64)] = model.wv.vectors
    return rows
