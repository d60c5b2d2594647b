"""The words behind a link, and how much of its score comes from the texts and from the structure.

The score of a pair is the cosine of the codes z_a and z_b. A code is t + s: t is what the model
reads from the vertex's own text alone, s is what its neighbours bring through the structure
embedding. Then

    z_a·z_b  =  ½ (t_a·z_b + t_b·z_a)  +  ½ (s_a·z_b + s_b·z_a)

whose two halves, the parts of text and of structure, are their Shapley values: what each adds to
the score, averaged over which of the two comes first. The text's part is, but for a constant, a
sum over words: a word of a gives ½ of its own part of t_a times z_b.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vhe.data.text import PADDING, as_written, tokenize
from vhe.pair.model import PairVAE


@dataclass(frozen=True)
class Side:
    """One of two texts, word by word.

    Attributes
    ----------
    id : of the vertex; None for a text that is no vertex
    words : every word of the text in its order and spelling, with the share of the text's part
        that it gives to the score: none below 0, 1 together (0 for words that speak against the
        link or that the model does not know; all 0 for a text without a known word)
    alignment : (len(words),) weights of the phrase-to-word alignment, 1 together
    """

    id: Hashable
    words: list[tuple[str, float]]
    alignment: list[float]

    def phrases(self, most: int = 5) -> list[tuple[str, float]]:
        """The runs of words that each weigh more than an average word, the weightiest first.

        A phrase that comes several times has all its weight in one place.
        """
        usual = 1 / max(len(self.words), 1)
        runs: list[list[tuple[str, float]]] = [[]]
        for word in self.words:
            if word[1] > usual:
                runs[-1].append(word)
            elif runs[-1]:
                runs.append([])
        found: dict[str, float] = {}
        for run in filter(None, runs):
            phrase = " ".join(word for word, _ in run)
            found[phrase] = found.get(phrase, 0) + sum(weight for _, weight in run)
        return sorted(found.items(), key=lambda phrase: -phrase[1])[:most]

    def to_dict(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "words": [[word, weight] for word, weight in self.words],
            "alignment": self.alignment,
        }


@dataclass(frozen=True)
class Explanation:
    """Why two vertices are scored as they are.

    Attributes
    ----------
    probability : of a link among as many links as non-links
    network_probability : of a link in a network as sparse as this one, as suggestions show it
    score : that of `VHE.score`, which is exactly ``text_score + structure_score``
    text_share, structure_share : the sizes of those two as shares of 1
    """

    source: Side
    target: Side
    probability: float
    network_probability: float
    score: float
    text_score: float
    structure_score: float

    @property
    def text_share(self) -> float:
        size = abs(self.text_score) + abs(self.structure_score)
        return abs(self.text_score) / size if size else 0.5

    @property
    def structure_share(self) -> float:
        return 1 - self.text_share

    def to_dict(self) -> dict[str, Any]:
        """As one JSON document."""
        return {
            "source": self.source.to_dict(),
            "target": self.target.to_dict(),
            "probability": self.probability,
            "network_probability": self.network_probability,
            "score": self.score,
            "text_score": self.text_score,
            "structure_score": self.structure_score,
            "text_share": self.text_share,
            "structure_share": self.structure_share,
        }

    def to_html(self) -> str:
        """As a page that stands alone: both texts, their words the darker the more they weigh."""
        sides = "".join(_section(side) for side in (self.source, self.target))
        return _PAGE.format(
            title=escape(f"{self.source.id} and {self.target.id}"),
            probability=f"{self.probability:.3f}",
            network=f"{self.network_probability:.3f}",
            score=f"{self.score:.3f}",
            text=f"{100 * self.text_share:.0f}",
            structure=f"{100 * self.structure_share:.0f}",
            sides=sides,
        )


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
<p>Probability of a link {probability} among as many links as non-links, {network} in this
network. Score {score}: {text} % from the texts, {structure} % from the structure.</p>
<div class="bar" aria-hidden="true"><i style="width: {text}%"></i><b></b></div>
{sides}</html>
"""


def _section(side: Side) -> str:
    most = max((weight for _, weight in side.words), default=0) or 1
    words = " ".join(
        f'<mark style="--weight: {weight / most:.2f}" title="{weight:.3f}">{escape(word)}</mark>'
        for word, weight in side.words
    )
    return f"<h2>{escape(str(side.id))}</h2>\n<p>{words}</p>\n"


