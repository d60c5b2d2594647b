"""`vhe demo`: fit the See Also network, compare with TF-IDF, suggest links, draw a map."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cyclopts.types import NonNegativeInt

from vhe.cli.output import diagnostics_to_stderr, print_json
from vhe.cli.paths import check_writable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from vhe.data.network import TextNetwork
    from vhe.estimators import Estimator
    from vhe.web.demo_report import Findings

TRAINING_SHARE = 0.85
SUGGESTIONS = 12  # number of suggested links to print
LONGEST_NAME = 31  # that fits half of an 80-column line beside the probability


def demo(*, out: Path = Path("demo"), seed: NonNegativeInt = 0, json: bool = False) -> None:
    """Run a demonstration that needs no download.

    Fits the See Also references of the installed packages, compares link
    prediction with TF-IDF, suggests missing references, and writes a report with
    a map. Takes less than a minute on two cores.

    Parameters
    ----------
    out
        folder for the model and the report
    seed
        random seed
    json
        print one JSON document
    """
    check_writable(out / "report.html")
    with diagnostics_to_stderr(json):
        from rich.console import Console

        console = Console(highlight=False)
        out.mkdir(parents=True, exist_ok=True)
        with _status(console, "Reading the docstrings of the installed packages"):
            from vhe.data.datasets import load
            from vhe.estimators import VHE

            network = load("seealso")
        result = present(network, VHE(random_state=seed), out, seed=seed, console=console)
    if json:
        print_json(result)


def present(
    network: TextNetwork, model: Estimator, out: Path, *, seed: int, console: Console
) -> dict[str, Any]:
    """Fit ``model`` on most links of ``network``, print the results and write them to ``out``.

    Returns
    -------
    dict
        ``scores`` by method, ``suggestions``, ``report``, ``model`` and ``seconds``.
    """
    from vhe.baselines.tfidf import TFIDF
    from vhe.evaluation.link import evaluate
    from vhe.predict.candidates import known_pairs, likely_links, without_repeats
    from vhe.predict.layout import layout
    from vhe.predict.predictor import density
    from vhe.predict.probability import at_density
    from vhe.web.demo_report import PARTNERS, Findings, write_demo_report

    train, test = network.split_edges(TRAINING_SHARE, seed=seed)
    console.print(
        f"[bold]The See Also network[/bold]: {len(network):,} functions and classes, "
        f"{len(network.links):,} links\n"
        f"Training on {len(train.links):,} of the links; {len(test):,} are held out.\n"
    )
    seconds: dict[str, float] = {}
    with _timed(seconds, "training"):
        model.fit(train)
    with _timed(seconds, "ranking"), _status(console, "Ranking the held-out links"):
        text = TFIDF().fit(train)
        scores = {"VHE": evaluate(model, test), "TF-IDF": evaluate(text, test)}
    with _timed(seconds, "suggestions"), _status(console, "Searching for missing links"):
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
    with _timed(seconds, "map"), _status(console, "Drawing the map"):
        coordinates = layout(model.embedding_, seed)
    model.save(out / "model")
    report = write_demo_report(out / "report.html", found, coordinates)
    _print_next_steps(console, out, found)
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
    """Break a long qualified name after its last dot."""
    head, dot, tail = name.rpartition(".")
    return f"{head}{dot}\n  {tail}" if head and len(name) > LONGEST_NAME else name


def _print_next_steps(console: Console, out: Path, found: Findings) -> None:
    """Print the files that were written, and commands to try next."""
    from rich.text import Text

    model = shlex.quote(str(out / "model"))
    pairs = [
        " ".join(shlex.quote(str(found.network.ids[vertex])) for vertex in (i, j))
        for i, j, _ in found.suggestions()
    ]
    shortest = min(pairs, key=len, default="A B")
    lines = [
        Text("Files", style="bold"),
        Text(f"  {out / 'report.html'}  report with a map; open it in a browser"),
        Text(f"  {out / 'model'}  model folder"),
        Text("\nNext steps", style="bold"),
        Text(f"  vhe serve {model}  explore the model in a browser"),
        Text(f"  vhe explain {model} {shortest}"),
        Text("  vhe fit --vertices VERTICES.csv --edges EDGES.csv --out MODEL"),
    ]
    for line in lines:
        console.print(line, soft_wrap=True)


@contextmanager
def _timed(seconds: dict[str, float], phase: str) -> Iterator[None]:
    started = time.perf_counter()
    yield
    seconds[phase] = time.perf_counter() - started


@contextmanager
def _status(console: Console, text: str) -> Iterator[None]:
    """Show what is being done: a temporary spinner on a terminal, a line elsewhere."""
    if console.is_terminal:
        with console.status(f"{text} …"):
            yield
    else:
        console.print(f"{text} ...")
        yield
