"""Texts: vocabulary, tokens, word vectors from a sampled subgraph, text codes.

The words of a part are numbered in the order of their first occurrence. Merging the counts of the
parts in their order gives the vocabulary that `vhe.data.text.Corpus.build` gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vhe.config import VHEConfig
from vhe.data.network import TextNetwork
from vhe.data.sampling import random_stream
from vhe.data.text import PADDING, Corpus, limited, tokenize
from vhe.estimators import VHE
from vhe.predict.predictor import snippet
from vhe.runtime.arrays import distinct, unit_rows
from vhe.runtime.device import using_threads
from vhe.runtime.files import atomic_write
from vhe.scale.engine import Engine
from vhe.scale.ids import arrow_shard, hashed
from vhe.scale.inputs import Piece, read_parts
from vhe.scale.shards import (
    Numbers,
    Ragged,
    read_array,
    shard,
    write_array,
    write_json,
    write_ragged,
)
from vhe.text.lsa import lsa_word_vectors, random_word_vectors, scaled_codes

PRUNED = 8  # counts of more than PRUNED * max_vocabulary words lose the rarest
SAMPLE_STREAM = 20
SEED_SHARE = 16  # one of this many sampled vertices is drawn at random, the others are near them
LINK_FEATURES = "scales", "words", "degree"  # what suggestions read of vertices of other blocks

Counts = dict[str, int]


def read_vertices(piece: Piece, work: Path, out: Path, id_type: str, limit: int) -> Counts:
    """Tokenise the texts of a piece and hash its ids; return the number of each word."""
    counts: Counts = {}
    row = piece.first_row
    for part, columns in enumerate(read_parts(piece), start=piece.first_part):
        ids, texts = columns["id"], columns["text"]
        entries = hashed(ids, id_type)
        entries["row"] = np.arange(row, row + len(ids))
        write_array(shard(work, "keys", part), np.sort(entries, order="hash"))
        write_vertices(arrow_shard(out, part), ids, texts)
        local: dict[str, int] = {}
        tokens = [
            np.array([local.setdefault(w, len(local)) for w in tokenize(text)], dtype=np.int32)
            for text in texts
        ]
        offsets = np.append(0, np.cumsum([len(t) for t in tokens])).astype(np.int64)
        values = np.concatenate(tokens) if tokens else np.zeros(0, np.int32)
        write_ragged(work, "spool", part, values, offsets)
        write_json(_spool_words(work, part), list(local))
        found = np.bincount(values, minlength=len(local)).tolist()
        counts = merge_counts([counts, dict(zip(local, found, strict=True))], limit)
        row += len(ids)
    return counts


def merge_counts(parts: Sequence[Counts], limit: int) -> Counts:
    """The sum of counts, in the order of first occurrence.

    Beyond ``limit`` words, the rarest are dropped.
    """
    total = dict(parts[0])
    for counts in parts[1:]:
        for word, count in counts.items():
            total[word] = total.get(word, 0) + count
    return most_frequent(total, limit)


def most_frequent(counts: Counts, limit: int) -> Counts:
    """At most ``limit`` words, in their order; of equally frequent ones the first."""
    if len(counts) <= limit:
        return counts
    kept = set(sorted(counts, key=lambda word: -counts[word])[:limit])
    return {word: count for word, count in counts.items() if word in kept}


def vocabulary_of(counts: Counts, min_count: int, limit: int) -> list[str]:
    """Words with at least ``min_count`` occurrences, or all if all are rarer."""
    frequent = {word: count for word, count in counts.items() if count >= min_count}
    return list(most_frequent(frequent or counts, limit))


def encode(part: int, work: Path, vocabulary: Path, max_words: int) -> dict[str, Any]:
    """Write the tokens of a part; return document frequencies and a histogram of lengths."""
    words = read_words(vocabulary)
    lookup = {word: token for token, word in enumerate(words, start=1)}
    local = read_words(_spool_words(work, part))
    token_of = np.array([lookup.get(word, PADDING) for word in local] or [0], dtype=np.int32)
    spool = read_array(shard(work, "spool", part))
    offsets = np.asarray(read_array(shard(work, "spool-offsets", part)))
    tokens, clipped, truncated = limited(token_of[spool], offsets, max_words)
    write_ragged(work, "tokens", part, tokens, np.append(0, np.cumsum(clipped)))
    text = np.repeat(np.arange(len(clipped)), clipped)
    entries = distinct(text * (len(words) + 1) + tokens) % (len(words) + 1)
    return {
        "frequency": np.bincount(entries, minlength=len(words) + 1)[1:],
        "lengths": np.bincount(clipped, minlength=max_words + 1),
        "truncated": truncated,
    }


def add_up(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {name: sum(part[name] for part in parts) for name in parts[0]}


def corpus_of(tokens: Ragged, rows: Numbers, words: Sequence[str]) -> Corpus:
    """The tokens of some rows."""
    values, offsets = tokens.take_ragged(rows)
    return Corpus(values, offsets, tuple(words))


# --- word vectors


def sample_subgraph(
    engine: Engine, work: Path, n: int, edge_parts: int, size: int, seed: int
) -> Any:
    """Rows (k,), sorted, of a connected sample of the network, and its edges (m, 2) by position.

    Random vertices, their neighbours, the neighbours of those, and so on: most vertices of the
    sample have all their links in it.
    """
    rng = random_stream(seed, SAMPLE_STREAM)
    if n <= size:
        rows = np.arange(n)
    else:
        rows = np.sort(rng.choice(n, max(1, size // SEED_SHARE), replace=False))
    frontier = rows
    while len(rows) < min(size, n):
        found = engine.map("sampling", _neighbours, range(edge_parts), work, frontier)
        found = np.setdiff1d(np.concatenate(found), rows)
        if not len(found):
            found = np.setdiff1d(rng.choice(n, min(n, 2 * size), replace=False), rows)
        frontier = np.sort(rng.permutation(found)[: size - len(rows)])
        rows = np.union1d(rows, frontier)
    edges = engine.map("sampling", _inside, range(edge_parts), work, rows)
    return rows, np.searchsorted(rows, np.concatenate(edges))


def train(
    work: Path,
    out: Path,
    part_rows: list[int],
    config: VHEConfig,
    seed: int,
) -> dict[str, Any]:
    """Fit `VHE` to the sampled subgraph and write its word vectors, (1 + V, d) each.

    Words that the sample does not contain have the vector 0.
    """
    words = read_words(out / "vocabulary.json")
    rows, edges = (
        np.asarray(read_array(work / f"sample-{name}.npy")) for name in ("rows", "edges")
    )
    corpus = corpus_of(Ragged(work, "tokens", part_rows), rows, words)
    names = np.array(["", *words], dtype=object)
    texts = [" ".join(names[t]) for t in np.split(corpus.tokens, corpus.offsets[1:-1])]
    network = TextNetwork(range(len(rows)), texts, edges, name="sample")
    features = [name for name in LINK_FEATURES if name in config.link_features.split(",")]
    # rare words of the network are left out already
    settings = config.replace(min_count=1, link_features=",".join(features))
    model = VHE.from_config(settings, random_state=seed)
    model.set_params(verbose=False, threads=1)
    model.fit(network)
    known = model.vocabulary_
    dim = config.latent_dim
    with using_threads(1):  # as the fit computed them
        encoded = Corpus.encode(texts, known, max_words=config.max_words)
        initial = (
            lsa_word_vectors(encoded, dim, seed)
            if config.word_init == "lsa"
            else random_word_vectors(len(known), dim, seed)
        )
    lookup = {word: token for token, word in enumerate(words, start=1)}
    token = np.array([lookup[word] for word in known], dtype=np.int64)
    for name, vectors in (("initial", initial), ("words", model._graph.words[1:])):
        table = np.zeros((len(words) + 1, dim), dtype=np.float32)
        table[token] = vectors
        write_array((work if name == "initial" else out) / f"{name}.npy", table)
    return {
        "link_strength": float(model._graph.link_strength),
        "text_knn_weight": float(model._graph.text_knn_weight),
        "link_posterior": asdict(model._link_posterior),
        "result": {k: v for k, v in model.result_.items() if k != "reliability"},
    }


def write_codes(part: int, work: Path, out: Path, part_rows: list[int]) -> dict[str, Any]:
    """Write the scaled codes of a part by initial and fine-tuned words; return their sums."""
    words = read_words(out / "vocabulary.json")
    start = sum(part_rows[:part])
    tokens = Ragged(work, "tokens", part_rows)
    corpus = corpus_of(tokens, np.arange(start, start + part_rows[part]), words)
    sums: dict[str, Any] = {}
    for table, path in (("initial", work / "initial.npy"), ("codes", out / "words.npy")):
        scaled = scaled_codes(corpus, np.asarray(read_array(path)))
        write_array(shard(work, table, part), scaled)
        filled = scaled.any(axis=1)
        sums[table] = scaled.sum(axis=0, dtype=np.float64)
        sums[f"{table}-filled"] = int(filled.sum())
    write_array(shard(work, "empty", part), start + np.flatnonzero(~filled))
    return sums


def directions(scaled: NDArray[np.float32], centre: NDArray[np.float32]) -> NDArray[np.float32]:
    """Centred codes of unit length; zero for an empty text."""
    filled = scaled.any(axis=1, keepdims=True)
    centred: NDArray[np.float32] = unit_rows(np.where(filled, scaled - centre, np.float32(0)))
    return centred


def read_words(path: Path) -> list[str]:
    import json

    return list(json.loads(path.read_text(encoding="utf-8")))


def _spool_words(work: Path, part: int) -> Path:
    return work / "spool-words" / f"{part:05d}.json"


def write_vertices(path: Path, ids: list[Any], texts: list[str]) -> None:
    """Write the ids of a part and the beginnings of its texts."""
    import pyarrow

    table = pyarrow.table({"id": ids, "text": [snippet(text) for text in texts]})
    with (
        atomic_write(path) as temporary,
        pyarrow.OSFile(str(temporary), "wb") as file,
        pyarrow.ipc.new_file(file, table.schema) as writer,
    ):
        writer.write_table(table)


def _neighbours(part: int, work: Path, rows: Numbers) -> Numbers:
    edges = read_array(shard(work, "edges", part))
    near = [edges[_among(edges[:, end], rows), 1 - end] for end in (0, 1)]
    return np.unique(np.concatenate(near))


def _inside(part: int, work: Path, rows: Numbers) -> Numbers:
    edges = np.asarray(read_array(shard(work, "edges", part)))
    return edges[_among(edges[:, 0], rows) & _among(edges[:, 1], rows)]


def _among(values: Numbers, rows: Numbers) -> NDArray[np.bool_]:
    """Which values are in a sorted array."""
    position = np.minimum(np.searchsorted(rows, values), len(rows) - 1)
    found: NDArray[np.bool_] = rows[position] == values
    return found
