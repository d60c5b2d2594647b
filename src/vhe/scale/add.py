"""New vertices of a model in shards: one more part, embedded from texts and links.

The rows that new vertices are coupled with, their nearest texts and the ends of their links, are
gathered from the shards; given these, the posterior is that of `vhe.graph.inductive`. The shards of
the model are shared with the new folder (hard links) where they do not change.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vhe.data.text import Corpus
from vhe.errors import VHEError
from vhe.graph.inductive import embed_new, text_directions
from vhe.graph.model import NEIGHBOURS, GraphModel, TextNeighbours
from vhe.runtime.arrays import distinct
from vhe.runtime.messages import shown
from vhe.scale.checked import SUGGESTION
from vhe.scale.ids import arrow_shard, bucket_starts, hashed
from vhe.scale.model import MODEL_FILE, ShardedModel
from vhe.scale.shards import Numbers, read_array, shard, write_array, write_json
from vhe.scale.words import read_words, write_vertices


def add_vertices(
    model: ShardedModel,
    out: str | Path,
    texts: dict[Any, str],
    edges: Iterable[tuple[Hashable, Hashable]] = (),
) -> ShardedModel:
    """Write a model with new vertices to the new folder ``out``, without retraining.

    ``texts`` are those of the new vertices by id; each edge has at least one of them. The
    embeddings of the others do not change. Suggestions are those of the fit: new vertices have
    none.
    """
    folder, n = Path(out), len(model)
    if folder.exists():
        raise VHEError(f"{folder} exists: choose another folder")
    ids = model.as_ids(texts)
    known = model.find(ids)
    if (known >= 0).any():
        name = shown(ids[int(np.argmax(known >= 0))])
        raise VHEError(f"duplicate id {name}: the model has this vertex; use a new id")
    links = _links(model, ids, list(edges))
    corpus = Corpus.encode(
        list(texts.values()),
        read_words(model.folder / "vocabulary.json"),
        max_words=model.info_["config"]["max_words"],
    )
    graph = _graph(model, np.zeros(0, np.int64))
    nothing = np.zeros((len(ids), 0), np.float32)
    near = _nearest(model, text_directions(graph, corpus, nothing))
    used = distinct(np.append(near, links[links < n]))
    local = np.where(links < n, np.searchsorted(used, links), links - n + len(used))
    directions, degrees = (table.take(used) for table in (model.texts, model.degree))
    found = embed_new(
        _graph(model, used), directions, degrees[:, 0].astype(np.int64), corpus, nothing, local
    )
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        shutil.copytree(model.folder, partial, copy_function=_link)
        part = len(model.info_["part_rows"])
        write_vertices(arrow_shard(partial, part), ids, list(texts.values()))
        suggestions = np.full((len(ids), model.suggestions), -1, dtype=SUGGESTION)
        suggestions["probability"] = 0
        degree = np.bincount(links[links >= n] - n, minlength=len(ids))
        tables: dict[str, Any] = {
            "embedding": found.mean,
            "std": np.sqrt(found.variance)[:, None],
            "suggestions": suggestions,
            "texts": text_directions(graph, corpus, nothing),
            "degree": degree[:, None].astype(np.int32),
        }
        for name, table in tables.items():
            write_array(shard(partial, name, part), table)
        _count_links(model, partial, links[links < n])
        _extend_index(model, partial, ids)
        info = model.info_ | {
            "part_rows": [*model.info_["part_rows"], len(ids)],
            "vertices": n + len(ids),
            "links": model.info_["links"] + len(links),
        }
        write_json(partial / MODEL_FILE, info)
        partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return ShardedModel(folder)


def _links(model: ShardedModel, ids: Sequence[Any], edges: list[Any]) -> Numbers:
    """The distinct links (m, 2) of new vertices by row; new vertices are numbered from n on."""
    n, position = len(model), {vertex: k for k, vertex in enumerate(ids)}
    ends = model.as_ids(end for edge in edges for end in edge)
    rows = np.array([position.get(end, -1) for end in ends], dtype=np.int64)
    old = np.flatnonzero(rows < 0)
    rows += n
    rows[old] = model.rows([ends[k] for k in old])
    pairs = rows.reshape(-1, 2)
    between = np.flatnonzero((pairs < n).all(axis=1))
    if len(between):
        first, second = (shown(ends[2 * int(between[0]) + end]) for end in (0, 1))
        raise VHEError(
            f"the edge of {first} and {second} is between two existing vertices; remove it and "
            "fit again to use it"
        )
    pairs = np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1)
    return np.unique(pairs, axis=0)


def _graph(model: ShardedModel, rows: Numbers) -> GraphModel:
    """What `embed_new` reads of some vertices."""
    info, none = model.info_, np.zeros((len(rows), 0), np.float32)
    ones = np.ones(len(rows), np.float32)
    mean, std = model.posterior(rows)
    return GraphModel(
        words=np.asarray(read_array(model.folder / "words.npy")),
        centre=np.asarray(read_array(model.folder / "codes-centre.npy")),
        vectors=none,
        mean=mean,
        variance=std[:, 0] ** 2,
        precision=ones,
        diagonal=ones,
        neighbours=TextNeighbours(np.zeros((0, 2), np.int64), np.zeros(0, np.float32)),
        link_strength=info["link_strength"],
        text_knn_weight=info["text_knn_weight"],
        mean_log_length=info["mean_log_length"],
        encoder_weight=0.0,
    )


def _nearest(model: ShardedModel, new: Any) -> Numbers:
    """The rows of the nearest texts of each new text: (k, `NEIGHBOURS`), or of all if fewer."""
    found = []
    for some in np.array_split(new, max(1, len(new) * max(model.info_["part_rows"]) >> 24)):
        best: Any = np.zeros((len(some), 0), np.float32)
        rows: Any = np.zeros((len(some), 0), np.int64)
        for part, start in enumerate(model.texts.starts[:-1]):
            cosine = some @ model.texts.shard(part).T
            numbers = np.broadcast_to(start + np.arange(cosine.shape[1]), cosine.shape)
            best, rows = np.append(best, cosine, axis=1), np.append(rows, numbers, axis=1)
            nearest = np.argsort(-best, axis=1, kind="stable")[:, :NEIGHBOURS]
            best, rows = (np.take_along_axis(a, nearest, axis=1) for a in (best, rows))
        found.append(rows)
    return np.concatenate(found)


def _count_links(model: ShardedModel, out: Path, ends: Numbers) -> None:
    """Add links to the degrees of the vertices of the model."""
    starts = model.degree.starts
    parts = np.searchsorted(starts, ends, side="right") - 1
    for part in np.unique(parts).tolist():
        degree = np.array(model.degree.shard(part))
        np.add.at(degree[:, 0], ends[parts == part] - starts[part], 1)
        write_array(shard(out, "degree", part), degree)


def _extend_index(model: ShardedModel, out: Path, ids: Sequence[Any]) -> None:
    entries = hashed(list(ids), model.info_["id_type"])
    entries["row"] = len(model) + np.arange(len(ids))
    starts = bucket_starts(model.info_["buckets"])
    buckets = np.searchsorted(starts, entries["hash"], side="right") - 1
    for bucket in np.unique(buckets).tolist():
        path = shard(out, "index", bucket)
        every = np.concatenate([read_array(path), entries[buckets == bucket]])
        order = np.lexsort((every["row"], every["check"], every["hash"]))
        write_array(path, every[order])


def _link(source: str, target: str) -> None:
    """Share a file; no shard is ever changed in place."""
    with contextlib.suppress(OSError):
        os.link(source, target)
        return
    shutil.copy2(source, target)
