"""Mean and standard deviation of results over seeds."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Figure:
    """Mean and sample standard deviation over seeds; the latter is None for a single seed."""

    mean: float
    std: float | None
    seeds: int | None = None

    @classmethod
    def of(cls, values: Sequence[float]) -> Figure:
        std = statistics.stdev(values) if len(values) > 1 else None
        return cls(statistics.fmean(values), std, len(values))

    @property
    def standard_error(self) -> float | None:
        """The standard error of the mean; None for a single seed."""
        if self.std is None or self.seeds is None:
            return None
        return self.std / math.sqrt(self.seeds)

    def __str__(self) -> str:
        """Format in percent, such as ``94.4 ± 0.3``."""
        if self.std is None:
            return f"{100 * self.mean:.1f}"
        return f"{100 * self.mean:.1f} ± {100 * self.std:.1f}"


def group(
    results: Iterable[Mapping[str, Any]], keys: Sequence[str]
) -> dict[tuple[Any, ...], list[Mapping[str, Any]]]:
    """Group results by the values of ``keys``, in order of first occurrence."""
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for result in results:
        groups.setdefault(tuple(result[key] for key in keys), []).append(result)
    return groups
