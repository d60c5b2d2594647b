"""`vhe demo`: fit the See Also network, compare with baselines, suggest links, draw a map."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts.types import NonNegativeInt

from vhe.cli import output
from vhe.cli.options import Help, Json, Threads, using_threads
from vhe.cli.paths import check_writable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from vhe.data.network import TextNetwork
    from vhe.estimators import Estimator
    from vhe.web.model_report import Accuracy, Findings

TRAINING_SHARE = 0.85
SUGGESTIONS = 12  # number of suggested links to print
LONGEST_NAME = 31  # that fits half of an 80-column line beside the probability


def demo(
    *,
    out: Annotated[Path, Help("folder for the model and the report")] = Path("demo"),
    seed: Annotated[NonNegativeInt, Help("random seed")] = 0,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Run a demonstration that needs no download.

    Fits the See Also references of the installed packages, compares link
    prediction with baselines, suggests missing references, and writes a report
    with a map. Takes less than a minute on two cores.
    """
    check_writable(out / "report.html")
    with output.diagnostics_to_stderr(json), using_threads(threads):
        console = output.console(markup=True)
        out.mkdir(parents=True, exist_ok=True)
        with _phase(console, {}, "reading", "Reading the docstrings of the installed packages"):
            from vhe.data.datasets import load
            from vhe.estimators import VHE

            network = load("seealso")
        result = present(network, VHE(random_state=seed), out, seed=seed, console=console)
    if json:
        output.print_json(result)


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
    from vhe.predict.candidates import without_repeats
    from vhe.predict.layout import layout
    from vhe.storage.derived import fingerprint
    from vhe.web.loading import layout_arrays, store
    from vhe.web.map_data import COLOURS, subpackages
    from vhe.web.model_report import find, measure_accuracy, write_model_report

    train, test = network.split_edges(TRAINING_SHARE, seed=seed)
    console.print(
        f"[bold]The See Also network[/bold]: {len(network):,} functions and classes, "
        f"{len(network.links):,} links\n"
        f"Training on {len(train.links):,} of the links; {len(test):,} are held out.\n"
    )
    seconds: dict[str, float] = {}
    with _phase(console, seconds, "training"):
        model.fit(train)
    with _phase(console, seconds, "ranking", "Ranking the held-out links"):
        how = f"{len(test):,} links were held out of the fit."
        accuracy = measure_accuracy(model, test, how)
    with _phase(console, seconds, "suggestions", "Searching for missing links"):
        found = find(model, accuracy, network)
        text = TFIDF().fit(train)
        chosen = without_repeats(network, found.pairs, text, SUGGESTIONS)
        found = replace(found, chosen=chosen, seconds=seconds)
    console.print(_score_table(accuracy))
    console.print(_suggestion_table(found))
    with _phase(console, seconds, "map", "Drawing the map"):
        coordinates = layout(model.embedding_, seed)
    model.save(out / "model")
    store(out / "model", fingerprint(out / "model"), "layout", layout_arrays(coordinates, seed))
    report = write_model_report(
        out / "report.html",
        found,
        coordinates,
        title="The See Also network",
        lede=(
            f"{len(network):,} functions and classes of the installed scientific Python packages. "
            "Those with similar docstrings and See Also lists are close together."
        ),
        texts=[summary(text) for text in network.texts],
        labels=subpackages([str(label) for label in network.labels or network.ids], COLOURS),
        omitted="Pairs with the same name or nearly the same text are omitted.",
        versions=_versions(network),
    )
    _print_next_steps(console, out, found)
    return {
        "scores": {method: score.as_dict() for method, score in accuracy.scores.items()},
        "suggestions": [
            {"source": network.ids[i], "target": network.ids[j], "probability": p}
            for i, j, p in found.suggestions()
        ],
        "report": report,
        "model": out / "model",
        "seconds": seconds,
    }


def summary(text: str) -> str:
    """Return the first sentence of a docstring."""
    return re.split(r"(?<=[.!?])\s|\s(?:parameters|returns|attributes)\s", text, maxsplit=1)[0]


def _versions(network: TextNetwork) -> dict[str, str]:
    """Return the versions of the packages in the network."""
    versions = {}
    for package in sorted({str(vertex_id).split(".")[0] for vertex_id in network.ids}):
        name = {"sklearn": "scikit-learn"}.get(package, package)
        with suppress(PackageNotFoundError, ValueError):
            versions[name] = version(name)
    return versions


def _score_table(accuracy: Accuracy) -> Table:
    from rich.text import Text

    from vhe.web.model_report import SCORES

    rows = accuracy.rows()
    best = [max(column) for column in zip(*(values for _, values in rows), strict=True)]
    cells = [
        [method]
        + [
            Text(f"{value:.3f}", "bold" if value == top else "")
            for value, top in zip(values, best, strict=True)
        ]
        for method, values in rows
    ]
    header = ("Method", *SCORES.values())
    return output.make_table(cells, header, range(1, len(header)), title="Held-out links")


def _suggestion_table(found: Findings) -> Table:
    rows = [
        (*(_folded(str(found.network.ids[vertex])) for vertex in (i, j)), f"{p:.3f}")
        for i, j, p in found.suggestions()
    ]
    return output.make_table(
        rows,
        ("From", "To", "Probability"),
        right_aligned=(2,),
        title="See Also links that may be missing",
        caption=f"{found.density_sentence()}.",
    )


def _folded(name: str) -> str:
    """Break a long qualified name after its last dot."""
    head, dot, tail = name.rpartition(".")
    return f"{head}{dot}\n  {tail}" if head and len(name) > LONGEST_NAME else name


def _print_next_steps(console: Console, out: Path, found: Findings) -> None:
    """Print the files that were written, and commands to try next."""
    from rich.text import Text

    model = shlex.quote(str(out / "model"))
    vhe = output.program()
    pairs = [
        " ".join(shlex.quote(str(found.network.ids[vertex])) for vertex in (i, j))
        for i, j, _ in found.suggestions()
    ]
    shortest = min(pairs, key=len, default="A B")
    text = Text.assemble(
        ("Files\n", "bold"),
        f"  {out / 'report.html'}  report with a map; open it in a browser\n",
        f"  {out / 'model'}  model folder\n",
        ("\nNext steps\n", "bold"),
        f"  {vhe} serve {model}  explore the model in a browser\n",
        f"  {vhe} suggest {model}  missing links, and the held-out ones\n",
        f"  {vhe} explain {model} {shortest}\n",
        f"  {vhe} fit --vertices VERTICES.csv --edges EDGES.csv --out MODEL",
    )
    console.print(text, soft_wrap=True)


@contextmanager
def _phase(
    console: Console, seconds: dict[str, float], name: str, text: str = ""
) -> Iterator[None]:
    """Time a phase and show ``text``: a temporary spinner on a terminal, a line elsewhere."""
    started = time.perf_counter()
    spinner: AbstractContextManager[object] = nullcontext()
    if text and console.is_terminal:
        spinner = console.status(f"{text} …")
    elif text:
        console.print(f"{text} ...")
    with spinner:
        yield
    seconds[name] = time.perf_counter() - started