@dataclass(frozen=True)
class Reading:
    """What is known of an end of the pair.

    Attributes
    ----------
    tokens : (L,) the words the model reads
    code : (d,) z
    own : share of its own text in its structure embedding, under the prior of the whole graph
    """

    id: Hashable
    text: str
    tokens: NDArray[np.int32]
    code: NDArray[np.float32]
    own: float


def explain(
    model: PairVAE,
    vocabulary: frozenset[str],
    center: NDArray[np.float32] | None,
    a: Reading,
    b: Reading,
) -> tuple[Side, Side, float, float]:
    """Both sides, and the parts of their cosine that come from the texts and from the structure.

    ``center`` (d_w,) is the mean code of a text where the structure embedding is the joint
    posterior; None where it is a learned table, or there is none.
    """
    ends = (a, b)
    tokens = [_tokens(end.tokens, model.words.weight.device) for end in ends]
    words = [model.words(t[0]).detach().requires_grad_() for t in tokens]  # (L, d_w) each
    codes = [torch.from_numpy(end.code).to(words[0]) for end in ends]
    length = float(codes[0].norm() * codes[1].norm()) or 1.0
    with torch.no_grad():
        weights = model.alignment(model.words.weight, [(tokens[0], tokens[1])]).weights[0]
    own = [_own_structure(model, end, word, center) for end, word in zip(ends, words, strict=True)]
    if not model.config.embeds_jointly:
        texts = [weight @ word for weight, word in zip(weights, words, strict=True)]
        q = model.integrator(*texts, *own).unlinked
        own = [q.mean_i, q.mean_j]
    text = (own[0][0] @ codes[1] + own[1][0] @ codes[0]) / (2 * length)
    gradients = torch.autograd.grad(text, words)
    source, target = (
        _side(end, vocabulary, (gradient * word).sum(dim=1), weight[0])
        for end, gradient, word, weight in zip(ends, gradients, words, weights, strict=True)
    )
    score, part = float(codes[0] @ codes[1]) / length, float(text.detach())
    return source, target, part, score - part


def _tokens(tokens: NDArray[np.int32], device: torch.device) -> Tensor:
    """A text as the network reads it, (1, L); one place without a word for no text."""
    return torch.from_numpy(np.array([tokens if len(tokens) else [PADDING]], np.int64)).to(device)


def _own_structure(
    model: PairVAE, end: Reading, words: Tensor, center: NDArray[np.float32] | None
) -> Tensor:
    """The part of a structure embedding that is the vertex's own text: (1, d_h).

    The joint posterior is own · m + what neighbours bring, m the text's code; of a learned table
    nothing is the text's.
    """
    if center is None:
        return words.new_zeros(1, model.structure.weight.shape[1])
    _, place, counts = np.unique(end.tokens, return_inverse=True, return_counts=True)
    damped = ((1 + np.log(counts)) / counts)[place] if len(end.tokens) else np.ones(1)
    total = torch.from_numpy(damped).to(words) @ words
    # the length is taken as given: m is then linear in the words, and they share it out exactly
    scale = words.shape[1] ** 0.5 / total.detach().norm().clamp(min=1e-12)
    return end.own * (scale * total - torch.from_numpy(center).to(words) / 2).unsqueeze(0)


def _side(end: Reading, vocabulary: frozenset[str], given: Tensor, weight: Tensor) -> Side:
    """A text with what its words give, and with their weights in the alignment: (L,) both."""
    spelling = as_written(end.text)
    read = [k for k, word in enumerate(tokenize(end.text)) if word in vocabulary]
    read = read[: len(end.tokens)]
    shares, aligned = np.zeros((2, len(spelling)))
    positive = given.detach().clamp(min=0).double().cpu().numpy()
    if read:
        aligned[read] = weight.double().cpu().numpy()
        aligned[read] /= aligned[read].sum()
        # where every word speaks against the link, how much the model looks at them
        shares[read] = positive / positive.sum() if positive.sum() > 0 else aligned[read]
    words = list(zip(spelling, shares.tolist(), strict=True))
    return Side(end.id, words, aligned.tolist())
