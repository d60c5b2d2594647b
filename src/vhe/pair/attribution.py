"""Contributions of words to the score of a pair in the pair model.

A code is z = t + s: t is the posterior mean with a structure embedding of zero, s the rest. The
cosine of two codes is the sum of

    text part        ½ (t_a·z_b + t_b·z_a) / (‖z_a‖ ‖z_b‖)
    structure part   ½ (s_a·z_b + s_b·z_a) / (‖z_a‖ ‖z_b‖)

which are the Shapley values of text and structure. The contribution of a word is the product of its
vector with the gradient of the text part, with the alignment weights and the length of the text
held fixed. It is exact if the MLP is linear. Terms that do not depend on words (the centre of the
text codes, biases) belong to no word.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vhe.data.text import PADDING
from vhe.pair.embedding import Vectors
from vhe.pair.integrator import text_code
from vhe.pair.model import PairVAE


@dataclass(frozen=True)
class PairAttribution:
    """Contributions of the tokens of two texts to the text part of the cosine of their codes."""

    source: Vectors  # (L_a,)
    target: Vectors  # (L_b,)
    alignment_source: Vectors  # (L_a,) weights of the phrase-to-word alignment
    alignment_target: Vectors  # (L_b,)
    text_score: float  # the text part


def attribute(
    model: PairVAE,
    tokens_a: NDArray[np.int32],
    tokens_b: NDArray[np.int32],
    code_a: Vectors,
    code_b: Vectors,
) -> PairAttribution:
    """Attribute the cosine of two codes (d,) to the tokens (L,) of the two texts."""
    tokens = [_padded(t, model.words.weight.device) for t in (tokens_a, tokens_b)]
    words = [model.words(t[0]).detach().requires_grad_() for t in tokens]  # (L, d_w)
    codes = [torch.from_numpy(np.array(code)).to(words[0]) for code in (code_a, code_b)]
    length = float(codes[0].norm() * codes[1].norm()) or 1.0
    with torch.no_grad():
        weights = model.alignment(model.words.weight, [(tokens[0], tokens[1])]).weights[0]
    texts = [weight @ word for weight, word in zip(weights, words, strict=True)]  # (1, d_w)
    text_rows = torch.cat(texts)
    code_rows = text_code(text_rows, model.integrator.centre, fixed_length=True)
    none = text_rows.new_zeros(2, model.structure.weight.shape[1])
    q = model.integrator.posterior(text_rows, code_rows, none).unlinked
    text = (q.mean_i[0] @ codes[1] + q.mean_j[0] @ codes[0]) / (2 * length)
    gradients = torch.autograd.grad(text, words)
    found = [
        (gradient * word).sum(dim=1).detach().cpu().numpy()[: len(t)]
        for gradient, word, t in zip(gradients, words, (tokens_a, tokens_b), strict=True)
    ]
    aligned = [
        weight[0].cpu().numpy()[: len(t)]
        for weight, t in zip(weights, (tokens_a, tokens_b), strict=True)
    ]
    return PairAttribution(found[0], found[1], aligned[0], aligned[1], float(text.detach()))


def _padded(tokens: NDArray[np.int32], device: torch.device) -> Tensor:
    """The tokens of a text as a batch (1, L); one padding token for an empty text."""
    return torch.from_numpy(np.array([tokens if len(tokens) else [PADDING]], np.int64)).to(device)
