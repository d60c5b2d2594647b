"""What the report of `vhe demo` says: scores, training, missing links, how it was made."""

from __future__ import annotations

import os
import platform
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from vhe.web.figures import Html, Section, curve, facts, joined, paragraph, table, vertex
from vhe.web.report import COLOURS, first_words, subpackages, write_report

if TYPE_CHECKING:
    from vhe.data.network import TextNetwork
    from vhe.estimators import VHE
    from vhe.evaluation.link import LinkScores

PARTNERS = 5  # of each vertex that are looked at
LEAST = 0.1  # probability of a link that the map suggests
SCORES = {"auc": "AUC", "ap": "AP", "mrr": "MRR", "hits10": "Hits@10"}


@dataclass(frozen=True, eq=False)
class Findings:
    """What the demonstration found.

    Attributes
    ----------
    network : the whole network.
    model : fitted on all but the held-out links.
    scores : of each method, by its name.
    found_again : held-out links among as many pairs, the likeliest that training did not see.
    pairs, probability : (m, 2) and (m,), likely links that are not there, the likeliest first;
        the probability is at the density of the network.
    chosen : (k,) rows of ``pairs`` that are worth reading.
    seconds : what each part took.
    """

    network: TextNetwork
    model: VHE
    seed: int
    scores: Mapping[str, LinkScores]
    found_again: int
    pairs: np.ndarray
    probability: np.ndarray
    chosen: np.ndarray
    seconds: Mapping[str, float]

    def score_rows(self) -> list[tuple[str, list[float]]]:
        """Each method with its figures in the order of `SCORES`."""
        return [
            (method, [getattr(score, name) for name in SCORES])
            for method, score in self.scores.items()
        ]

    def density_sentence(self) -> str:
        """What the probabilities suppose."""
        n = len(self.network)
        pairs = n * (n - 1) / 2 / max(len(self.network.links), 1)
        return f"The probability supposes that one of {pairs:,.0f} pairs is a link, as here"

    def suggestions(self) -> list[tuple[int, int, float]]:
        """The chosen pairs: two vertex numbers and the probability of a link."""
        return [
            (int(i), int(j), float(p))
            for (i, j), p in zip(
                self.pairs[self.chosen], self.probability[self.chosen], strict=True
            )
        ]


def write_demo_report(path: Path, found: Findings, coordinates: np.ndarray) -> Path:
    """Write the report; ``coordinates`` (n, 2) say where each vertex stands on the map."""
    network = found.network
    texts = [summary(text) for text in network.texts]
    shown = found.probability >= LEAST
    return write_report(
        path,
        title="The See Also network",
        lede=(
            f"{len(network):,} functions and classes of the scientific Python packages that are "
            "installed here. Those whose docstrings and See Also lists are alike stand together."
        ),
        coordinates=coordinates,
        ids=network.ids,
        texts=texts,
        labels=subpackages([str(label) for label in network.labels or network.ids], COLOURS),
        links=network.links,
        suggestions=found.pairs[shown],
        probabilities=found.probability[shown],
        sections=[
            _scores(found),
            _training(found),
            _missing_links(found, texts),
            Section("How it was made", facts(_made(found)), wide=True),
        ],
    )


def summary(text: str) -> str:
    """The first sentence of a docstring."""
    return re.split(r"(?<=[.!?])\s|\s(?:parameters|returns|attributes)\s", text, maxsplit=1)[0]


def _scores(found: Findings) -> Section:
    said = paragraph(
        f"{_held_out(found):,} links were held out. Each is ranked among 100 pairs that are not "
        "linked; the higher a figure, the better, 1 at most."
    )
    rows = [(method, *values) for method, values in found.score_rows()]
    return Section(
        "How well it finds links",
        joined(said, table(["Method", *SCORES.values()], rows, mark_best=True)),
    )


def _held_out(found: Findings) -> int:
    return next(iter(found.scores.values())).edges


def _training(found: Findings) -> Section:
    history = found.model.history_
    steps = [entry["step"] for entry in history]
    kept = found.model.result_["best_step"]

    def of(term: str) -> list[float]:
        return [entry.get(term, float("nan")) for entry in history]

    return Section(
        "Training",
        joined(
            paragraph(
                f"The weights of step {kept} did best on the validation links and were kept."
            ),
            curve(steps, of("bound"), x_label="step", y_label="Evidence lower bound"),
            curve(
                steps,
                of("validation_auc"),
                x_label="step",
                y_label="AUC on validation links",
                y_range=(0.9, 1.0),
                mark=kept,
            ),
        ),
    )


def _missing_links(found: Findings, texts: list[str]) -> Section:
    def end(i: int) -> Html:
        return vertex(found.network.ids[i], first_words(texts[i], 100))

    n, m = len(found.network), _held_out(found)
    said = paragraph(
        "In no See Also list, and likely all the same. Pairs of one name or of much the same text "
        f"are left out. {found.density_sentence()}; vhe score supposes as many links as non-links."
    )
    trust = paragraph(
        f"How far to trust it: of the {m:,} likeliest pairs that training did not see, looking at "
        f"{PARTNERS} partners of each vertex, {found.found_again:,} are links that were held out; "
        f"of as many random pairs, {m * m / (n * (n - 1) / 2):.2g} would be."
    )
    rows = [(end(i), end(j), p) for i, j, p in found.suggestions()]
    return Section(
        "Links that may be missing",
        joined(said, trust, table(["From", "To", "Probability"], rows)),
        wide=True,
    )


def _made(found: Findings) -> dict[str, object]:
    return {
        "Packages": ", ".join(f"{name} {number}" for name, number in _versions(found.network)),
        "Seed": found.seed,
        "Seconds": ", ".join(f"{part} {taken:.0f}" for part, taken in found.seconds.items()),
        "Machine": f"Python {platform.python_version()}, {platform.machine()}, "
        f"{os.cpu_count()} cores",
        "Date": time.strftime("%Y-%m-%d %H:%M"),
    }


def _versions(network: TextNetwork) -> Iterator[tuple[str, str]]:
    """The packages that made the report, and those it is about."""
    from vhe import __version__

    yield "vhe", __version__
    for package in ("torch", *sorted({str(vertex_id).split(".")[0] for vertex_id in network.ids})):
        name = {"sklearn": "scikit-learn"}.get(package, package)
        with suppress(PackageNotFoundError, ValueError):
            yield name, version(name)
