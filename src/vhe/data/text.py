"""Tokens: texts as one packed array of word indices, with an offset per text."""

from __future__ import annotations

import re
import tempfile
import unicodedata
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from vhe.errors import VHEError
from vhe.runtime.arrays import release

Report = Callable[[int, int], None]  # texts done, all texts

PADDING = 0  # the token for "no word"; the first word of a vocabulary is token 1
IN_MEMORY = 1 << 26  # more tokens than this (256 MB) stay on disk, memory-mapped
BLOCK = 1 << 22  # tokens processed at a time
REPORT_EVERY = 1000  # texts between two reports of progress

# Chinese characters and Japanese kana are written without spaces: each is one word.
# Combining marks (accents, vowel signs of Indic and South-East Asian scripts) are part of words,
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
_ASCII_WORD = re.compile("[a-z0-9]+")  # the same for lower-case ASCII, and several times as fast


def tokenize(text: str) -> list[str]:
    """Split a text into lower-case words without punctuation.

    >>> tokenize("Graph-based VAEs, in 2019: naïve?")
    ['graph', 'based', 'vaes', 'in', '2019', 'naïve']
    >>> tokenize("图神经 net")
    ['图', '神', '经', 'net']
    """
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    return _WORD.findall(unicodedata.normalize("NFKC", text).lower())


def original_spelling(text: str) -> list[str]:
    """Return the words of `tokenize`, in the same order, as they are spelled in the text.

    >>> original_spelling("Graph-based VAEs")
    ['Graph', 'based', 'VAEs']
    """
    words, tokens = [], []
    for found in _WORD.finditer(text):
        parts = tokenize(found.group())
        tokens += parts
        words += [found.group()] if len(parts) == 1 else parts
    expected = tokenize(text)
    # Normalisation of the whole text can join characters that are separate words on their own.
    return words if tokens == expected else expected


