"""The words behind a link, and the shares of texts and structure in its score."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vhe.data.text import original_spelling, tokenize
from vhe.errors import VHEError
from vhe.runtime.messages import shown

__all__ = ["Explanation", "Side"]

SENTENCE_END = re.compile(r"[.;:!?](?:\s|$)")
OWN_PARTS = ("texts", "words", "encoder", "vectors")  # parts of a score that need no link


@dataclass(frozen=True)
class Side:
    """One of the two texts, word by word.

    Attributes
    ----------
    id : of the vertex; None for a text that is not a vertex
    words : every word of the text in its order and spelling, with its share of the text's positive
        contributions to the score. The shares sum to 1; they are 0 for words that lower the score
        or that the model does not know, and all 0 where no word raises it.
    alignment : weight of each word in the phrase-to-word alignment, summing to 1; None for a model
        without alignment
    text : the text, for the punctuation between the words
    """

    id: Hashable
    words: list[tuple[str, float]]
    alignment: list[float] | None = None
    text: str | None = None

    def phrases(self, count: int = 5) -> list[tuple[str, float]]:
        """Runs of words with more than the average share, the largest total first.

        A run is spelled as in the text and ends with its sentence. The shares of a phrase that
        occurs several times are added up.
        """
        average = 1 / max(len(self.words), 1)
        totals: dict[str, float] = {}
        phrase, total = "", 0.0
        for gap, (word, share) in zip(self._gaps(), [*self.words, ("", 0.0)], strict=True):
            if phrase and (share <= average or SENTENCE_END.search(gap)):
                if gap[:1] == ")" and phrase.count("(") > phrase.count(")"):
                    phrase += ")"
                totals[phrase] = totals.get(phrase, 0) + total
                phrase, total = "", 0.0
            if share > average:
                phrase, total = phrase + gap + word if phrase else word, total + share
        return sorted(totals.items(), key=lambda phrase: -phrase[1])[:count]

    def pieces(self) -> list[tuple[str, float]]:
        """The text in pieces: words with their shares, and what is between them, with 0."""
        gaps = self._gaps()
        between = zip(gaps, self.words, strict=False)
        return [piece for gap, word in between for piece in ((gap, 0.0), word)] + [(gaps[-1], 0.0)]

    def _gaps(self) -> list[str]:
        """What is before each word and after the last one, with single spaces."""
        text, gaps, position = " ".join((self.text or "").split()), [], 0
        for word, _ in self.words:
            start = text.find(word, position)
            if start < 0:  # a word that normalisation has changed, or no text
                return ["", *[" "] * (len(self.words) - 1), ""][: len(self.words) + 1]
            gaps.append(text[position:start])
            position = start + len(word)
        return [*gaps, text[position:]]

    def to_dict(self) -> dict[str, Any]:
        aligned = {} if self.alignment is None else {"alignment": self.alignment}
        words = [[word, share] for word, share in self.words]
        return {"id": self.id, "words": words, **aligned}


@dataclass(frozen=True)
class Explanation:
    """Why a pair has its score.

    Attributes
    ----------
    balanced_probability : of a link in a balanced sample
    probability : of a link in a network as sparse as this one, as suggestions show it
    score : log odds of a link in a balanced sample; exactly ``offset`` plus the sum of ``parts``
    parts : what the score consists of, by name: "texts" and "links", the shares of both in the
        cosine of the embeddings, "encoder" or "vectors" for encoded or given vectors, and the other
        features of the link posterior (`vhe.predict.pair_features`)
    text_score, structure_score : the parts that come from texts and vectors, and all others
    text_share, structure_share : the absolute values of these two as shares of 1
    """

    source: Side
    target: Side
    balanced_probability: float
    probability: float
    score: float
    parts: dict[str, float]

    @property
    def text_score(self) -> float:
        return sum(value for name, value in self.parts.items() if name in OWN_PARTS)

    @property
    def structure_score(self) -> float:
        return sum(value for name, value in self.parts.items() if name not in OWN_PARTS)

    @property
    def shares(self) -> dict[str, float]:
        """The shares of words, of the encoder or given vectors (if any) and of links in the score.

        They are absolute values, scaled to sum to 1.
        """
        totals = {"words": self.parts["texts"] + self.parts.get("words", 0.0)}
        totals |= {name: self.parts[name] for name in ("encoder", "vectors") if name in self.parts}
        totals["links"] = self.structure_score
        size = sum(map(abs, totals.values()))
        return {n: abs(v) / size if size else 1 / len(totals) for n, v in totals.items()}

    @property
    def offset(self) -> float:
        """The constant term of the score."""
        return self.score - sum(self.parts.values())

    @property
    def text_share(self) -> float:
        size = abs(self.text_score) + abs(self.structure_score)
        return abs(self.text_score) / size if size else 0.5

    @property
    def structure_share(self) -> float:
        return 1 - self.text_share

    def to_dict(self) -> dict[str, Any]:
        """The explanation as a JSON document."""
        names = ["probability", "balanced_probability", "score", "text_score", "structure_score"]
        names += ["text_share", "structure_share", "shares", "parts", "offset"]
        sides = {"source": self.source.to_dict(), "target": self.target.to_dict()}
        return sides | {name: getattr(self, name) for name in names}

    def to_html(self) -> str:
        """A self-contained page with both texts, words shaded by their shares."""
        sides = "".join(_section(side) for side in (self.source, self.target))
        return _PAGE.format(
            title=escape(f"{self.source.id} and {self.target.id}"),
            probability=f"{self.probability:.3f}",
            balanced=f"{self.balanced_probability:.3f}",
            score=f"{self.score:.3f}",
            shares=self.shares_in_words,
            text=f"{100 * self.text_share:.0f}",
            sides=sides,
        )

    @property
    def shares_in_words(self) -> str:
        """``40 % from the words, 20 % from the encoder, 40 % from the links``."""
        return ", ".join(f"{100 * share:.0f} % from the {n}" for n, share in self.shares.items())


_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; font: 1rem/1.7 system-ui, sans-serif; }}
body {{ max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }}
h1, h2 {{ font-size: 1.2rem; overflow-wrap: anywhere; }}
.bar {{ display: flex; height: .6rem; }}
.bar i {{ background: #d97706; }} .bar b {{ background: #2563eb; flex: 1; }}
mark {{ color: inherit; border-radius: .2rem; padding: 0 .1rem; }}
mark {{ background: rgb(217 119 6 / var(--weight)); }}
</style>
<h1>{title}</h1>
<p>Probability of a link: {probability} in this network, {balanced} in a balanced sample.
Score {score}: {shares}.</p>
<div class="bar" aria-hidden="true"><i style="width: {text}%"></i><b></b></div>
{sides}</html>
"""


