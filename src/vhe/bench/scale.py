"""Whether it stays as fast when the network is large: made-up networks that differ in size only."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from vhe.bench.measure import in_turns, made_up, peak_gigabytes, trainer_of
from vhe.data.sampling import LinkSet
from vhe.pair.embedding import global_embedding
from vhe.pair.training import Trainer
from vhe.predict.suggest import partners

SMALL, LARGE = 2_300, 63_000  # vertices
EMBEDDED = (1_000, 4_000)


def scale(rounds: int, small: int = SMALL, large: int = LARGE) -> dict[str, float]:
    """Seconds a training pair in a large network over those in a small one, and the memory.

    A look at the validation links is counted in with every tenth step, as in a training.
    """
    trainers = {"large": trainer_of(made_up(large)), "small": trainer_of(made_up(small))}
    numbers = iter(range(10**9))

    def step(trainer: Trainer) -> None:
        trainer._step(next(numbers))

    programs: dict[str, Callable[[], object]] = {}
    for name, trainer in trainers.items():
        programs |= {f"step {name}": partial(step, trainer), f"look {name}": trainer._look}
    took = in_turns(programs, rounds)
    pair = {
        name: (took[f"step {name}"] + took[f"look {name}"] / trainer.config.validate_every)
        / len(trainer.sampler.batch(0))
        for name, trainer in trainers.items()
    }
    return {
        f"ms a pair, {small:,} vertices": 1e3 * pair["small"],
        f"ms a pair, {large:,} vertices": 1e3 * pair["large"],
        "ratio": pair["large"] / pair["small"],
        "ratio of the steps alone": took["step large"] / took["step small"],
        "peak GB": peak_gigabytes(),
    }


def embedding(rounds: int) -> dict[str, float]:
    """Seconds a vertex of the average embedding, of a network over one of a quarter of its size;
    and those of the likeliest missing links of every vertex."""
    programs: dict[str, Callable[[], object]] = {}
    for n in EMBEDDED:
        trainer = trainer_of(made_up(n))
        links = LinkSet(trainer.links, n)
        programs[f"average {n}"] = partial(
            global_embedding, trainer.model, trainer.corpus, links, contexts=2, seed=0
        )
    rows = {
        n: np.random.default_rng(0).normal(size=(n, 200)).astype("f") for n in (LARGE // 4, LARGE)
    }
    for n, table in rows.items():
        none = np.zeros((0, 2), dtype=np.int64)
        programs[f"suggest {n}"] = partial(partners, table, none, 10)
    took = in_turns(programs, rounds, calls=2)
    each = {name: seconds / int(name.split()[1]) for name, seconds in took.items()}
    few, many = EMBEDDED
    return {
        "average embedding, ms a vertex": 1e3 * each[f"average {many}"],
        f"ratio, {many:,} over {few:,} vertices": each[f"average {many}"] / each[f"average {few}"],
        "suggestions, ms a vertex": 1e3 * each[f"suggest {LARGE}"],
        f"ratio, {LARGE:,} over {LARGE // 4:,} vertices": each[f"suggest {LARGE}"]
        / each[f"suggest {LARGE // 4}"],
    }