@dataclass(frozen=True)
class Corpus:
    """The texts of a network as tokens.

    ``tokens[offsets[i]:offsets[i + 1]]`` are the words of text ``i``; token ``t`` stands for
    ``vocabulary[t - 1]``.
    """

    tokens: NDArray[np.int32]  # (T,)
    offsets: NDArray[np.int64]  # (n + 1,)
    vocabulary: tuple[str, ...]
    truncated: int = 0  # number of texts longer than max_words

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        return np.diff(self.offsets)

    @classmethod
    def build(
        cls,
        texts: Sequence[str],
        *,
        min_count: int = 2,
        max_words: int = 300,
        progress: Report | None = None,
    ) -> Corpus:
        """Collect the vocabulary of the texts and encode them.

        Words with fewer than ``min_count`` occurrences are omitted, unless all words are so rare.
        """
        lookup: dict[str, int] = {}
        with _TokenFile() as spool, _TokenFile() as packed:
            for text in _reported(texts, progress):
                spool.append([lookup.setdefault(word, len(lookup)) for word in tokenize(text)])
            found, offsets = spool.read()
            counts = np.zeros(len(lookup), dtype=np.int64)
            for start in range(0, len(found), BLOCK):
                counts += np.bincount(found[start : start + BLOCK], minlength=len(lookup))
            threshold = min_count if (counts >= min_count).any() else 1
            frequent = np.flatnonzero(counts >= threshold)
            token_of = np.full(len(lookup), PADDING, dtype=np.int32)
            token_of[frequent] = np.arange(1, len(frequent) + 1)
            truncated = 0
            for first, last in _blocks(offsets):
                tokens = token_of[found[offsets[first] : offsets[last]]]
                truncated += packed.append_texts(
                    *limited(tokens, offsets[first : last + 1] - offsets[first], max_words)
                )
            words = np.array(list(lookup), dtype=object)[frequent]
            return cls(*packed.read(), tuple(words), truncated)

    @classmethod
    def encode(
        cls,
        texts: Sequence[str],
        vocabulary: Sequence[str],
        *,
        max_words: int = 300,
    ) -> Corpus:
        """Encode texts with a given vocabulary; words outside it are omitted."""
        lookup = {word: token for token, word in enumerate(vocabulary, start=1)}
        truncated = 0
        with _TokenFile() as packed:
            for text in texts:
                tokens = [lookup[word] for word in tokenize(text) if word in lookup]
                truncated += len(tokens) > max_words
                packed.append(tokens[:max_words])
            return cls(*packed.read(), tuple(vocabulary), truncated)

    def select(self, texts: NDArray[np.int64]) -> Corpus:
        """Return some texts, in the given order."""
        lengths = self.lengths[texts]
        tokens = self.tokens[concatenated_ranges(self.offsets[texts], lengths)]
        release(self.tokens)
        return replace(self, tokens=tokens, offsets=np.append(0, np.cumsum(lengths)))

    def joined(self, other: Corpus) -> Corpus:
        """Return the texts of this corpus, then those of another one in the same vocabulary."""
        return replace(
            self,
            tokens=np.concatenate([self.tokens, other.tokens]),
            offsets=np.append(self.offsets, self.offsets[-1] + other.offsets[1:]),
            truncated=self.truncated + other.truncated,
        )

    def padded(self, texts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the tokens of some texts, padded to the longest: (len(texts), longest)."""
        lengths = self.lengths[texts]
        width = max(1, int(lengths.max(initial=0)))
        padded = np.full((len(texts), width), PADDING, dtype=np.int64)
        inside = np.arange(width) < lengths[:, None]
        padded[inside] = self.tokens[concatenated_ranges(self.offsets[texts], lengths)]
        return padded


def concatenated_ranges(starts: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Concatenate the ranges start, start + 1, ..., start + count - 1.

    >>> concatenated_ranges(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    before = np.cumsum(counts) - counts
    return np.arange(counts.sum()) + np.repeat(starts - before, counts)


def limited(
    tokens: NDArray[np.int32], offsets: NDArray[np.int64], max_words: int
) -> tuple[NDArray[np.int32], NDArray[np.int64], int]:
    """Leave out padding and what is beyond ``max_words`` in each text.

    Returns the tokens, the number of each text, and how many texts were truncated.
    """
    known = tokens != PADDING
    before = np.append(0, np.cumsum(known))  # known words before each position
    rank = before[:-1] - np.repeat(before[offsets[:-1]], np.diff(offsets))
    lengths = np.diff(before[offsets])
    chosen = tokens[known & (rank < max_words)]
    return chosen, np.minimum(lengths, max_words), int((lengths > max_words).sum())


def _blocks(offsets: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Ranges of consecutive texts of about `BLOCK` tokens together."""
    inside = np.searchsorted(offsets, np.arange(0, offsets[-1], BLOCK))
    return pairwise(np.unique([0, *inside, len(offsets) - 1]).tolist())


def _reported(texts: Sequence[str], progress: Report | None) -> Iterator[str]:
    """Yield the texts, and report how many are done."""
    for done, text in enumerate(texts, start=1):
        yield text
        if progress is not None and (done % REPORT_EVERY == 0 or done == len(texts)):
            progress(done, len(texts))


class _TokenFile:
    """The tokens of consecutive texts, in a temporary file without a name; closed on exit."""

    def __init__(self) -> None:
        self._lengths, self._buffer = array("q"), array("i")
        with _temporary_folder_errors():
            # unbuffered: a buffer could fail as late as in `close`
            self._file: Any = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()

    def append(self, tokens: list[int]) -> None:
        """Append the tokens of the next text."""
        before = len(self._buffer)
        self._buffer.extend(tokens)
        self._lengths.append(len(self._buffer) - before)
        if len(self._buffer) >= BLOCK:
            self._flush()

    def append_texts(
        self, tokens: NDArray[np.int32], lengths: NDArray[np.int64], truncated: int
    ) -> int:
        """Append the tokens of several texts; return the number of truncated ones."""
        self._buffer.frombytes(tokens.tobytes())
        self._lengths.frombytes(lengths.astype(np.int64).tobytes())
        if len(self._buffer) >= BLOCK:
            self._flush()
        return truncated

    def read(self) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return all tokens, memory-mapped if there are many, and the offsets of the texts."""
        self._flush()
        offsets = np.append(0, np.cumsum(self._lengths, dtype=np.int64))
        count = int(offsets[-1])
        if count > IN_MEMORY:
            return np.memmap(self._file, dtype=np.int32, mode="r", shape=(count,)), offsets
        self._file.seek(0)
        return np.frombuffer(self._file.read(4 * count), dtype=np.int32), offsets

    def _flush(self) -> None:
        left = memoryview(self._buffer).cast("B")
        with _temporary_folder_errors():
            while left:
                left = left[self._file.write(left) :]
        self._buffer = array("i")


@contextmanager
def _temporary_folder_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise VHEError(
            "the tokens of the texts cannot be written to the temporary folder "
            f"({error.strerror or error}); free space there or set TMPDIR to another folder."
        ) from error
