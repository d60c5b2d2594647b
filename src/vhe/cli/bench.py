"""`vhe bench`: how fast this machine learns, as ratios measured in one run."""

from __future__ import annotations

from typing import Literal, get_args

from cyclopts.types import PositiveInt

from vhe.cli.output import diagnostics_to_stderr, print_json, print_table, say
from vhe.errors import VHEError

Figure = Literal["alignment", "step", "scale", "embedding", "together"]


def bench(
    name: Figure | None = None,
    /,
    *,
    datasets: str | None = None,
    rounds: PositiveInt = 5,
    json: bool = False,
) -> None:
    """Measure how fast this machine learns. What is compared takes turns: ratios hold on a busy
    machine too.

    alignment: training pairs a second over a straightforward implementation padded to 300 words.
    step: a whole training step beside the machine's rate for matrix products; the loader's share.
    scale: a training pair among 63,000 vertices beside one among 2,300; peak memory.
    embedding: whether average embeddings and suggestions take the same time a vertex when many.
    together: two processes by torchrun over one with two threads.

    Parameters
    ----------
    name
        one of these; all when left out
    datasets
        networks for alignment, step and together, as cora,hepth; seealso when left out
    rounds
        turns of each program, of which the median counts
    json
        print one JSON document
    """
    found: dict[str, dict[str, float]] = {}
    names = (datasets or "seealso").split(",")
    with diagnostics_to_stderr(json):
        for figure in get_args(Figure) if name is None else (name,):
            for network in names if figure in ("alignment", "step", "together") else ("",):
                title = f"{figure} {network}".strip()
                say(f"measuring {title}")
                found[title] = _measured(figure, network, rounds)
    if json:
        print_json(found)
        return
    for title, values in found.items():
        print_table(
            [(f"{what:<42}", f"{value:.4g}") for what, value in values.items()], (title, "")
        )


def _measured(figure: str, network: str, rounds: int) -> dict[str, float]:
    from vhe.bench import alignment, multiprocess, scale
    from vhe.data.datasets import load

    if figure == "scale":
        return scale.scale(rounds)
    if figure == "embedding":
        return scale.embedding(rounds)
    if figure == "together":
        return multiprocess.together(network, rounds)
    chosen = load(network)
    if not len(chosen.links):
        raise VHEError(f"{network}: there is no link to learn from")
    return (alignment.alignment if figure == "alignment" else alignment.step)(chosen, rounds)
