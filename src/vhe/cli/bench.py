"""`vhe bench`: speed of this machine as ratios measured in one run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, get_args

from cyclopts.types import PositiveInt

from vhe.cli.options import Help, Json, Threads, using_threads
from vhe.cli.output import diagnostics_to_stderr, print_json, print_status, print_table
from vhe.errors import VHEError

Benchmark = Literal[
    "startup", "fit", "alignment", "step", "scale", "embedding", "multiprocess", "serve"
]
PER_DATASET = ("fit", "alignment", "step", "multiprocess")


def bench(
    name: Annotated[
        Benchmark | None,
        Help("one of the benchmarks above (default: all)"),
    ] = None,
    /,
    *,
    datasets: Annotated[str, Help("networks, such as cora,hepth")] = "seealso",
    model: Annotated[
        Path | None, Help("startup: model folder (default: fitted to 4,500 synthetic texts)")
    ] = None,
    rounds: Annotated[PositiveInt, Help("interleaved runs; reports the median")] = 5,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Measure the speed of this machine.

    Ratios are measured in interleaved runs, so that they hold on a busy machine,
    too. The benchmarks are:

    - startup: suggest, score, explain and embed from a cold start, relative to
      python -c "import numpy", and their memory
    - fit: both models, with the native kernels and with torch alone
    - alignment: training pairs per second of the pair model, relative to an
      implementation that pads texts to 300 words
    - step: a training step of the pair model, relative to matrix products, and the
      share of data loading
    - scale: a training pair of the pair model among 63,000 vertices, relative to one
      among 2,300, and peak memory
    - embedding: time per vertex of embeddings and suggestions of the pair model, by
      network size
    - multiprocess: training of the pair model by two processes under torchrun,
      relative to one process with two threads
    - serve: time to the first answer of vhe serve among 63,000 vertices, and latency
      for 64 clients while vertices are added and models are swapped (takes minutes)
    """
    results: dict[str, dict[str, float]] = {}
    with diagnostics_to_stderr(json), using_threads(threads):
        for benchmark in get_args(Benchmark) if name is None else (name,):
            for network in datasets.split(",") if benchmark in PER_DATASET else ("",):
                title = f"{benchmark} {network}".strip()
                print_status(f"measuring {title}")
                results[title] = _measure(benchmark, network, rounds, model)
    if json:
        print_json(results)
        return
    for title, values in results.items():
        rows = [(f"{quantity:<42}", f"{value:.4g}") for quantity, value in values.items()]
        print_table(rows, (title, ""))


def _measure(benchmark: str, network: str, rounds: int, model: Path | None) -> dict[str, float]:
    from vhe.bench import alignment, multiprocess, scale, serve, startup
    from vhe.bench.fit import fit
    from vhe.data.datasets import load

    if benchmark == "startup":
        return startup.startup(rounds, model)
    if benchmark == "scale":
        return scale.scale(rounds)
    if benchmark == "embedding":
        return scale.embedding(rounds)
    if benchmark == "serve":
        return serve.serve()
    if benchmark == "multiprocess":
        return multiprocess.multiprocess(network, rounds)
    loaded = load(network)
    if not len(loaded.links):
        raise VHEError(f"{network}: the network has no links; choose another dataset")
    measure = {"fit": fit, "alignment": alignment.alignment, "step": alignment.step}[benchmark]
    return measure(loaded, rounds)
