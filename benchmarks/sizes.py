"""What training costs on networks that differ in size only: the table of docs/scaling.md.

    python benchmarks/sizes.py [--vertices 16000,63000,200000] [--threads 1]

CPU seconds, which hold on a busy machine too, and memory. Each size has a process of its own.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import time
from collections.abc import Callable

STEPS, LOOKS = 12, 3


def seconds(program: Callable[[], object], times: int) -> float:
    """The median over some calls, of which the first is not counted."""
    took = []
    for _ in range(times + 1):
        began = time.process_time()
        program()
        took.append(time.process_time() - began)
    return statistics.median(took[1:])


def measure(n: int, threads: int) -> None:
    """Print a row of the table."""
    import torch

    from vhe.bench.measure import made_up, peak_gigabytes, trainer_of

    torch.set_num_threads(threads)
    network = made_up(n)
    began = time.process_time()
    trainer = trainer_of(network)
    before, numbers = time.process_time() - began, iter(range(10**9))
    step = seconds(lambda: trainer._step(next(numbers)), STEPS)
    look = seconds(trainer._look, LOOKS)
    assert trainer.structure is not None
    solve = seconds(trainer.structure.store, 1)
    figures = f"{before:.0f} | {step:.3f} | {look:.2f} | {solve:.1f} | {peak_gigabytes():.1f}"
    print(f"| {n:,} | {figures} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vertices", default="16000,63000,200000")
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    print("| vertices | before training, s | a step, s | a look, s | solve of the whole, s | GB |")
    print("|---" * 6 + "|")
    context = multiprocessing.get_context("spawn")
    for n in given.vertices.split(","):
        process = context.Process(target=measure, args=(int(n), given.threads))
        process.start()
        process.join()
        if process.exitcode:
            raise SystemExit(f"{n} vertices: exit status {process.exitcode}")


if __name__ == "__main__":
    main()
