"""CPU seconds and memory of a fit by network size: the table of docs/scaling.md.

    python benchmarks/sizes.py [--vertices 16000,63000,200000] [--threads 1]

CPU seconds hold on a busy machine, too. Each size runs in its own process, on synthetic networks
that differ in size only.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time

STEPS = 12


def measure(n: int, threads: int) -> None:
    """Print a row of the table."""
    import vhe
    from vhe.bench.measure import peak_gigabytes, synthetic

    def fit(network: vhe.TextNetwork, steps: int) -> tuple[float, float]:
        """CPU seconds of a fit, and seconds of a training step."""
        started = time.process_time()
        model = vhe.VHE(
            random_state=0,
            threads=threads,
            verbose=False,
            max_steps=steps,
            validate_every=STEPS,
            link_strength=2.0,
            text_knn_weight=0.5,
        )
        model.fit(network)
        step = model.history_[-1]["seconds"] / max(steps, 1)
        return time.process_time() - started, step

    fit(synthetic(200), 1)  # imports and native kernels
    network = synthetic(n)
    without_training, _ = fit(network, 0)
    _, step = fit(network, STEPS)
    figures = f"{without_training:.1f} | {step:.3f} | {peak_gigabytes():.1f}"
    print(f"| {n:,} | {figures} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vertices", default="16000,63000,200000")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    print("| vertices | fit without training, s | training step, s | peak memory, GB |")
    print("|---" * 4 + "|")
    context = multiprocessing.get_context("spawn")
    for n in arguments.vertices.split(","):
        process = context.Process(target=measure, args=(int(n), arguments.threads))
        process.start()
        process.join()
        if process.exitcode:
            raise SystemExit(f"{n} vertices: exit status {process.exitcode}")


if __name__ == "__main__":
    main()
