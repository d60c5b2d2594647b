"""The fit in phases; the output of each is a checkpoint."""

from __future__ import annotations

import json
import logging
import secrets
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from vhe.config import VHEConfig
from vhe.errors import VHEError
from vhe.graph.isolated import isolated_weight
from vhe.graph.posterior import PROBES
from vhe.predict.link_posterior import LinkPosterior
from vhe.predict.pair_features import LINK_STRENGTHS
from vhe.runtime.provenance import provenance
from vhe.runtime.tables import parse_bytes
from vhe.scale import couplings, ids, isolated, lists, model, solver, suggest, words
from vhe.scale.centroids import find_centroids
from vhe.scale.engine import Applied, Engine, OnPhase, connected
from vhe.scale.inputs import Dataset, part_files, read_dataset
from vhe.scale.shards import read_array, write_array, write_json
from vhe.storage.locks import folder_lock

logger = logging.getLogger(__name__)

WORK = "work"  # subfolder for the checkpoints, deleted at the end
ROWS_PER_PART, ROWS_PER_BLOCK = 50_000, 65_536
LEAST_BLOCKS = 8  # so that the workers of a small network have something to do
BYTES_PER_TEXT = 20_000  # of memory, while it is tokenised
ROWS_PER_SEARCH = 4096  # vertices whose suggestions a task finds
BYTES_PER_SEARCH = 400_000  # of memory, for each of them
STATE_BYTES = 12  # of the solver, per vertex and column
STATE_SHARE = 0.25  # of the memory of the workers


def fit(
    vertices: str | Path,
    edges: str | Path,
    out: str | Path,
    *,
    scheduler: str = "local",
    workers: int = 2,
    resume: bool = False,
    max_memory: int | str | None = None,
    config: VHEConfig | None = None,
    seed: int | None = None,
    sample: int = 20_000,
    max_vocabulary: int = 300_000,
    suggestions: int = 10,
    rows_per_part: int | None = None,
    rows_per_block: int | None = None,
    verbose: bool = True,
    on_phase: OnPhase | None = None,
) -> model.ShardedModel:
    """Fit `vhe.VHE` to Parquet datasets with the workers of a Dask cluster.

    Parameters
    ----------
    vertices, edges : folders of part files, or files: local paths or URLs of fsspec
    out : folder for the model, on a file system that all workers share
    scheduler : address of a Dask scheduler; "local" starts one with ``workers`` processes
    resume : continue the unfinished fit in ``out`` after its last finished phase
    max_memory : of a worker, in bytes or such as "3GB"; less memory means more, smaller blocks
        (default: the limit of the Dask workers)
    config : settings of `vhe.VHE`; of ``link_features``, structure is not used
    seed : random seed (default: drawn)
    sample : vertices of the subgraph that word vectors and link posterior are fitted to
    max_vocabulary : words, the most frequent ones
    suggestions : missing links per vertex
    rows_per_part, rows_per_block : vertices that a task handles at a time
    on_phase : called with the name of a phase and "start" or "end"
    """
    folder = Path(out).absolute()
    work = folder / WORK
    memory = _bytes(max_memory)
    with folder_lock(folder, "scale"):
        files = [part_files(str(path)) for path in (vertices, edges)]
        run = {
            "vertices": files[0],
            "edges": files[1],
            "settings": (config or VHEConfig()).to_dict(),
            "sample": sample,
            "max_vocabulary": max_vocabulary,
            "suggestions": suggestions,
        }
        seed = _prepare_folder(folder, run, seed, resume)
        with connected(scheduler, workers, memory, work / "dask") as client:
            engine = Engine(client, work, show=verbose, on_phase=on_phase)
            phases = Phases(engine, folder, config or VHEConfig(), seed, run, memory)
            phases.run(rows_per_part, rows_per_block)
        shutil.rmtree(work, ignore_errors=True)
    return model.ShardedModel(folder)


