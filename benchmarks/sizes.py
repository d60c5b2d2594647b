"""CPU seconds and peak memory of `vhe fit` by network size and phase: results/scale/machine.json.

    python benchmarks/sizes.py [--vertices 100000,300000,1000000] [--threads 2] [--max-memory 3GB]
        [--data FOLDER] [--keep FOLDER] [--store results/scale]

Each size runs `vhe fit` in its own process on a synthetic network in Parquet files (88 words per
text, 2.3 edges per vertex), or on a dataset such as debian; ``--keep`` saves the models in a
folder. CPU seconds (user and system) are larger on a busy machine. Memory (Linux) is given twice:
the largest resident size, and its anonymous part, sampled. The difference is pages of mapped files,
which the system can evict without swap: libraries, and tables that are read at that moment.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

CHUNK = 100_000  # texts made at a time
ROW_GROUP = 25_000  # texts; one worker of the engine reads a group at a time
SAMPLED = 0.02  # seconds between samples of the anonymous memory
MEMORY = "peak_gb", "anonymous_gb"


def write_network(n: int, folder: Path, topics: int = 100) -> tuple[Path, Path]:
    """The Parquet files of a synthetic network, written unless they are there."""
    name = f"{n}" if topics == 100 else f"{n}-of-{topics}"
    paths = folder / f"{name}-vertices.parquet", folder / f"{name}-edges.parquet"
    if not all(path.exists() for path in paths):
        process = multiprocessing.get_context("spawn").Process(
            target=_write, args=(n, paths, topics)
        )
        process.start()
        process.join()
        if process.exitcode:
            raise SystemExit(f"{n} vertices: the network could not be written")
    return paths


def _write(n: int, paths: tuple[Path, Path], topics: int) -> None:
    """Write a network like that of `vhe.bench.measure.synthetic`, some texts at a time."""
    import numpy as np
    import pyarrow as pa
    from pyarrow import parquet

    from vhe.bench.measure import LENGTH, LINKS, VOCABULARY

    rng = np.random.default_rng(0)
    topic = rng.integers(topics, size=n)
    order = np.argsort(topic, kind="stable")
    position = np.empty(n, dtype=np.int64)
    position[order] = np.arange(n)
    source = rng.integers(n, size=round(LINKS * n))
    near = order[(position[source] + rng.integers(1, 12, size=len(source))) % n]
    target = np.where(rng.random(len(source)) < 0.9, near, rng.integers(n, size=len(source)))
    temporary = [path.with_suffix(".part") for path in paths]
    parquet.write_table(pa.table({"source": source, "target": target}), temporary[1])
    names = np.array([f"w{k}" for k in range(VOCABULARY + topics)], dtype=object)
    schema = pa.schema({"id": pa.int64(), "text": pa.string()})
    with parquet.ParquetWriter(temporary[0], schema) as writer:
        for start in range(0, n, CHUNK):
            ids = np.arange(start, min(start + CHUNK, n))
            shape = len(ids), LENGTH
            common = (VOCABULARY * rng.random(shape) ** 3).astype(np.int64)
            own = common - common % topics + topic[ids, None]
            words = np.where(rng.random(shape) < 0.4, own, common)
            texts = [" ".join(names[row]) for row in words]
            table = pa.table({"id": ids, "text": texts}, schema=schema)
            writer.write_table(table, row_group_size=ROW_GROUP)
    for path, final in zip(temporary, paths, strict=True):
        path.rename(final)


def measure(source: list[str], options: list[str], out: Path | None, connection: Any) -> None:
    """Run `vhe fit` and send the figures of its phases."""
    from vhe.runtime import progress

    phases: list[dict[str, Any]] = []
    enter, leave = progress.Progress.__enter__, progress.Progress.__exit__

    def record(name: str) -> None:
        phases.append({"phase": name, "cpu_seconds": round(time.process_time() - began[0], 2)})
        phases[-1]["peak_gb"] = round(_status("VmHWM"), 3)
        phases[-1]["anonymous_gb"] = round(largest[0], 3)
        largest[0] = 0.0
        began[0] = time.process_time()
        Path("/proc/self/clear_refs").write_text("5")

    def entered(self: progress.Progress) -> progress.Progress:
        record("between")
        return enter(self)

    def left(self: progress.Progress, *error: Any) -> None:
        leave(self, *error)
        record(self.task)

    progress.Progress.__enter__, progress.Progress.__exit__ = entered, left  # type: ignore[assignment, method-assign]
    began, largest = [time.process_time()], [0.0]

    def sample() -> None:
        while True:
            largest[0] = max(largest[0], _status("RssAnon"))
            time.sleep(SAMPLED)

    threading.Thread(target=sample, daemon=True).start()
    wall = time.monotonic()
    from vhe.cli import main

    with tempfile.TemporaryDirectory() as folder:
        model = str(out or f"{folder}/model")
        status = main(["fit", *source, "--out", model, "--seed", "0", *options])
    record("between")
    usage = resource.getrusage(resource.RUSAGE_SELF)
    connection.send(
        {
            "status": status,
            "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 1),
            "wall_seconds": round(time.monotonic() - wall, 1),
            **{name: max(phase[name] for phase in phases) for name in MEMORY},
            "phases": summed(phases),
        }
    )


def summed(phases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The phases in their order, those of the same name together."""
    together: dict[str, dict[str, Any]] = {}
    for phase in phases:
        own = together.setdefault(phase["phase"], dict(phase, cpu_seconds=0.0))
        own["cpu_seconds"] = round(own["cpu_seconds"] + phase["cpu_seconds"], 2)
        own |= {name: max(own[name], phase[name]) for name in MEMORY}
    return list(together.values())


