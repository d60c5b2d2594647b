"""Candidates for the links of one vertex, by one pass over the tables of all vertices.

For a single vertex, one pass is faster than building an index or computing the features of all
pairs. Tables are read block by block, and mapped memory is released after each block, so that a
table of a million vertices needs the memory of one block.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vhe.data.text import Corpus
from vhe.errors import VHEError
from vhe.predict.link_posterior import LinkPosterior
from vhe.predict.pair_features import neighbour_weights
from vhe.predict.suggest import (
    COMMON_NEIGHBOURS,
    COMMON_WORDS,
    ISOLATED,
    NEAREST,
    RARE,
    hubs,
    searched_scales,
    uses_neighbours,
)
from vhe.runtime.arrays import blocks

DAMAGED = "a table of the model folder is damaged: restore a copy or fit again"

Floats = NDArray[np.float32]
Vertices = NDArray[np.int64]


@dataclass(frozen=True)
class Tables:
    """The tables of the n vertices of a network.

    Attributes
    ----------
    scales : (n, d) embeddings by name
    idf : (V,) of the words of the corpus
    links, degrees : (m, 2) and (n,)
    """

    scales: Mapping[str, Floats]
    corpus: Corpus
    idf: Floats
    links: Vertices
    degrees: Vertices


def candidates(posterior: LinkPosterior, tables: Tables, vertex: int, k: int) -> Vertices:
    """Vertices that may be among the ``k`` likeliest partners of a vertex, ascending.

    They are those of `suggest.partners`, except that the nearest vertices are exact.
    """
    linked = tables.degrees > 0
    found = [neighbours_of(tables.links, np.array([vertex]))]
    for name in searched_scales(posterior):
        cosines = scanned_cosines(tables.scales[name], tables.scales[name][vertex])
        found.append(_largest(cosines, linked, k + NEAREST))
        if name == "embedding":
            found.append(_largest(cosines, ~linked, k + ISOLATED))
    if "words" in posterior.names:
        found.append(_sharing_words(tables, vertex))
    if uses_neighbours(posterior):
        found.append(_sharing_neighbours(tables, found[0]))
    if posterior.weights.get("degree", 0) > 0:
        found.append(hubs(tables.degrees))
    near = np.unique(np.concatenate(found[1:]))
    return near[~np.isin(near, np.append(found[0], vertex))]


def scanned_cosines(rows: Floats, vector: Floats) -> Floats:
    """The cosine of each row (n, d) with a vector (d,): (n,)."""
    direction = np.asarray(vector, dtype=np.float32)
    direction = direction / max(float(np.linalg.norm(direction)), 1e-30)
    cosines = np.empty(len(rows), dtype=np.float32)
    for start, block in blocks(rows):
        length = np.sqrt(np.einsum("nd,nd->n", block, block))
        cosines[start : start + len(block)] = block @ direction / np.maximum(length, 1e-30)
    if not np.isfinite(cosines).all():
        raise VHEError(DAMAGED)
    return cosines


def neighbours_of(links: Vertices, vertices: Vertices) -> Vertices:
    """The vertices that are linked with some others, once per link."""
    return np.concatenate([links[np.isin(links[:, end], vertices), 1 - end] for end in (0, 1)])


def _largest(values: Floats, among: NDArray[np.bool_], count: int) -> Vertices:
    """The places of the largest values among some."""
    places = np.flatnonzero(among)
    if len(places) > count:
        places = places[np.argpartition(-values[places], count)[:count]]
    return places


def _sharing_words(tables: Tables, vertex: int) -> Vertices:
    """Vertices with the largest sum of squared IDF over the rare words of a text."""
    corpus, n = tables.corpus, len(tables.degrees)
    own = np.unique(corpus.tokens[corpus.offsets[vertex] : corpus.offsets[vertex + 1]])
    if len(own) and not 1 <= own[0] <= own[-1] <= len(tables.idf):
        raise VHEError(DAMAGED)
    rare = tables.idf >= np.log((1 + n) / (1 + RARE)) + 1 - 1e-6
    weight = np.zeros(len(tables.idf) + 1, dtype=np.float32)
    weight[own] = np.where(rare[own - 1], tables.idf[own - 1] ** 2, 0)
    where = [
        start + np.flatnonzero(weight.take(block, mode="clip"))
        for start, block in blocks(corpus.tokens)
    ]
    places = np.concatenate([np.zeros(0, dtype=np.int64), *where])
    text = np.searchsorted(corpus.offsets, places, side="right") - 1
    vertices, number = np.unique(text, return_inverse=True)
    total = np.bincount(number, weight[corpus.tokens[places]], minlength=len(vertices))
    return vertices[np.argsort(-total, kind="stable")[:COMMON_WORDS]]


def _sharing_neighbours(tables: Tables, neighbours: Vertices) -> Vertices:
    """Vertices with the largest weight of common neighbours."""
    few = neighbours[tables.degrees[neighbours] <= RARE]
    weight = neighbour_weights(tables.degrees)
    total = np.zeros(len(tables.degrees))
    for end in (0, 1):
        common = np.isin(tables.links[:, end], few)
        np.add.at(total, tables.links[common, 1 - end], weight[tables.links[common, end]])
    found = np.flatnonzero(total)
    return found[np.argsort(-total[found], kind="stable")[:COMMON_NEIGHBOURS]]
