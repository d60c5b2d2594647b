"""Skip-gram over walks (Mikolov et al. 2013), what DeepWalk and node2vec share; gensim does it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from vhe.errors import VHEError


class Sentences:
    """Walks (m, length) as lists of words, which gensim wants; again at each pass."""

    def __init__(self, walks: np.ndarray, words: np.ndarray) -> None:
        self.walks = walks
        self.words = words

    def __iter__(self) -> Iterator[list[str]]:
        for start in range(0, len(self.walks), 1024):
            yield from self.words[self.walks[start : start + 1024]].tolist()


def skip_gram(
    walks: np.ndarray, vertices: int, *, dimensions: int, window: int, negatives: int, seed: int
) -> np.ndarray:
    """Vectors (vertices, dimensions) from which the vertices near them in a walk are foretold.

    One pass of SGD over the walks, its rate falling from .025. The vector of a vertex that is in
    no walk is zero.

    Parameters
    ----------
    walks : (m, length) vertex numbers.
    window : how far two vertices of a walk may be from each other.
    negatives : for each pair; 0 stands for hierarchical softmax.
    """
    try:
        from gensim.models import Word2Vec
    except ImportError:
        raise VHEError(
            "Skip-gram over walks needs gensim, which is not installed; "
            "install it with: pip install 'vhe[baselines]'."
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
        workers=1,  # with more, the order of the updates is the threads' affair
    )
    words = np.arange(vertices).astype(str).astype(object)
    model.build_vocab_from_freq(dict(zip(words[seen], counts[seen].tolist(), strict=True)))
    model.train(Sentences(walks, words), total_examples=len(walks), epochs=1)
    rows[np.array(model.wv.index_to_key, dtype=np.int64)] = model.wv.vectors
    return rows