def _status(name: str) -> float:
    """A size of this process in GB, such as VmHWM."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) * 1024 / 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vertices", default="100000,300000,1000000")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--max-memory")
    parser.add_argument("--data", type=Path, help="folder of the networks (default: temporary)")
    parser.add_argument("--keep", type=Path, help="folder for the models (default: deleted)")
    parser.add_argument("--store", type=Path, help="folder for the figures, such as results/scale")
    arguments = parser.parse_args()
    data = arguments.data or Path(tempfile.mkdtemp(prefix="vhe-sizes-"))
    data.mkdir(parents=True, exist_ok=True)
    context = multiprocessing.get_context("spawn")
    try:
        for name in arguments.vertices.split(","):
            options = ["--threads", str(arguments.threads)]
            if arguments.max_memory:
                options += ["--max-memory", arguments.max_memory]
            receiving, sending = context.Pipe(duplex=False)
            source = [name]
            if name.isdigit():
                files = write_network(int(name), data)
                source = ["--vertices", str(files[0]), "--edges", str(files[1])]
            out = arguments.keep and arguments.keep / f"{name}-model"
            process = context.Process(target=measure, args=(source, options, out, sending))
            process.start()
            sending.close()
            try:
                size = int(name) if name.isdigit() else name
                found = {"vertices": size, "options": options, **receiving.recv()}
            except EOFError:
                raise SystemExit(f"{name}: the fit failed") from None
            process.join()
            _print(found)
            if found["status"]:
                raise SystemExit(f"{name}: the fit failed")
            if arguments.store:
                _store(arguments.store / "machine.json", found)
    finally:
        if arguments.data is None:
            shutil.rmtree(data, ignore_errors=True)


def _print(found: dict[str, Any]) -> None:
    total = f"{found['cpu_seconds']} CPU s, {found['peak_gb']:.2f} GB"
    total += f" ({found['anonymous_gb']:.2f} GB anonymous), {found['wall_seconds']} s"
    print(f"{found['vertices']} vertices, {' '.join(found['options'])}: {total}")
    for phase in found["phases"]:
        memory = f"{phase['peak_gb']:7.2f} GB {phase['anonymous_gb']:7.2f} GB"
        print(f"  {phase['phase']:26} {phase['cpu_seconds']:8.1f} s {memory}")
    sys.stdout.flush()


def _store(path: Path, found: dict[str, Any]) -> None:
    """Add a run to a file, in place of an older one of the same size and options."""
    path.parent.mkdir(parents=True, exist_ok=True)
    runs = json.loads(path.read_text()) if path.exists() else []
    same = ("vertices", "options")
    runs = [run for run in runs if any(run[key] != found[key] for key in same)]
    runs = sorted([*runs, found], key=lambda run: (run["options"], str(run["vertices"])))
    path.write_text(json.dumps(runs, indent=1) + "\n")


if __name__ == "__main__":
    main()
