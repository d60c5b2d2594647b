"""What the explorer answers: plain dictionaries about a fitted model and its map."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from vhe.data.text import tokenize
from vhe.errors import VHEError
from vhe.estimators import density
from vhe.predict.scoring import unit_rows
from vhe.web.report import first_words, grouped_labels, page_data

if TYPE_CHECKING:
    from vhe.estimators import VHE

Answer = dict[str, Any]

FOUND = 10_000  # vertices that an answer to a search names at most
NEAREST = 10  # vertices that say where a text stands on the map
SHARPNESS = 20.0  # how much more the nearest of them counts
REMEMBERED = 4096  # answers that are kept


class UnknownVertexError(VHEError):
    """A vertex that is not there."""


class Explorer:
    """A fitted model with the places of its vertices on a map.

    Vertices go by their number, their place in ``model.network_.ids``: an id may be anything, and
    not everything can stand in an address. `find` gives the number of an id.

    Parameters
    ----------
    coordinates : (n, 2), from `vhe.predict.layout.layout`
    """

    def __init__(self, model: VHE, coordinates: np.ndarray) -> None:
        self.model, self.network = model, model.network_
        self.uncertainty = model.embedding_std_.mean(axis=1)  # (n,)
        self._unit = unit_rows(model.embedding_)  # (n, d)
        self._degree_weight = model.degree_bias_  # (n,)
        ids, texts = self.network.ids, self.network.texts
        self._words = {str(i): k for k, i in enumerate(ids)}
        self._words |= {i: k for k, i in enumerate(ids) if isinstance(i, str)}
        self._names = [str(i).lower() for i in ids]
        self._texts = [text.lower() for text in texts]
        self._beginnings = [first_words(text, 100) for text in texts]
        self._vocabulary = frozenset(model._corpus.vocabulary)
        ends = np.concatenate([self.network.links, self.network.links[:, ::-1]])
        ends = ends[np.lexsort((ends[:, 1], ends[:, 0]))]
        first = np.searchsorted(ends[:, 0], np.arange(len(ids) + 1))
        self._links = [ends[a:b, 1] for a, b in itertools.pairwise(first)]
        self.map: Answer = page_data(
            coordinates, ids, texts, grouped_labels(self.network.labels), self.network.links
        ) | {"name": self.network.name, "uncertainty": np.round(self.uncertainty, 4).tolist()}
        self._places = np.array([self.map["x"], self.map["y"]], dtype=float).T  # (n, 2)
        # The same questions come again and again; a bound method would keep nothing apart.
        self.suggestions = lru_cache(REMEMBERED)(self._suggestions)
        self.pair = lru_cache(REMEMBERED)(self._pair)
        self.search = lru_cache(REMEMBERED // 8)(self._search)

    def warm_up(self) -> None:
        """Ask everything once, so that nobody has to wait for what only the first answer needs."""
        with suppress(VHEError):  # a network of one vertex, or without a word
            self.suggestions(0, 1)
            self.pair(0, len(self) - 1)
            self.place(max(self.network.texts, key=len), 1)

    def __len__(self) -> int:
        return len(self.network)

    def about(self) -> Answer:
        """The size of the network and of its embedding."""
        return {
            "name": self.network.name,
            "vertices": len(self),
            "links": len(self.network.links),
            "labels": len(set(self.network.labels or ()) - {None}),
            "dimensions": int(self.model.embedding_.shape[1]),
            "density": density(self.network),
        }

    def find(self, word: str) -> Answer:
        """The vertex whose id is, or is printed as, a word."""
        if word not in self._words:
            raise UnknownVertexError(f"there is no vertex with the id {word!r}.")
        return self.vertex(self._words[word])

    def vertex(self, number: int) -> Answer:
        """A vertex with its text, label and links."""
        self._check(number)
        return self._line(number, whole=True) | {
            "uncertainty": float(self.uncertainty[number]),
            "links": [self._line(int(j)) for j in self._links[number]],
        }

    def _search(self, words: str, limit: int) -> Answer:
        """Vertices whose id has these words as they stand, then those whose text has all of them.

        Ids come in the order: the id itself, an id that ends in it after a dot, one that begins
        with it, any other; among equals the one of more links first.
        """
        wanted = " ".join(words.lower().split())
        each = wanted.split()
        ranked = []
        for k, (name, text) in enumerate(zip(self._names, self._texts, strict=True)):
            if wanted in name:
                last = name.rpartition(".")[2]
                ways = [name == wanted, last == wanted, last.startswith(wanted)]
                ways += [name.startswith(wanted), True]
                ranked.append((ways.index(True), -len(self._links[k]), k))
            elif each and all(word in text for word in each):
                ranked.append((5, -len(self._links[k]), k))
        ranked.sort()
        numbers = [k for _, _, k in ranked]
        return {
            "total": len(numbers),
            "numbers": numbers[:FOUND],
            "vertices": [self._line(k) for k in numbers[:limit]],
        }

    def _suggestions(self, number: int, k: int) -> Answer:
        """Likely links of a vertex that are not there, the likeliest first.

        As `VHE.suggest_links` has them, with rows that were scaled once for all.
        """
        self._check(number)
        scores = self._unit @ self._unit[number] + self._degree_weight + self._degree_weight[number]
        scores[self._links[number]] = scores[number] = -np.inf
        k = min(k, len(self) - 1 - len(self._links[number]))
        best = np.argpartition(-scores, k - 1)[:k] if k else np.zeros(0, dtype=np.int64)
        best = best[np.lexsort((best, -scores[best]))]
        chances = self.model.probability(scores[best], balanced=False)
        links = [
            self._line(j) | {"probability": p}
            for j, p in zip(best.tolist(), chances.tolist(), strict=True)
        ]
        return self._line(number) | {"links": links}

    def _pair(self, source: int, target: int) -> Answer:
        """The probability of a link, and the words of both texts that speak for it."""
        self._check(source)
        self._check(target)
        found = self.model.explain(self.network.ids[source], self.network.ids[target])
        return {
            "source": self._side(source, found.source.words),
            "target": self._side(target, found.target.words),
            "linked": bool(np.isin(target, self._links[source])),
            "probability": float(found.probability),
            "network_probability": float(found.network_probability),
            "text_share": float(found.text_share),
            "structure_share": float(found.structure_share),
        }

    def place(self, text: str, k: int) -> Answer:
        """Where a text that is not in the network belongs.

        On the map it stands at the mean of its nearest vertices, the nearest counting most.
        """
        tokens = tokenize(text)
        known = sum(token in self._vocabulary for token in tokens)
        if not known:
            raise VHEError("the model knows none of these words; give a text in its language.")
        mean, std = self.model.embed_texts([text])
        near = self.model.nearest(mean[0], max(k, NEAREST))
        lines = self._lines(near, "similarity")
        cosines = np.array([cosine for _, cosine in near])
        popular = self._degree_weight[[line["number"] for line in lines]]
        chances = self.model.probability(cosines + popular, balanced=False).tolist()
        weights = np.exp(SHARPNESS * (cosines - cosines.max()))[:NEAREST]
        places = self._places[[line["number"] for line in lines[:NEAREST]]]
        x, y = weights @ places / weights.sum()
        return {
            "x": float(x),
            "y": float(y),
            "words": len(tokens),
            "known": known,
            "uncertainty": float(np.mean(std[0])),
            "nearest": [
                line | {"probability": chance}
                for line, chance in zip(lines[:k], chances[:k], strict=True)
            ],
        }

    def _check(self, number: int) -> None:
        if not 0 <= number < len(self):
            raise UnknownVertexError(
                f"there is no vertex {number}: they are numbered from 0 to {len(self) - 1}."
            )

    def _line(self, number: int, whole: bool = False) -> Answer:
        labels = self.network.labels
        return {
            "number": number,
            "id": plain(self.network.ids[number]),
            "label": None if labels is None else plain(labels[number]),
            "text": (self.network.texts if whole else self._beginnings)[number],
        }

    def _lines(self, found: Iterable[tuple[Hashable, float]], figure: str) -> list[Answer]:
        return [self._line(self.network.index(i)) | {figure: float(value)} for i, value in found]

    def _side(self, number: int, words: Sequence[tuple[str, float]]) -> Answer:
        line = self._line(number, whole=True)
        weighted = [(word, float(weight)) for word, weight in words]
        return line | {"words": weighted, "pieces": pieces(line["text"], weighted)}


def pieces(text: str, words: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    """A text cut around the words that weigh more than an average one.

    ``words`` are those of the text in their order. Weights are divided by the largest; what stands
    between has 0.

    >>> pieces("Fox, a red fox.", [("Fox", 0.4), ("a", 0.0), ("red", 0.1), ("fox", 0.5)])
    [('Fox', 0.8), (', a red ', 0.0), ('fox', 1.0), ('.', 0.0)]
    """
    usual = sum(weight for _, weight in words) / max(len(words), 1)
    most = max((weight for _, weight in words), default=0.0)
    found: list[tuple[str, float]] = []
    done = seen = 0
    for word, weight in words:
        at = text.find(word, seen)
        if at < 0:  # not spelled as in the text
            continue
        seen = at + len(word)
        if weight > usual:
            found += [(text[done:at], 0.0)] if at > done else []
            found.append((word, round(weight / most, 3)))
            done = seen
    return [*found, (text[done:], 0.0)] if done < len(text) else found


def plain(value: Hashable | None) -> str | int | float | bool | None:
    """An id or a label as JSON has it: as it is, or as it is printed."""
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)
