"""Time per training pair and per vertex by network size, on synthetic networks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy import sparse

from vhe.bench.measure import (
    interleaved,
    pair_trainer,
    peak_gigabytes,
    synthetic,
    training_step,
)
from vhe.data.sampling import LinkSet
from vhe.pair.embedding import global_embedding
from vhe.predict.link_posterior import LinkPosterior
from vhe.predict.pair_features import vertex_rows
from vhe.predict.suggest import partners

SMALL, LARGE = 2_300, 63_000  # vertices
EMBEDDED = (1_000, 4_000)


def scale(rounds: int, small: int = SMALL, large: int = LARGE) -> dict[str, float]:
    """Seconds per training pair of `PairVHE` in a large and in a small network, and the memory."""
    sizes = {"large": large, "small": small}
    trainers = {name: pair_trainer(synthetic(size)) for name, size in sizes.items()}
    programs = {name: training_step(trainer) for name, trainer in trainers.items()}
    seconds = interleaved(programs, rounds)
    pair = {name: seconds[name] / len(trainer.batch(0)) for name, trainer in trainers.items()}
    return {
        f"ms per pair, {small:,} vertices": 1e3 * pair["small"],
        f"ms per pair, {large:,} vertices": 1e3 * pair["large"],
        "ratio": pair["large"] / pair["small"],
        "peak GB": peak_gigabytes(),
    }


def embedding(rounds: int) -> dict[str, float]:
    """Seconds per vertex of the global embedding, and of suggestions, by network size."""
    programs: dict[str, Callable[[], object]] = {}
    for n in EMBEDDED:
        trainer = pair_trainer(synthetic(n))
        links = LinkSet(trainer.links, n)
        programs[f"average {n}"] = partial(
            global_embedding, trainer.model, trainer.corpus, links, contexts=2, seed=0
        )
    posterior = LinkPosterior({"embedding": 1.0}, 0.0)
    for n in (LARGE // 4, LARGE):
        codes = np.random.default_rng(0).normal(size=(n, 200)).astype("f")
        none = np.zeros((0, 2), dtype=np.int64)
        table = vertex_rows({"embedding": codes}, sparse.csr_array((n, 1)), none, (), seed=0)
        programs[f"suggest {n}"] = partial(partners, posterior, table, 10)
    seconds = interleaved(programs, rounds, calls=2)
    each = {name: value / int(name.split()[1]) for name, value in seconds.items()}
    few, many = EMBEDDED
    return {
        "global embedding, ms per vertex": 1e3 * each[f"average {many}"],
        f"ratio, {many:,} over {few:,} vertices": each[f"average {many}"] / each[f"average {few}"],
        "suggestions, ms per vertex": 1e3 * each[f"suggest {LARGE}"],
        f"ratio, {LARGE:,} over {LARGE // 4:,} vertices": each[f"suggest {LARGE}"]
        / each[f"suggest {LARGE // 4}"],
    }
