"""Fits with the native kernels relative to the same fits in torch alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from vhe.bench.measure import interleaved
from vhe.data.network import TextNetwork
from vhe.errors import VHEError
from vhe.estimators import VHE, Estimator, PairVHE
from vhe.runtime import native

PAIR_STEPS = 10


def fit(network: TextNetwork, rounds: int) -> dict[str, float]:
    """Seconds of a fit of both models, with and without native kernels, and their ratio."""
    if native.level() == "torch":
        raise VHEError(
            "bench fit compares native kernels with torch, but they are not available: install a C "
            "compiler, then vhe again"
        )
    models: dict[str, Estimator] = {
        "VHE": VHE(random_state=0, verbose=False),
        "PairVHE": PairVHE(random_state=0, verbose=False, steps=PAIR_STEPS),
    }

    def program(model: Estimator, kernels: bool) -> Callable[[], object]:
        def run() -> None:
            with _kernels(kernels):
                model.fit(network)

        return run

    seconds = interleaved(
        {
            f"{name}, {path}": program(model, path == "native")
            for name, model in models.items()
            for path in ("native", "torch")
        },
        rounds,
        calls=1,
    )
    found = {f"seconds, {name}": value for name, value in seconds.items()}
    for name in models:
        found[f"{name}, torch over native"] = seconds[f"{name}, torch"] / seconds[f"{name}, native"]
    return found


@contextmanager
def _kernels(enabled: bool) -> Iterator[None]:
    """Use the native kernels, or torch alone."""
    before = os.environ.get("VHE_NATIVE")
    try:
        if not enabled:
            os.environ["VHE_NATIVE"] = "0"
        native.library.cache_clear()
        yield
    finally:
        os.environ.pop("VHE_NATIVE", None)
        if before is not None:
            os.environ["VHE_NATIVE"] = before
        native.library.cache_clear()