def _section(side: Side) -> str:
    most = max((share for _, share in side.words), default=0) or 1
    words = "".join(
        f'<mark style="--weight: {share / most:.2f}" title="{share:.3f}">{escape(piece)}</mark>'
        if share
        else escape(piece)
        for piece, share in side.pieces()
    )
    return f"<h2>{escape(str(side.id))}</h2>\n<p>{words}</p>\n"


def make_side(
    id: Hashable,
    text: str,
    vocabulary: frozenset[str],
    contributions: NDArray[np.floating],
    alignment: NDArray[np.floating] | None = None,
    encoder: NDArray[np.floating] | None = None,
) -> Side:
    """One side of an explanation from what the tokens (L,) of a text contribute to the score.

    The tokens are the first L words of the text that are in the vocabulary. ``encoder`` (W,) is
    what all words of the text contribute beside them.
    """
    spelling = original_spelling(text)
    read = [k for k, word in enumerate(tokenize(text)) if word in vocabulary][: len(contributions)]
    if len(read) < len(contributions):  # of a model folder whose files are of different models
        raise VHEError(f"the text of {shown(id)} does not have the words that the model read")
    if encoder is not None:
        total = encoder.astype(np.float64)
        total[read] += contributions
        read, contributions = list(range(len(spelling))), total
    shares = _spread(np.maximum(contributions, 0), read, len(spelling))
    aligned = None if alignment is None else _spread(alignment, read, len(spelling)).tolist()
    return Side(id, list(zip(spelling, shares.tolist(), strict=True)), aligned, text)


def _spread(values: NDArray[np.floating], read: Sequence[int], length: int) -> NDArray[np.float64]:
    """Values of the tokens at the positions of their words, scaled to sum to 1; 0 elsewhere."""
    spread = np.zeros(length)
    total = float(values.sum(dtype=np.float64))
    if len(read) and total > 0:
        spread[list(read)] = values.astype(np.float64) / total
    return spread
