"""New vertices: the posterior of codes that were not part of the fit.

Given all other codes, the posterior of a new vertex has the precision Λ + Σ s and the mean
(Λ m + Σ s z) / (Λ + Σ s), with the sums over its links and its nearest texts. New vertices that are
linked with each other are solved for together. The codes of the fit do not change.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from vhe.data.text import Corpus
from vhe.graph.model import (
    NEIGHBOURS,
    GraphModel,
    Vectors,
    effective_lengths,
    link_weights,
    marginal_variance,
    text_precision,
)
from vhe.runtime.arrays import unit_rows
from vhe.text.lsa import CENTRE_SHARE, EMPTY_CENTRE, scaled_codes
from vhe.text.vector_codes import joint_codes

COSINES_AT_ONCE = 2**24  # entries of the largest matrix of cosines
NEW_TEXT_KNN_WEIGHT = 4.0  # a new vertex has few or no links, so that its nearest texts count more


@dataclass(frozen=True)
class InductiveEmbedding:
    """Posterior of k new vertices given the codes of the fit."""

    mean: Vectors  # (k, d)
    variance: Vectors  # (k,)
    precision: Vectors  # (k,)
    diagonal: Vectors  # (k,)


def text_directions(model: GraphModel, corpus: Corpus, vectors: Vectors) -> Vectors:
    """Centred codes of unit length, whose products are the cosines of texts: (n, d + p).

    ``vectors`` (n, p) are the codes of given or encoded vectors.
    """
    scaled = scaled_codes(corpus, model.words)
    filled = scaled.any(axis=1, keepdims=True)
    centred = scaled - np.where(filled, model.centre, np.float32(0))
    return unit_rows(joint_codes(centred, vectors, model.encoder_weight))


def embed_new(
    model: GraphModel,
    directions: Vectors,
    degrees: NDArray[np.int64],
    texts: Corpus,
    vectors: Vectors,
    links: NDArray[np.int64],
    text_knn_weight: float = NEW_TEXT_KNN_WEIGHT,
) -> InductiveEmbedding:
    """Embed new texts.

    Parameters
    ----------
    directions, degrees : `text_directions` and (n,) degrees of the vertices of the fit
    texts, vectors : k new texts, and the codes (k, p) of their vectors
    links : (m, 2) vertex numbers; new vertices are numbered from n on, and each link has one
    """
    from scipy.sparse.linalg import splu

    n, k = len(directions), len(texts)
    scaled = scaled_codes(texts, model.words)
    filled = scaled.any(axis=1, keepdims=True)
    share = np.where(filled, -CENTRE_SHARE, EMPTY_CENTRE).astype(np.float32)
    codes = joint_codes(scaled + share * model.centre, vectors, model.encoder_weight)
    lengths = effective_lengths(texts.lengths, vectors, model.mean_log_length)
    precision = text_precision(lengths, model.mean_log_length).astype(np.float64)
    degree = np.append(degrees, np.zeros(k)) + np.bincount(links.ravel(), minlength=n + k)
    strength = link_weights(links, degree, model.link_strength)
    near, cosines = _nearest(directions, text_directions(model, texts, vectors))
    # the normalisation of the prior, with every text taken to have `NEIGHBOURS` nearest-text pairs
    weight = text_knn_weight * np.maximum(cosines, 0) / (NEIGHBOURS + 1)
    i = np.concatenate([links.ravel(), np.repeat(np.arange(n, n + k), near.shape[1])])
    j = np.concatenate([links[:, ::-1].ravel(), near.ravel()])
    weights = np.concatenate([np.repeat(strength, 2), weight.ravel()])
    new = i >= n
    coupling = sparse.csr_array((weights[new], (i[new] - n, j[new])), shape=(k, n + k))
    diagonal: NDArray[np.float64] = precision + coupling.sum(axis=1)
    right = precision[:, None] * codes + coupling[:, :n] @ model.mean
    system = sparse.diags_array(diagonal) - coupling[:, n:]
    mean = splu(system.tocsc()).solve(right.astype(np.float64)) if k else codes
    variance = marginal_variance(coupling[:, :n], diagonal, model.variance)
    return InductiveEmbedding(
        *(a.astype(np.float32) for a in (mean, variance, precision, diagonal))
    )


def extended(model: GraphModel, new: InductiveEmbedding, vectors: Vectors) -> GraphModel:
    """The model with new vertices, and the codes of their vectors, after the others."""
    return replace(
        model,
        vectors=np.concatenate([model.vectors, vectors]),
        mean=np.concatenate([model.mean, new.mean]),
        variance=np.append(model.variance, new.variance),
        precision=np.append(model.precision, new.precision),
        diagonal=np.append(model.diagonal, new.diagonal),
    )


def reduced(model: GraphModel, kept: NDArray[np.int64]) -> GraphModel:
    """The model of some of its vertices, in increasing order."""
    position = np.full(len(model.mean), -1, dtype=np.int64)
    position[kept] = np.arange(len(kept))
    pairs = position[model.neighbours.pairs]
    inside = (pairs >= 0).all(axis=1)
    return replace(
        model,
        vectors=model.vectors[kept],
        mean=model.mean[kept],
        variance=model.variance[kept],
        precision=model.precision[kept],
        diagonal=model.diagonal[kept],
        neighbours=replace(
            model.neighbours, pairs=pairs[inside], cosines=model.neighbours.cosines[inside]
        ),
    )


def _nearest(directions: Vectors, new: Vectors) -> tuple[NDArray[np.int64], Vectors]:
    """The nearest texts of the fit for each new text, and their cosines: (k, 10) each."""
    count = min(NEIGHBOURS, len(directions))
    near = np.empty((len(new), count), dtype=np.int64)
    cosines = np.empty((len(new), count), dtype=np.float32)
    step = max(1, COSINES_AT_ONCE // max(len(directions), 1))
    for start in range(0, len(new), step):
        part = slice(start, start + step)
        found = new[part] @ directions.T
        near[part] = np.argpartition(-found, count - 1, axis=1)[:, :count] if count else 0
        cosines[part] = np.take_along_axis(found, near[part], axis=1)
    return near, cosines
