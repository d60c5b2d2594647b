"""The answers of the explorer: dictionaries about a fitted model and its map."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from vhe.data.text import tokenize
from vhe.errors import VHEError
from vhe.predict.candidates import DUPLICATE, text_cosines
from vhe.predict.layout import place, quick_layout
from vhe.runtime.arrays import unit_rows
from vhe.web.map_data import drawn, first_words, grouped_labels, map_data

if TYPE_CHECKING:
    from vhe.fitted import FittedModel

Answer = dict[str, Any]
Decided = tuple[tuple[int, str], ...]

MAX_MATCHES = 10_000  # vertex numbers in the answer to a search


class UnknownVertexError(VHEError):
    """A vertex number or id that is not in the network."""


class Explorer:
    """A fitted model with the map coordinates of its vertices.

    Vertices are addressed by number, their position in ``model.network_.ids``, because an id may
    be any hashable object and not all of them can be part of a URL. `find` returns the number of
    an id.

    Parameters
    ----------
    model : VHE or PairVHE
    coordinates : (n, 2) array, optional
        From `vhe.predict.layout.layout`; by default a quick layout, computed when it is needed.
    """

    def __init__(self, model: FittedModel, coordinates: np.ndarray | None = None) -> None:
        self.model, self.network = model, model.network_
        if coordinates is not None:
            self.coordinates = coordinates

    def following(self, model: FittedModel, coordinates: np.ndarray) -> Explorer:
        """The explorer of a changed model; what is known of unchanged vertices is reused."""
        found, n = Explorer(model, coordinates), len(self)
        if found.network.ids[:n] != self.network.ids:
            return found
        network, known = found.network, self.__dict__
        new = range(n, len(network))
        if "_stored" in known:
            ids, texts, labels = self._stored
            own = network.labels or [None] * len(network)
            found._stored = (
                ids + [network.ids[k] for k in new],
                texts + [network.texts[k] for k in new],
                labels + [own[k] for k in new],
            )
        if "_searched" in known:
            added = ((str(network.ids[k]).lower(), network.texts[k].lower()) for k in new)
            found._searched = [*self._searched, *added]
        if "_vocabulary" in known:
            found._vocabulary = self._vocabulary
        if "uncertainty" in known:
            std = model.embedding_std_[n:].mean(axis=1)
            found.uncertainty = np.concatenate([self.uncertainty, std])
        if "_unit" in known:
            found._unit = np.concatenate([self._unit, unit_rows(model.embedding_[n:])])
        return found

    # What one kind of question needs is computed when it is asked, so that the first answer is not
    # delayed by the others.

    @cached_property
    def coordinates(self) -> np.ndarray:
        """The position of each vertex: (n, 2)."""
        return quick_layout(self.model.embedding_)

    @cached_property
    def _stored(self) -> tuple[list[Hashable], list[str], list[Hashable | None]]:
        """Ids, texts and labels in memory: those of a stored network are read from its file."""
        network = self.network
        labels: list[Hashable | None] = [*(network.labels or [None] * len(network))]
        return list(network.ids), list(network.texts), labels

    @cached_property
    def uncertainty(self) -> np.ndarray:
        """The mean standard deviation of each embedding: (n,)."""
        mean: np.ndarray = self.model.embedding_std_.mean(axis=1)
        return mean

    @cached_property
    def _unit(self) -> np.ndarray:
        return unit_rows(self.model.embedding_)  # (n, d)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        ids = self._stored[0]
        numbers = {str(i): k for k, i in enumerate(ids)}
        return numbers | {i: k for k, i in enumerate(ids) if isinstance(i, str)}

    @cached_property
    def _searched(self) -> list[tuple[str, str]]:
        """The ids and texts in lower case."""
        ids, texts, _ = self._stored
        return [(str(i).lower(), text.lower()) for i, text in zip(ids, texts, strict=True)]

    @cached_property
    def _vocabulary(self) -> frozenset[str]:
        return frozenset(self.model.vocabulary_)

    @cached_property
    def _links(self) -> list[np.ndarray]:
        """The neighbours of each vertex, by number."""
        ends = np.concatenate([self.network.links, self.network.links[:, ::-1]])
        ends = ends[np.lexsort((ends[:, 1], ends[:, 0]))]
        first = np.searchsorted(ends[:, 0], np.arange(len(self) + 1))
        return [ends[a:b, 1] for a, b in itertools.pairwise(first)]

    @cached_property
    def map(self) -> Answer:
        """All vertices with their positions, labels and links."""
        _, texts, labels = self._stored
        data = map_data(
            self.network,
            self.coordinates,
            texts,
            grouped_labels(labels),
            corpus=self.model._corpus,
        )
        return data | {
            "name": self.network.name,
            "uncertainty": np.round(self.uncertainty, 4).tolist(),
        }

    def warm_up(self) -> None:
        """Run each kind of request once, so that the first user does not wait for lazy set-up."""
        with suppress(VHEError):  # a network of one vertex, or without known words
            self.search("", 1)
            self.suggestions(0, 1)
            self.pair(0, len(self) - 1)
            self.embed_text(max(self.network.texts, key=len), 1)

    def __len__(self) -> int:
        return len(self.network)

    def summary(self) -> Answer:
        """The name and size of the network, and the dimension of its embedding."""
        return {
            "name": self.network.name,
            "vertices": len(self),
            "links": len(self.network.links),
            "labels": len(set(self.network.labels or ()) - {None}),
            "dimensions": int(self.model.embedding_.shape[1]),
            "density": float(self.model.density_),
        }

    def id_of(self, value: Hashable) -> Hashable:
        """The id that equals a value, or is printed so; the value itself if there is none."""
        if value in self.network or not isinstance(value, str) or value not in self._numbers:
            return value
        return self.network.ids[self._numbers[value]]

    def find(self, vertex_id: str) -> Answer:
        """The vertex with an id, or whose id is printed so."""
        if vertex_id not in self._numbers:
            raise UnknownVertexError(f"Unknown vertex id {vertex_id!r}.")
        return self.vertex(self._numbers[vertex_id])

    def vertex(self, number: int) -> Answer:
        """A vertex with its text, label and links."""
        self._check(number)
        return self.entry(number, full_text=True) | {
            "uncertainty": float(self.uncertainty[number]),
            "links": [self.entry(int(j)) for j in self._links[number]],
        }

    def search(self, query: str, limit: int) -> Answer:
        """Vertices whose id contains the query, then those whose text contains all its words.

        Ids are ranked: equal to the query, last dotted part equal to it, last part starting with
        it, id starting with it, others; ties are broken by degree.
        """
        query = " ".join(query.lower().split())
        words = query.split()
        ranked = []
        for k, (name, text) in enumerate(self._searched):
            if query in name:
                last = name.rpartition(".")[2]
                ranks = [name == query, last == query, last.startswith(query)]
                ranks += [name.startswith(query), True]
                ranked.append((ranks.index(True), -len(self._links[k]), k))
            elif words and all(word in text for word in words):
                ranked.append((5, -len(self._links[k]), k))
        ranked.sort()
        numbers = [k for _, _, k in ranked]
        return {
            "total": len(numbers),
            "numbers": numbers[:MAX_MATCHES],
            "vertices": [self.entry(k) for k in numbers[:limit]],
        }

    def links(self, number: int, offset: int, limit: int) -> Answer:
        """The links of a vertex, by number."""
        self._check(number)
        found = self._links[number]
        part = found[offset : offset + limit].tolist()
        links = [self.entry(j) for j in part]
        return self.entry(number) | {"total": len(found), "links": links}

    def embedding(self, number: int) -> Answer:
        """The embedding of a vertex, and its standard deviation."""
        self._check(number)
        mean, std = self.model.embed(self.network.ids[number], return_std=True)
        return self.entry(number) | {"embedding": mean.tolist(), "std": std.tolist()}

    def nearest(self, number: int, k: int) -> Answer:
        """The vertices with the nearest embeddings, linked or not."""
        self._check(number)
        cosines = self._unit @ self._unit[number]
        order = np.argsort(-cosines, kind="stable")[: k + 1].tolist()
        near = [self.entry(j) | {"similarity": float(cosines[j])} for j in order if j != number]
        return self.entry(number) | {"nearest": near[:k]}

    def path(self, source: int, target: int) -> Answer:
        """A shortest path between two vertices."""
        self._check(source)
        self._check(target)
        from scipy.sparse.csgraph import breadth_first_order  # its import takes long

        ends = {"source": self.entry(source), "target": self.entry(target)}
        _, previous = breadth_first_order(self._adjacency, source)
        path = [target]
        while path[-1] != source and previous[path[-1]] >= 0:
            path.append(int(previous[path[-1]]))
        if path[-1] != source:
            return ends | {"length": None, "vertices": []}
        vertices = [self.entry(j) for j in reversed(path)]
        return ends | {"length": len(path) - 1, "vertices": vertices}

    @cached_property
    def _adjacency(self) -> sparse.csr_array:
        i, j = np.concatenate([self.network.links, self.network.links[:, ::-1]]).T
        return sparse.csr_array((np.ones(len(i)), (i, j)), shape=(len(self), len(self)))

    def suggestions(self, number: int, k: int, decided: Decided = ()) -> Answer:
        """The most probable missing links of a vertex, best first, without rejected ones.

        ``decided`` are the numbers and states of the pairs of this vertex that were reviewed.
        """
        self._check(number)
        states = dict(decided)
        count = k + list(states.values()).count("rejected")
        links = []
        for found in self.model.suggest_links(self.network.ids[number], count):
            j = self.network.index(found.id)
            state = states.get(j, "open")
            if state != "rejected":
                links.append(self.entry(j) | {"probability": found.probability, "state": state})
        return self.entry(number) | {"links": links[:k]}

    def probability(self, source: int, target: int) -> float:
        """The probability of a link, as in suggestions."""
        self._check(source)
        self._check(target)
        ends = np.array([source]), np.array([target])
        return float(self.model.probability_indices(*ends, balanced=False)[0])

    def duplicates(self, pairs: np.ndarray) -> np.ndarray:
        """Which pairs (m, 2) have nearly the same text: (m,)."""
        near: np.ndarray = text_cosines(self.model._rows.words, pairs) >= DUPLICATE
        return near

    def labelled(self, label: str) -> np.ndarray:
        """Which vertices have a label, as printed or as it is named on the map: (n,)."""
        labels = self._stored[2]
        pairs = zip(labels, grouped_labels(labels) or labels, strict=True)
        return np.array([x is not None and label in (str(x), str(name)) for x, name in pairs])

    def suggested_link(self, found: Answer) -> Answer:
        """An item of `Review.select` with its vertices."""
        source, target = (self.entry(number) for number in found["pair"])
        rest = {name: value for name, value in found.items() if name != "pair"}
        return {"source": source, "target": target} | rest

    def pair(self, source: int, target: int) -> Answer:
        """The probability of a link, the parts of its log odds, and the words of both texts."""
        self._check(source)
        self._check(target)
        found = self.model.explain(self.network.ids[source], self.network.ids[target])
        return {
            "source": self._side(source, found.source.words),
            "target": self._side(target, found.target.words),
            "linked": bool(np.isin(target, self._links[source])),
            "probability": float(found.probability),
            "balanced_probability": float(found.balanced_probability),
            "text_share": float(found.text_share),
            "structure_share": float(found.structure_share),
            "score": float(found.score),
            "parts": {name: float(part) for name, part in found.parts.items()},
        }

    def embed_text(self, text: str, k: int) -> Answer:
        """The likeliest links of a text that is not in the network, and its map position.

        `place` says where that is.
        """
        tokens = tokenize(text)
        known = sum(token in self._vocabulary for token in tokens)
        if not known and not (tokens and self.model.has_encoder):
            raise VHEError("The text has no words of the model's vocabulary.")
        mean, std, scores = self.model._embed_and_score(text)
        cosines = self._unit @ unit_rows(mean[None])[0]
        ((x, y),) = place(self._unit, drawn(self.coordinates), mean[None])
        best = np.argsort(-scores, kind="stable")[:k]
        probabilities = self.model.probability(scores[best], balanced=False)
        answers = [
            self.entry(number)
            | {"similarity": float(cosines[number]), "probability": float(probability)}
            for number, probability in zip(best.tolist(), probabilities, strict=True)
        ]
        return {
            "x": float(x),
            "y": float(y),
            "words": len(tokens),
            "known": known,
            "uncertainty": float(np.mean(std)),
            "nearest": answers,
        }

    def _check(self, number: int) -> None:
        if not 0 <= number < len(self):
            raise UnknownVertexError(
                f"Unknown vertex number {number}; numbers are from 0 to {len(self) - 1}."
            )

    def entry(self, number: int, full_text: bool = False) -> Answer:
        ids, texts, labels = self._stored
        text = texts[number]
        return {
            "number": number,
            "id": json_value(ids[number]),
            "label": json_value(labels[number]),
            "text": text if full_text else first_words(text, 100),
        }

    def _side(self, number: int, words: Sequence[tuple[str, float]]) -> Answer:
        entry = self.entry(number, full_text=True)
        weighted = [(word, float(weight)) for word, weight in words]
        return entry | {"words": weighted, "segments": segments(entry["text"], weighted)}


def segments(text: str, words: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    """Split a text around the words whose weight is above the mean.

    ``words`` are those of the text in order. Weights are relative to the largest; text between
    the words has weight 0.

    >>> segments("Fox, a red fox.", [("Fox", 0.4), ("a", 0.0), ("red", 0.1), ("fox", 0.5)])
    [('Fox', 0.8), (', a red ', 0.0), ('fox', 1.0), ('.', 0.0)]
    """
    mean = sum(weight for _, weight in words) / max(len(words), 1)
    largest = max((weight for _, weight in words), default=0.0)
    found: list[tuple[str, float]] = []
    written = position = 0
    for word, weight in words:
        start = text.find(word, position)
        if start < 0:  # spelled differently after normalisation
            continue
        position = start + len(word)
        if weight > mean:
            found += [(text[written:start], 0.0)] if start > written else []
            found.append((word, round(weight / largest, 3)))
            written = position
    return [*found, (text[written:], 0.0)] if written < len(text) else found


def json_value(value: Hashable | None) -> str | int | float | bool | None:
    """An id or a label as a JSON value; anything that JSON does not have is printed."""
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)
