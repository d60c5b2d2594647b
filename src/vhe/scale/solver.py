"""The posteriors by Chebyshev iteration in blocks.

With D the diagonal of A and P = D⁻¹S, the preconditioned matrix is D⁻¹A = I - P. P is similar to a
symmetric matrix and not negative, so that its eigenvalues are in [-ρ, ρ] with

    ρ <= max_i (Px)_i / x_i    for every x > 0    (Collatz and Wielandt),

which some power iterations make tight. Chebyshev iteration on [1 - ρ, 1 + ρ] needs no dot products:
an iteration of a block waits only for the blocks that it is coupled with, and receives only the
rows of its halo. The error after k iterations is at most 2cᵏ, c = ρ / (1 + √(1 - ρ²)).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vhe.graph.posterior import PROBES
from vhe.runtime.sparse import multiply
from vhe.scale.couplings import system_part
from vhe.scale.engine import Engine
from vhe.scale.shards import Numbers, read_array, shard, write_array

TOLERANCE = 1e-3  # largest relative error of the solution
VARIANCE_TOLERANCE = 1e-2  # the random signs alone have an error of about 1 / √PROBES
MOST_ITERATIONS = 300
BOUND_ITERATIONS = 10
LEAST_RADIUS = 1e-3
IN_TURN = 2  # groups of columns
ROWS_AT_ONCE = 1024  # of a block, whose temporary arrays fit into the cache
VARIANCE = "variance"  # the system of the embedding with random signs on the right-hand side

Block = NDArray[np.float32]
State = tuple[Block, ...]  # of a block: what others need first
Group = tuple[str, tuple[int, int]]  # the name of a posterior, or `VARIANCE`, and columns of it


@dataclass(frozen=True)
class System:
    """A linear system in blocks.

    Attributes
    ----------
    name : of the files of its matrix
    owners : for each block the blocks that its halo belongs to
    radius : upper bound of ρ
    """

    work: Path
    name: str
    sizes: list[int]
    owners: list[list[int]]
    radius: float = 1.0


def spectral_radius(engine: Engine, system: System) -> float:
    """An upper bound of ρ."""
    states = engine.submit(_ones, [system.sizes])
    for _ in range(BOUND_ITERATIONS):
        states = _exchange(engine, system, states, _power)
    ratios = engine.gather("bounds", engine.submit(_ratio, [states]))
    return float(np.clip(max(ratios), LEAST_RADIUS, 1 - 1e-6))


def iterations_for(radius: float, tolerance: float = TOLERANCE) -> int:
    """Iterations after which the relative error is below the tolerance.

    >>> iterations_for(0.5), iterations_for(0.9)
    (6, 17)
    """
    factor = radius / (1 + math.sqrt(1 - radius**2))
    return min(MOST_ITERATIONS, max(2, math.ceil(math.log(tolerance / 2) / math.log(factor))))


def solve(engine: Engine, system: System, groups: Sequence[Group], seed: int) -> None:
    """Solve for groups of columns and write the solutions.

    All iterations of a group are submitted at once; Dask runs each when its inputs are there. While
    the blocks of one group wait for rows of others, the workers compute another group.
    """
    submitted: list[tuple[str, list[Any]]] = []
    for target, columns in groups:
        task = f"{target}, columns {columns[0] + 1} to {columns[1]}"
        submitted.append((task, _submit(engine, system, target, columns, seed)))
        if len(submitted) == IN_TURN:
            engine.gather(*submitted.pop(0))
    for task, futures in submitted:
        engine.gather(task, futures)


def _submit(
    engine: Engine, system: System, target: str, columns: tuple[int, int], seed: int
) -> list[Any]:
    blocks = range(len(system.sizes))
    arguments = system.work, system.name, target, columns, seed
    states = engine.submit(_start, [blocks], *arguments)
    ratio = system.radius  # of Chebyshev polynomials of consecutive degrees at 1 / ρ
    tolerance = VARIANCE_TOLERANCE if target == VARIANCE else TOLERANCE
    for _ in range(iterations_for(system.radius, tolerance) - 1):
        following = 1 / (2 / system.radius - ratio)
        states = _exchange(
            engine, system, states, _step, following * ratio, 2 * following / system.radius
        )
        ratio = following
    return engine.submit(_finish, [blocks, states], *arguments)


def combine_columns(block: int, work: Path, target: str, groups: Sequence[Group]) -> None:
    """Join the columns of all groups of a target; of signs, estimate variances."""
    ranges = [columns for name, columns in groups if name == target]
    parts = [read_array(_group(work, target, columns, block)) for columns in ranges]
    if target != VARIANCE:
        write_array(shard(work, f"mean-{target}", block), np.concatenate(parts, axis=1))
        return
    estimate = np.sum(parts, axis=0) / PROBES
    diagonal = _system(work, "embedding", "diagonal", block)
    precision = np.asarray(read_array(shard(work, "precision", block)))
    write_array(shard(work, VARIANCE, block), estimate.clip(1 / diagonal, 1 / precision))


def random_signs(rows: Numbers, columns: tuple[int, int], seed: int) -> Block:
    """±1, a function of the seed, the row and the column (at most 64)."""
    offset = seed * 0xD1B54A32D192ED03 + 0x9E3779B97F4A7C15
    mixed = rows.astype(np.uint64) + np.uint64(offset % 2**64)  # then as splitmix64
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    bits = (mixed[:, None] >> np.arange(*columns, dtype=np.uint64)) & np.uint64(1)
    return bits.astype(np.float32) * 2 - 1


def _exchange(
    engine: Engine, system: System, states: list[Any], function: Any, *args: float
) -> list[Any]:
    """The next state of every block, from its own and the boundaries of those it needs."""
    files = system.work, system.name
    blocks = range(len(states))
    boundaries = engine.submit(_boundary, [blocks, states], *files)
    received = [[boundaries[owner] for owner in owners] for owners in system.owners]
    return engine.submit(function, [blocks, states, received], *files, *args)


# --- tasks


def _ones(size: int) -> State:
    return (np.ones((size, 1), np.float32),)


def _boundary(block: int, state: State, work: Path, name: str) -> Block:
    return state[0][read_array(shard(work, f"boundary-{name}", block))]


def _system(work: Path, name: str, part: str, block: int) -> Any:
    return np.asarray(read_array(system_part(work, name, part, block)))


def _coupled(
    block: int, rows: Block, boundaries: list[Block], work: Path, name: str
) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """S times the rows of a block and of its halo, and the diagonal of A, by ranges of rows."""
    positions = read_array(shard(work, f"receipt-{name}", block))
    ends = read_array(shard(work, f"receipt-{name}-offsets", block))[1:] + len(rows)
    dense = np.empty((len(rows) + len(positions), rows.shape[1]), np.float32)
    dense[: len(rows)] = rows
    for boundary, first, last in zip(boundaries, [len(rows), *ends[:-1]], ends, strict=True):
        received = positions[first - len(rows) : last - len(rows)]
        np.take(boundary, received, axis=0, out=dense[first:last], mode="clip")
    offsets, columns, weights, diagonal = (
        torch.tensor(_system(work, name, part, block))
        for part in ("offsets", "columns", "weights", "diagonal")
    )
    for start in range(0, len(rows), ROWS_AT_ONCE):
        end = min(start + ROWS_AT_ONCE, len(rows))
        entries = slice(int(offsets[start]), int(offsets[end]))
        matrix = torch.sparse_csr_tensor(
            offsets[start : end + 1] - offsets[start],
            columns[entries],
            weights[entries],
            (end - start, len(dense)),
            check_invariants=False,
        )
        yield (
            slice(start, end),
            multiply(matrix, torch.from_numpy(dense)),
            diagonal[start:end, None],
        )


def _power(block: int, state: State, boundaries: list[Block], work: Path, name: str) -> State:
    """(P + I / 4) x, and (Px)_i / x_i."""
    x = state[0]
    image = np.empty_like(x)
    for rows, product, diagonal in _coupled(block, x, boundaries, work, name):
        image[rows] = product / diagonal
    return image + np.float32(0.25) * x, image / x


def _ratio(state: State) -> float:
    return float(state[1].max(initial=0))


def _start(
    block: int, work: Path, name: str, target: str, columns: tuple[int, int], seed: int
) -> State:
    """Direction, solution and residual before the first iteration."""
    if target == VARIANCE:
        right = random_signs(np.asarray(read_array(shard(work, "rows", block))), columns, seed)
    else:
        codes: Block = read_array(shard(work, "text-codes", block))[:, slice(*columns)]
        precision: Block = np.asarray(read_array(shard(work, "precision", block)))
        right = precision[:, None] * codes
    diagonal = _system(work, name, "diagonal", block)[:, None]
    return right / diagonal, np.zeros_like(right), right


def _step(
    block: int,
    state: State,
    boundaries: list[Block],
    work: Path,
    name: str,
    momentum: float,
    size: float,
) -> State:
    """One Chebyshev iteration; inputs are not changed, because Dask may need them again."""
    direction, solution, residual = (torch.from_numpy(array) for array in state)
    following, left = torch.empty_like(direction), torch.empty_like(direction)
    for rows, product, diagonal in _coupled(block, state[0], boundaries, work, name):
        own = direction[rows]
        product.addcmul_(diagonal, own, value=-1).add_(residual[rows])
        left[rows] = product
        torch.mul(own, momentum, out=following[rows]).addcdiv_(product, diagonal, value=size)
    return following.numpy(), (solution + direction).numpy(), left.numpy()


def _finish(
    block: int,
    state: State,
    work: Path,
    name: str,
    target: str,
    columns: tuple[int, int],
    seed: int,
) -> None:
    solution = state[1] + state[0]
    if target == VARIANCE:
        rows = np.asarray(read_array(shard(work, "rows", block)))
        solution = (random_signs(rows, columns, seed) * solution).sum(axis=1)
    write_array(_group(work, target, columns, block), solution)


def _group(work: Path, target: str, columns: tuple[int, int], block: int) -> Path:
    return shard(work, f"columns-{target}-{columns[0]}", block)
