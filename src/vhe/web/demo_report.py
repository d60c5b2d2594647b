"""The report of `vhe demo`: scores, training, missing links, environment."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from vhe.web.labels import COLOURS, subpackages
from vhe.web.map_data import first_words
from vhe.web.markup import Html, Section, curve, facts, joined, paragraph, table, vertex
from vhe.web.report import write_report

if TYPE_CHECKING:
    from vhe.data.network import TextNetwork
    from vhe.estimators import Estimator
    from vhe.evaluation.link import LinkScores

PARTNERS = 5  # most probable partners per vertex that are considered
SCORES = {"auc": "AUC", "ap": "AP", "mrr": "MRR", "hits10": "Hits@10"}


@dataclass(frozen=True, eq=False)
class Findings:
    """The results of the demonstration.

    Attributes
    ----------
    network : with all links
    model : fitted without the held-out links
    scores : on the held-out links, by method
    found_again : held-out links among the most probable pairs outside the training links, of which
        as many are taken as there are held-out links
    pairs, probability : (m, 2) and (m,), suggested links, most probable first; the probability is
        at the density of the network
    chosen : (k,) rows of ``pairs`` to show
    seconds : duration of each phase
    """

    network: TextNetwork
    model: Estimator
    seed: int
    scores: Mapping[str, LinkScores]
    found_again: int
    pairs: np.ndarray
    probability: np.ndarray
    chosen: np.ndarray
    seconds: Mapping[str, float]

    def score_rows(self) -> list[tuple[str, list[float]]]:
        """Each method with its scores in the order of `SCORES`."""
        return [
            (method, [getattr(score, name) for name in SCORES])
            for method, score in self.scores.items()
        ]

    def density_sentence(self) -> str:
        """The class balance that the probabilities assume, without a full stop."""
        n = len(self.network)
        pairs = n * (n - 1) / 2 / max(len(self.network.links), 1)
        return f"Probabilities assume that one of {pairs:,.0f} pairs is a link, as in this network"

    def suggestions(self) -> list[tuple[int, int, float]]:
        """The chosen pairs: two vertex indices and the probability of a link."""
        return [
            (int(i), int(j), float(p))
            for (i, j), p in zip(
                self.pairs[self.chosen], self.probability[self.chosen], strict=True
            )
        ]


def write_demo_report(path: Path, found: Findings, coordinates: np.ndarray) -> Path:
    """Write the report; ``coordinates`` (n, 2) are the positions on the map."""
    network = found.network
    texts = [summary(text) for text in network.texts]
    return write_report(
        path,
        title="The See Also network",
        lede=(
            f"{len(network):,} functions and classes of the installed scientific Python packages. "
            "Those with similar docstrings and See Also lists are close together."
        ),
        coordinates=coordinates,
        ids=network.ids,
        texts=texts,
        labels=subpackages([str(label) for label in network.labels or network.ids], COLOURS),
        links=network.links,
        suggestions=found.pairs,
        probabilities=found.probability,
        sections=[
            _scores(found),
            _training(found),
            _missing_links(found, texts),
            Section("Environment", facts(_environment(found)), wide=True),
        ],
    )


def summary(text: str) -> str:
    """The first sentence of a docstring."""
    return re.split(r"(?<=[.!?])\s|\s(?:parameters|returns|attributes)\s", text, maxsplit=1)[0]


def _scores(found: Findings) -> Section:
    protocol = paragraph(
        f"{_held_out(found):,} links were held out. Each is ranked against 100 pairs without a "
        "link; higher scores are better, the maximum is 1."
    )
    rows = [(method, *values) for method, values in found.score_rows()]
    return Section(
        "Link prediction",
        joined(protocol, table(["Method", *SCORES.values()], rows, mark_best=True)),
    )


def _held_out(found: Findings) -> int:
    return next(iter(found.scores.values())).edges


def _training(found: Findings) -> Section:
    history = found.model.history_
    steps = [entry["step"] for entry in history]
    best = found.model.result_["best_step"]
    outcome = (
        f"Step {best} had the best validation AUC; its weights are used."
        if best
        else "Training did not improve validation; the closed-form solution is used."
    )

    curves = {
        "contrastive": ("Contrastive loss (lower is better)", ()),
        "validation_auc": ("AUC on validation links", (0.9, 1.0)),
    }
    drawn = [
        curve(
            steps,
            [entry.get(name, float("nan")) for entry in history],
            x_label="step",
            y_label=label,
            y_range=y_range,
            mark=best,
        )
        for name, (label, y_range) in curves.items()
        if any(name in entry for entry in history)
    ]
    return Section("Training", joined(paragraph(outcome), *drawn))


def _missing_links(found: Findings, texts: list[str]) -> Section:
    def end(i: int) -> Html:
        return vertex(found.network.ids[i], first_words(texts[i], 100))

    n, m = len(found.network), _held_out(found)
    description = paragraph(
        "Probable links that are in no See Also list. Pairs with the same name or nearly the same "
        f"text are omitted. {found.density_sentence()}; vhe score assumes balanced classes."
    )
    precision = paragraph(
        f"Precision: of the {m:,} most probable pairs outside the training links ({PARTNERS} "
        f"candidates per vertex), {found.found_again:,} are held-out links; the expected number "
        f"among {m:,} random pairs is {m * m / (n * (n - 1) / 2):.2g}."
    )
    rows = [(end(i), end(j), p) for i, j, p in found.suggestions()]
    return Section(
        "Possibly missing links",
        joined(description, precision, table(["From", "To", "Probability"], rows)),
        wide=True,
    )


def _environment(found: Findings) -> dict[str, object]:
    return {
        "Packages": ", ".join(f"{name} {number}" for name, number in _versions(found).items()),
        "Seed": found.seed,
        "Seconds": ", ".join(f"{part} {taken:.0f}" for part, taken in found.seconds.items()),
        "Machine": found.model.result_["machine"],
        "Date": time.strftime("%Y-%m-%d %H:%M"),
    }


def _versions(found: Findings) -> dict[str, str]:
    """The versions of the packages that fitted the model and of those in the network."""
    versions = dict(found.model.result_["versions"])
    for package in sorted({str(vertex_id).split(".")[0] for vertex_id in found.network.ids}):
        name = {"sklearn": "scikit-learn"}.get(package, package)
        with suppress(PackageNotFoundError, ValueError):
            versions[name] = version(name)
    return versions