class Phases:
    """The phases of one fit, in their order."""

    def __init__(
        self,
        engine: Engine,
        out: Path,
        config: VHEConfig,
        seed: int,
        run: dict[str, Any],
        memory: int | None,
    ) -> None:
        self.engine, self.out, self.work = engine, out, engine.folder
        self.config, self.seed, self.settings = config, seed, run
        self.threads, limit = engine.worker_memory()
        self.memory = min(memory or limit, limit)

    def run(self, rows_per_part: int | None, rows_per_block: int | None) -> None:
        phase, dim = self.engine.phase, self.config.latent_dim
        rows = rows_per_part or max(1000, min(ROWS_PER_PART, self.memory // BYTES_PER_TEXT))
        found = phase("inputs", lambda: self._inputs(rows))
        self.vertices, self.edges = (Dataset.from_dict(found[k]) for k in ("vertices", "edges"))
        self.part_rows = self.vertices.part_rows
        self.edge_parts = len(self.edges.part_rows)
        self.n = sum(self.part_rows)
        phase("vocabulary", self._vocabulary)
        self.texts = phase("tokens", self._tokens)
        self.buckets = phase("edges", self._edges)
        self.trained = phase("words", self._words)
        self.posterior = LinkPosterior(**self.trained["link_posterior"])
        phase("codes", self._codes)
        block = rows_per_block or max(
            1, min(ROWS_PER_BLOCK, -(-self.n // LEAST_BLOCKS), self.memory // (dim * 160))
        )
        self.sizes: list[int] = phase("lists", lambda: self._lists(block))
        self.starts = np.asarray(read_array(self.work / "list-starts.npy"))
        phase("neighbours", self._neighbours)
        self.links = phase("couplings", self._couplings)
        names = ["embedding", *(name for name in LINK_STRENGTHS if name in self.posterior.names)]
        for name in names:
            found = phase(f"system of {name}", partial(self._system, name))
            system = solver.System(self.work, name, self.sizes, **found)
            columns = {name: dim} | ({solver.VARIANCE: PROBES} if name == "embedding" else {})
            phase(f"posterior of {name}", partial(self._solve, system, columns))
        phase("isolated vertices", self._isolated)
        self.ranges: list[int] = phase("lists of embeddings", self._embedding_lists)
        phase("suggestions", self._suggestions)
        phase("model", self._model)

    def _inputs(self, rows: int) -> dict[str, Any]:
        edge_rows = 8 * rows
        vertices, edges = (
            read_dataset(self.engine, list(self.settings[name]), meanings, id_columns, count)
            for name, meanings, id_columns, count in (
                ("vertices", ("id", "text"), ("id",), rows),
                ("edges", ("source", "target"), ("source", "target"), edge_rows),
            )
        )
        if not vertices.part_rows:
            raise VHEError(f"{next(iter(self.settings['vertices']))}: no vertices")
        if not edges.part_rows:
            raise VHEError(f"{next(iter(self.settings['edges']))}: no link to learn from")
        if vertices.id_type != edges.id_type:
            raise VHEError(
                f"{next(iter(self.settings['edges']))}: the ids of edges are {edges.id_type}s, "
                f"but those of vertices are {vertices.id_type}s: use one type."
            )
        return {"vertices": vertices.to_dict(), "edges": edges.to_dict()}

    def _vocabulary(self) -> int:
        limit = words.PRUNED * self.settings["max_vocabulary"]
        counts = self.engine.reduce(
            "vocabulary",
            words.read_vertices,
            self.vertices.pieces,
            self.work,
            self.out,
            self.vertices.id_type,
            limit,
            combine=Applied(words.merge_counts, (limit,)),
        )
        vocabulary = words.vocabulary_of(
            counts, self.config.min_count, self.settings["max_vocabulary"]
        )
        write_json(self.out / "vocabulary.json", vocabulary)
        return len(vocabulary)

    def _tokens(self) -> dict[str, Any]:
        found = self.engine.reduce(
            "tokens",
            words.encode,
            range(len(self.part_rows)),
            self.work,
            self.out / "vocabulary.json",
            self.config.max_words,
            combine=words.add_up,
        )
        idf = np.log((1 + self.n) / (1 + found["frequency"])) + 1
        write_array(self.out / "idf.npy", idf.astype(np.float32))
        logs = np.log1p(np.arange(len(found["lengths"])))
        if found["truncated"]:
            logger.warning(
                f"{found['truncated']:,} of {self.n:,} texts were truncated to "
                f"{self.config.max_words} words (max_words)",
            )
        return {"mean_log_length": float((logs * found["lengths"]).sum() / self.n)}

    def _edges(self) -> int:
        buckets = -(-self.n // ids.ROWS_PER_BUCKET)
        self.engine.map(
            "index of ids",
            ids.merge_bucket,
            range(buckets),
            self.work,
            self.out,
            buckets,
            len(self.part_rows),
            self.part_rows,
        )
        self.engine.map(
            "edges",
            ids.resolve_edges,
            self.edges.pieces,
            self.work,
            self.out,
            buckets,
            self.vertices.id_type,
        )
        return buckets

    def _words(self) -> dict[str, Any]:
        rows, edges = words.sample_subgraph(
            self.engine, self.work, self.n, self.edge_parts, self.settings["sample"], self.seed
        )
        write_array(self.work / "sample-rows.npy", rows)
        write_array(self.work / "sample-edges.npy", edges)
        (found,) = self.engine.map(
            "word vectors",
            words.train,
            [self.work],
            self.out,
            self.part_rows,
            self.config,
            self.seed,
        )
        return dict(found)

    def _codes(self) -> None:
        sums = self.engine.reduce(
            "codes",
            words.write_codes,
            range(len(self.part_rows)),
            self.work,
            self.out,
            self.part_rows,
            combine=words.add_up,
        )
        for table, folder in (("initial", self.work), ("codes", self.out)):
            centre = (sums[table] / max(1, sums[f"{table}-filled"])).astype(np.float32)
            write_array(folder / f"{table}-centre.npy", centre)

    def _lists(self, rows: int) -> list[int]:
        engine, parts = self.engine, range(len(self.part_rows))
        centre = np.asarray(read_array(self.work / "initial-centre.npy"))
        find_centroids(engine, lists.TEXTS, self.part_rows, lists.LIST_ROWS, centre)
        counts = np.stack(
            engine.map("lists", lists.assign, parts, self.work, centre, self.part_rows)
        )
        starts, sizes = lists.make_blocks(counts.sum(axis=0), rows)
        write_array(self.work / "list-starts.npy", starts)
        first = starts[:-1] + np.cumsum(counts, axis=0) - counts
        engine.map("positions", lists.place, enumerate(first), self.work, self.part_rows)
        engine.map(
            "blocks",
            lists.gather_block,
            range(len(sizes)),
            self.work,
            sizes,
            self.part_rows,
            centre,
        )
        return sizes

    def _neighbours(self) -> None:
        blocks = range(len(self.sizes))
        self.engine.map(
            "text neighbours", couplings.near_texts, blocks, self.work, self.sizes, self.starts
        )

    def _couplings(self) -> int:
        engine, work, sizes = self.engine, self.work, self.sizes
        blocks = range(len(sizes))
        engine.map("links", couplings.half_links, range(self.edge_parts), work, self.part_rows)
        ends = engine.map("couplings", couplings.merge_pairs, blocks, work, sizes, self.edge_parts)
        if not sum(ends):
            raise VHEError("the edges contain no link between two different vertices")
        engine.map(
            "blocks",
            couplings.write_block,
            blocks,
            work,
            self.out,
            sizes,
            self.part_rows,
            np.asarray(read_array(self.out / "codes-centre.npy")),
            self.texts["mean_log_length"],
        )
        return int(sum(ends)) // 2

    def _system(self, name: str) -> dict[str, Any]:
        """Write the linear system of the embedding, or of a scale of the link posterior."""
        engine, work, sizes = self.engine, self.work, self.sizes
        blocks = range(len(sizes))
        strength = LINK_STRENGTHS.get(name, self.trained["link_strength"])
        weight = self.trained["text_knn_weight"]
        arguments = work, sizes, name
        owners = engine.map("system", couplings.write_system, blocks, *arguments, strength, weight)
        receivers: list[list[int]] = [[] for _ in blocks]
        for block, own in enumerate(owners):
            for owner in own:
                receivers[owner].append(block)
        engine.map("system", couplings.write_boundary, enumerate(receivers), *arguments)
        engine.map("system", couplings.write_receipt, blocks, *arguments)
        bound = solver.spectral_radius(engine, solver.System(work, name, sizes, owners))
        return {"owners": owners, "radius": bound}

    def _solve(self, system: solver.System, columns: dict[str, int]) -> int:
        """Solve for all columns of some targets, as many at a time as the memory affords.

        Returns the number of iterations.
        """
        memory = STATE_SHARE * self.memory * self.threads
        affordable = int(memory / (self.n * STATE_BYTES * solver.IN_TURN))
        groups: list[solver.Group] = []
        for target, count in columns.items():
            width = max(1, min(-(-count // solver.IN_TURN), affordable))
            groups += [(target, (k, min(k + width, count))) for k in range(0, count, width)]
        solver.solve(self.engine, system, groups, self.seed)
        blocks = range(len(self.sizes))
        for target in columns:
            self.engine.map("columns", solver.combine_columns, blocks, self.work, target, groups)
        return solver.iterations_for(system.radius)

    def _isolated(self) -> None:
        blocks = range(len(self.sizes))
        weight = isolated_weight(self.config.text_knn_weight, self.trained["text_knn_weight"])
        arguments = self.work, self.sizes, weight
        self.engine.map("isolated vertices", isolated.write_isolated, blocks, *arguments)
        self.engine.map("isolated vertices", isolated.use_isolated, blocks, self.work)

    def _embedding_lists(self) -> list[int]:
        """Write the lists that suggestions come from; return the sizes of ranges of them."""
        engine, work, sizes, blocks = self.engine, self.work, self.sizes, range(len(self.sizes))
        engine.map("unit vectors", suggest.write_unit, blocks, work)
        find_centroids(engine, suggest.UNIT, sizes, suggest.LIST_ROWS)
        counts = np.stack(engine.map("lists", suggest.assign, blocks, work, sizes))
        rows = max(1, min(ROWS_PER_SEARCH, self.memory // BYTES_PER_SEARCH))
        starts, ranges = lists.make_blocks(counts.sum(axis=0), rows)
        write_array(work / "embedding-list-starts.npy", starts)
        members = suggest.gather_members
        engine.map("lists", members, range(len(ranges)), work, len(blocks), starts, ranges)
        return ranges

    def _suggestions(self) -> None:
        engine, work, sizes, ranges = self.engine, self.work, self.sizes, self.ranges
        density = float(np.clip(2 * self.links / max(self.n * (self.n - 1), 1), 1e-9, 1 - 1e-6))
        engine.map(
            "suggestions",
            suggest.suggest_range,
            range(len(ranges)),
            work,
            sizes,
            ranges,
            np.asarray(read_array(work / "embedding-list-starts.npy")),
            self.settings["suggestions"],
            self.posterior,
            len(words.read_words(self.out / "vocabulary.json")),
            density,
        )
        blocks = range(len(sizes))
        engine.map("suggestions", suggest.write_suggestions, blocks, work, sizes, len(ranges))

    def _model(self) -> None:
        parts = range(len(self.part_rows))
        self.engine.map("model", model.write_part, parts, self.work, self.out, self.sizes)
        about = provenance(self.seed) | {
            "model": "graph",
            "config": self.config.to_dict(),
            "vertices": self.n,
            "links": self.links,
            "part_rows": self.part_rows,
            "buckets": self.buckets,
            "id_type": self.vertices.id_type,
            "mean_log_length": self.texts["mean_log_length"],
            "seconds": self.engine.seconds,
            **self.trained,
        }
        write_json(self.out / model.MODEL_FILE, about)


def _prepare_folder(folder: Path, run: dict[str, Any], seed: int | None, resume: bool) -> int:
    """Make the folder, or check that an unfinished fit can be continued; return the seed."""
    path = folder / WORK / "run.json"
    if resume:
        try:
            saved = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            raise VHEError(f"{folder}: no unfinished fit to resume") from None
        for name, value in run.items():
            if saved.get(name) != value:
                what = "part files" if name in ("vertices", "edges") else name
                raise VHEError(
                    f"{folder}: the fit was started with other {what} ({name}): resume it with "
                    "the same input and settings, or start again in another folder"
                )
        if seed is not None and seed != saved["seed"]:
            raise VHEError(f"{folder}: the fit was started with the seed {saved['seed']}")
        return int(saved["seed"])
    if folder.exists() and any(folder.iterdir()):
        unfinished = (
            "an unfinished fit: continue it with resume (--resume)" if path.exists() else ""
        )
        raise VHEError(f"{folder} contains {unfinished or 'files'}, or choose another folder")
    seed = secrets.randbelow(2**31) if seed is None else seed
    write_json(path, run | {"seed": seed})
    return seed


def _bytes(memory: int | str | None) -> int | None:
    return parse_bytes(memory) if isinstance(memory, str) else memory
