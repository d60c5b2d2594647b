"""DeepWalk (Perozzi, Al-Rfou & Skiena, KDD 2014): skip-gram on uniform random walks; texts are not
used.

max Σ_walks Σ_{0 < |a-b| <= 5} log p(v_b | v_a), p a hierarchical softmax over the vertices.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from vhe.baselines.walks import Walker
from vhe.data.network import TextNetwork
from vhe.errors import VHEError
from vhe.predict.scoring import CosineMethod


@dataclass(kw_only=True)
class DeepWalk(CosineMethod):
    """Skip-gram (Mikolov et al. 2013) with hierarchical softmax on uniform walks.

    The paper does not predict links; here a pair is scored by cosine. A vertex without links is in
    no walk and has a row of zeros.

    Parameters
    ----------
    dimensions, window : of skip-gram.
    walks, length : number of walks from each vertex, and of vertices in a walk.
    random_state : seed.
    """

    dimensions: int = 200
    walks: int = 10
    length: int = 40
    window: int = 5
    random_state: int = 0

    negatives: ClassVar[int] = 0  # of each pair; 0: hierarchical softmax

    def fit(self, network: TextNetwork) -> Self:
        """Draw walks over the links and train skip-gram on them."""
        walker = Walker(network.links, len(network))
        self.embedding_ = self._embed(walker, self.walks, self.length)
        return self

    def _embed(
        self, walker: Walker, walks: int, length: int, p: float = 1.0, q: float = 1.0
    ) -> np.ndarray:
        """Vectors (n, dimensions) from ``walks`` walks of ``length`` vertices from each vertex.

        One epoch of SGD over the walks by gensim, with a learning rate that decays from .025.
        """
        try:
            from gensim.models import Word2Vec
        except ImportError:
            raise VHEError(
                "skip-gram on walks needs gensim, which is not installed; "
                "install it with: pip install 'vhe[baselines]'"
            ) from None

        drawn = walker.corpus(walks, length, np.random.default_rng(self.random_state), p, q)
        rows = np.zeros((walker.vertices, self.dimensions), dtype=np.float32)
        counts = np.bincount(drawn.ravel(), minlength=walker.vertices)
        if not counts.any():
            return rows
        model = Word2Vec(
            vector_size=self.dimensions,
            window=self.window,
            sg=1,
            hs=int(self.negatives == 0),
            negative=self.negatives,
            min_count=1,
            sample=0,
            seed=self.random_state,
            workers=1,  # with more, the order of the updates would depend on thread scheduling
        )
        words = np.arange(walker.vertices).astype(str).astype(object)
        model.build_vocab_from_freq(
            {word: count for word, count in zip(words, counts.tolist(), strict=True) if count}
        )
        sentences = (words[walk].tolist() for walk in drawn)
        model.train(sentences, total_examples=len(drawn), epochs=1)
        rows[np.array(model.wv.index_to_key, dtype=np.int64)] = model.wv.vectors
        return rows
