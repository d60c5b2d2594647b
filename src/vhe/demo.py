"""`vhe demo`: learn the See Also network, compare with TF-IDF, suggest links, draw a map."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from vhe.data.network import TextNetwork
    from vhe.estimators import VHE
    from vhe.web.demo_report import Findings

TRAINING_SHARE = 0.85
SUGGESTIONS = 12  # that are printed


def run(out: Path, seed: int = 0, console: Console | None = None) -> dict[str, Any]:
    """Show what VHE does on the network that needs no download.

    Parameters
    ----------
    out : folder for ``report.html`` and ``model``
    seed : where chance starts
    console : where to print; the terminal when left out

    Returns
    -------
    dict
        ``scores`` by method, ``suggestions``, ``report``, ``model`` and ``seconds``.
    """
    from rich.console import Console

    console = console or Console(highlight=False)
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    with _working(console, "Reading the docstrings of the installed packages"):
        from vhe.data.datasets import load
        from vhe.estimators import VHE

        network = load("seealso")
    return present(network, VHE(random_state=seed), out, seed=seed, console=console)


def present(
    network: TextNetwork, model: VHE, out: Path, *, seed: int, console: Console
) -> dict[str, Any]:
    """Fit ``model`` on most links of ``network``; print what it learned and write it to ``out``."""
    from vhe.baselines.tfidf import TFIDF
    from vhe.estimators import density
    from vhe.evaluation.link import evaluate
    from vhe.predict.layout import layout
    from vhe.predict.suggest import at_density, known_pairs, likely_links, without_repeats
    from vhe.web.demo_report import PARTNERS, Findings, write_demo_report

    train, test = network.split_edges(TRAINING_SHARE, seed=seed)
    console.print(
        f"[bold]The See Also network[/bold]: {len(network):,} functions and classes, "
        f"{len(network.links):,} links\n"
        f"Learning from {len(train.links):,} of the links; {len(test):,} are held out.\n"
    )
    seconds: dict[str, float] = {}
    with _timed(seconds, "training"):
        model.fit(train)
    with _timed(seconds, "ranking"), _working(console, "Ranking the held-out links"):
        text = TFIDF().fit(train)
        scores = {"VHE": evaluate(model, test), "TF-IDF": evaluate(text, test)}
    with _timed(seconds, "suggestions"), _working(console, "Looking for missing links"):
        pairs, probability = likely_links(model, train, PARTNERS)
        held_out = known_pairs(test.pairs, pairs, len(network))
        new, chance = pairs[~held_out], at_density(probability[~held_out], density(network))
        chosen = without_repeats(network, new, text, SUGGESTIONS)
    found = Findings(
        network=network,
        model=model,
        seed=seed,
        scores=scores,
        found_again=int(held_out[: len(test)].sum()),
        pairs=new,
        probability=chance,
        chosen=chosen,
        seconds=seconds,
    )
    console.print(_score_table(found))
    console.print(_suggestion_table(found))
    with _timed(seconds, "map"), _working(console, "Drawing the map"):
        coordinates = layout(model.embedding_, seed)
    model.save(out / "model")
    report = write_demo_report(out / "report.html", found, coordinates)
    _print_next(console, out, found)
    return {
        "scores": {method: score.as_dict() for method, score in scores.items()},
        "suggestions": [
            {"source": network.ids[i], "target": network.ids[j], "probability": p}
            for i, j, p in found.suggestions()
        ],
        "report": report,
        "model": out / "model",
        "seconds": seconds,
    }


def _table(title: str) -> Table:
    from rich import box
    from rich.table import Table

    return Table(
        box=box.SIMPLE_HEAD, title=title, title_style="bold", title_justify="left", pad_edge=False
    )


def _score_table(found: Findings) -> Table:
    from vhe.web.demo_report import SCORES

    table = _table("Held-out links")
    table.add_column("Method")
    for name in SCORES.values():
        table.add_column(name, justify="right", min_width=7)
    rows = found.score_rows()
    best = [max(column) for column in zip(*(values for _, values in rows), strict=True)]
    for method, values in rows:
        shown = [
            f"[bold]{value:.3f}[/bold]" if value == top else f"{value:.3f}"
            for value, top in zip(values, best, strict=True)
        ]
        table.add_row(method, *shown)
    return table


def _suggestion_table(found: Findings) -> Table:
    from rich.text import Text

    table = _table("See Also links that may be missing")
    table.caption = f"{found.density_sentence()}."
    table.caption_justify = "left"
    table.add_column("From", overflow="fold")
    table.add_column("To", overflow="fold")
    table.add_column("Probability", justify="right", no_wrap=True)
    for i, j, p in found.suggestions():
        ends = (Text(_folded(str(found.network.ids[vertex]))) for vertex in (i, j))
        table.add_row(*ends, f"{p:.3f}")
    return table


def _folded(name: str) -> str:
    """A name too long for half a line of 80 columns goes on below after its last dot."""
    head, dot, tail = name.rpartition(".")
    return f"{head}{dot}\n  {tail}" if head and len(name) > 31 else name


def _print_next(console: Console, out: Path, found: Findings) -> None:
    """What was written, and commands to go on with."""
    from rich.text import Text

    model = shlex.quote(str(out / "model"))
    pairs = [
        " ".join(shlex.quote(str(found.network.ids[vertex])) for vertex in (i, j))
        for i, j, _ in found.suggestions()
    ]
    shortest = min(pairs, key=len, default="A B")
    lines = [
        Text("Written", style="bold"),
        Text(f"  {out / 'report.html'}  the map and all of this; open it in a browser"),
        Text(f"  {out / 'model'}  the model"),
        Text("\nNext", style="bold"),
        Text(f"  vhe serve {model}  look around in a browser"),
        Text(f"  vhe explain {model} {shortest}"),
        Text("  vhe fit --vertices VERTICES.csv --edges EDGES.csv --out MODEL"),
    ]
    for line in lines:
        console.print(line, soft_wrap=True)


@contextmanager
def _timed(seconds: dict[str, float], part: str) -> Iterator[None]:
    began = time.perf_counter()
    yield
    seconds[part] = time.perf_counter() - began


@contextmanager
def _working(console: Console, what: str) -> Iterator[None]:
    """Say what is being done: a spinner on a terminal that goes away, a line elsewhere."""
    if console.is_terminal:
        with console.status(f"{what} …"):
            yield
    else:
        console.print(f"{what} ...")
        yield
