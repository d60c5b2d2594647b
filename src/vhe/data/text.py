"""From texts to words to numbers: one packed array of tokens, with an offset for each text."""

from __future__ import annotations

import re
import tempfile
import unicodedata
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

PADDING = 0  # token 0 stands for "no word"; the first word of a vocabulary is token 1
IN_MEMORY = 1 << 26  # a store of more tokens than this (256 MB) stays on disk, memory-mapped
SPOOL = 1 << 22  # tokens that are handled at a time

# Chinese characters and Japanese kana are written without spaces: each is a word.
# Combining marks (accents, vowel signs of Indic and South-East Asian scripts) belong to words
# although `\w` does not match them.
_UNSPACED = (
    "\u3005\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
)
_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"
    "\u0610-\u061a\u064b-\u065f\u0900-\u0963\u0966-\u0dff\u0e00-\u0eff"
    "\u0f71-\u0f84\u1000-\u1049\u1780-\u17d3"
)
_WORD = re.compile(f"[{_UNSPACED}]|(?:(?![{_UNSPACED}_])[\\w{_MARKS}])+")


def tokenize(text: str) -> list[str]:
    """The words of a text, lower-cased, without punctuation.

    >>> tokenize("Graph-based VAEs, in 2019: naïve?")
    ['graph', 'based', 'vaes', 'in', '2019', 'naïve']
    >>> tokenize("图神经 net")
    ['图', '神', '经', 'net']
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return _WORD.findall(text.lower())


def as_written(text: str) -> list[str]:
    """The words of `tokenize`, one for one, in the spelling of the text.

    >>> as_written("Graph-based VAEs")
    ['Graph', 'based', 'VAEs']
    """
    words, tokens = [], []
    for found in _WORD.finditer(text):
        parts = tokenize(found.group())
        tokens += parts
        words += [found.group()] if len(parts) == 1 else parts
    plain = tokenize(text)
    return words if tokens == plain else plain  # signs that only make a word together


@dataclass(frozen=True)
class Corpus:
    """The texts of a network as numbers.

    ``tokens[offsets[i]:offsets[i + 1]]`` are the words of text ``i``; token ``t`` stands for
    ``vocabulary[t - 1]``.
    """

    tokens: NDArray[np.int32]  # (T,)
    offsets: NDArray[np.int64]  # (n + 1,)
    vocabulary: tuple[str, ...]
    cut: int = 0  # how many texts were longer than was allowed

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        return np.diff(self.offsets)

    @classmethod
    def build(cls, texts: Sequence[str], *, min_count: int = 2, max_words: int = 300) -> Corpus:
        """Find the vocabulary of the texts and pack them.

        Words that occur less than ``min_count`` times are left out, unless nothing would be left.
        """
        lookup: dict[str, int] = {}
        with tempfile.TemporaryFile() as spool:
            lengths = _spool(texts, lookup, spool, grow=True)
            counts = np.zeros(len(lookup), dtype=np.int64)
            for chunk in _chunks(spool, int(lengths.sum())):
                counts += np.bincount(chunk, minlength=len(lookup))
            least = min_count if (counts >= min_count).any() else 1
            kept = np.flatnonzero(counts >= least)
            words = np.array(list(lookup), dtype=object)[kept]
            number = np.zeros(len(lookup), dtype=np.int32)
            number[kept] = np.arange(1, len(kept) + 1)
            return cls._pack(spool, lengths, number, tuple(words), max_words)

    @classmethod
    def encode(
        cls, texts: Sequence[str], vocabulary: Sequence[str], *, max_words: int = 300
    ) -> Corpus:
        """Pack texts with a vocabulary that is known already; other words are left out."""
        lookup = {word: number for number, word in enumerate(vocabulary)}
        with tempfile.TemporaryFile() as spool:
            lengths = _spool(texts, lookup, spool, grow=False)
            number = np.arange(1, len(lookup) + 1, dtype=np.int32)
            return cls._pack(spool, lengths, number, tuple(vocabulary), max_words)

    @classmethod
    def _pack(
        cls,
        spool: IO[bytes],
        lengths: NDArray[np.int64],
        number: NDArray[np.int32],
        vocabulary: tuple[str, ...],
        max_words: int,
    ) -> Corpus:
        """Renumber the spooled words, drop those numbered 0, cut each text to ``max_words``."""
        ends = np.cumsum(lengths)
        kept_lengths = np.zeros(len(lengths), dtype=np.int64)
        done = 0
        with tempfile.TemporaryFile() as packed:
            for chunk in _chunks(spool, int(ends[-1]) if len(ends) else 0):
                token = number[chunk]
                text = np.searchsorted(ends, np.arange(done, done + len(chunk)), side="right")
                done += len(chunk)
                token, text = token[token > 0], text[token > 0]
                first = np.searchsorted(text, text)  # where this text starts in the chunk
                place = np.arange(len(text)) - first + kept_lengths[text]
                kept_lengths += np.bincount(text, minlength=len(lengths))
                token[place < max_words].tofile(packed)
            packed.flush()
            cut = int((kept_lengths > max_words).sum())
            kept_lengths = np.minimum(kept_lengths, max_words)
            offsets = np.concatenate([[0], np.cumsum(kept_lengths)])
            tokens = _read(packed, int(offsets[-1]))
        return cls(tokens, offsets, vocabulary, cut)

    def padded(self, texts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The tokens of some texts as a rectangle, shorter ones padded: (len(texts), longest)."""
        lengths = self.lengths[texts]
        width = max(1, int(lengths.max(initial=0)))
        padded = np.full((len(texts), width), PADDING, dtype=np.int64)
        inside = np.arange(width) < lengths[:, None]
        padded[inside] = self.tokens[ranges(self.offsets[texts], lengths)]
        return padded


def ranges(starts: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """start, start + 1, ... for each start, as many as it counts, one range after the other."""
    before = np.cumsum(counts) - counts
    return np.arange(counts.sum()) + np.repeat(starts - before, counts)


def _spool(
    texts: Iterable[str], lookup: dict[str, int], spool: IO[bytes], *, grow: bool
) -> NDArray[np.int64]:
    """Write the number of each word to a file; returns the words of each text."""
    lengths, buffer = array("q"), array("i")
    for text in texts:
        words = tokenize(text)
        before = len(buffer)
        if grow:
            buffer.extend([lookup.setdefault(word, len(lookup)) for word in words])
        else:
            buffer.extend([lookup[word] for word in words if word in lookup])
        lengths.append(len(buffer) - before)
        if len(buffer) >= SPOOL:
            buffer.tofile(spool)
            buffer = array("i")
    buffer.tofile(spool)
    spool.flush()
    return np.array(lengths, dtype=np.int64)


def _chunks(spool: IO[bytes], total: int) -> Iterable[NDArray[np.int32]]:
    spool.seek(0)
    for start in range(0, total, SPOOL):
        yield np.frombuffer(spool.read(4 * min(SPOOL, total - start)), dtype=np.int32)


def _read(file: IO[bytes], count: int) -> NDArray[Any]:
    """The packed tokens: in memory, or mapped from the (unnamed) file when there are many."""
    if count > IN_MEMORY:
        return np.memmap(file, dtype=np.int32, mode="r", shape=(count,))
    file.seek(0)
    return np.frombuffer(file.read(4 * count), dtype=np.int32)
