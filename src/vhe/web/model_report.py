"""The report of a model: map, missing links, accuracy, calibration, and the state of the data."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vhe.errors import VHEError
from vhe.predict.candidates import (
    DUPLICATE,
    duplicate_texts,
    known_pairs,
    likely_links,
    text_cosines,
)
from vhe.predict.link_posterior import at_density
from vhe.predict.predictor import density
from vhe.runtime.messages import counted
from vhe.web.map_data import first_words, grouped_labels
from vhe.web.report import write_report

if TYPE_CHECKING:
    from vhe.data.network import TextNetwork
    from vhe.data.splits import LinkTest
    from vhe.estimators import Estimator
    from vhe.evaluation.link import LinkScores
    from vhe.fitted import FittedModel
    from vhe.predict.scoring import Method

TRAINING_SHARE = 0.85  # of the links, where a second fit measures the accuracy
PARTNERS = 5  # most probable partners per vertex that are considered
SHOWN_LINKS, SHOWN_VERTICES = 30, 20
PHRASES = 3  # per text of a suggested link
SCORES = {"auc": "AUC", "ap": "AP", "mrr": "MRR", "hits10": "Hits@10"}
CURVES = {  # of the training history: name, and values that the axis covers at least
    "contrastive": ("Contrastive loss (lower is better)", ()),
    "validation_auc": ("AUC on validation links", (0.9, 1.0)),
}


@dataclass(frozen=True, eq=False)
class Accuracy:
    """Link prediction on held-out links.

    Attributes
    ----------
    how : a sentence on how it was measured
    scores : by method, first that of the model
    found_again : held-out links among the most probable pairs outside the training links, of which
        as many are taken as there are held-out links
    """

    how: str
    scores: Mapping[str, LinkScores]
    found_again: int

    @property
    def held_out(self) -> int:
        """Number of held-out links."""
        return next(iter(self.scores.values())).edges

    def rows(self) -> list[tuple[str, list[float]]]:
        """Each method with its scores in the order of `SCORES`."""
        return [
            (method, [getattr(score, name) for name in SCORES])
            for method, score in self.scores.items()
        ]


@dataclass(frozen=True, eq=False)
class Findings:
    """What a report shows.

    Attributes
    ----------
    network : with all known links, of which the model may know a part
    pairs, probability : (m, 2) and (m,), suggested links, most probable first
    chosen : (k,) rows of ``pairs`` to list
    accuracy : or the reason why it was not measured
    seconds : duration of each phase
    """

    network: TextNetwork
    model: FittedModel
    pairs: np.ndarray
    probability: np.ndarray
    chosen: np.ndarray
    accuracy: Accuracy | str
    seconds: Mapping[str, float] = field(default_factory=dict)

    def suggestions(self) -> list[tuple[int, int, float]]:
        """The listed links: two vertex indices and the probability of a link."""
        rows = zip(self.pairs[self.chosen], self.probability[self.chosen], strict=True)
        return [(int(i), int(j), float(p)) for (i, j), p in rows]

    def density_sentence(self) -> str:
        """The class balance that the probabilities assume, without a full stop."""
        n = len(self.network)
        pairs = n * (n - 1) / 2 / max(len(self.network.links), 1)
        return f"Probabilities are those in this network, where one of {pairs:,.0f} pairs is a link"

    def isolated(self) -> np.ndarray:
        """Vertices without links."""
        return np.flatnonzero(self.network.degrees == 0)

    def duplicates(self) -> np.ndarray:
        """Pairs of vertices with nearly the same text: (m, 2)."""
        return duplicate_texts(self.model._rows.words)


def find(
    model: FittedModel, accuracy: Accuracy | str, network: TextNetwork | None = None
) -> Findings:
    """The findings on a fitted model.

    Parameters
    ----------
    network : its network with further links, which are not suggested
    """
    whole = model.network_ if network is None else network
    pairs, balanced = likely_links(model, PARTNERS)
    new = ~known_pairs(whole.links, pairs, len(whole))
    pairs, probability = pairs[new], at_density(balanced[new], density(whole))
    distinct = text_cosines(model._rows.words, pairs) < DUPLICATE
    chosen = np.flatnonzero(distinct)[:SHOWN_LINKS]
    return Findings(whole, model, pairs, probability, chosen, accuracy)


def measure_accuracy(model: Estimator, test: LinkTest, how: str) -> Accuracy:
    """Compare a model that was fitted without the links of ``test`` with two baselines."""
    from vhe.baselines.diffused_text import DiffusedText
    from vhe.baselines.tfidf import TFIDF
    from vhe.evaluation.link import evaluate

    methods: dict[str, Method] = {
        "PairVHE" if model.model_name == "pair" else "VHE": model,
        "Diffused text": DiffusedText().fit(test.train),
        "TF-IDF": TFIDF().fit(test.train),
    }
    scores = {name: evaluate(method, test) for name, method in methods.items()}
    pairs, _ = likely_links(model, PARTNERS)
    held_out = known_pairs(test.pairs, pairs, len(test.network))
    return Accuracy(how, scores, int(held_out[: len(test)].sum()))


def refitted_accuracy(model: FittedModel, seed: int) -> Accuracy | str:
    """Fit the model again without some links, with the same settings, and measure on them.

    Returns the reason where a network is too small for it.
    """
    from vhe.estimators import VHE, PairVHE

    try:
        train, test = model.network_.split_edges(TRAINING_SHARE, seed=seed)
        estimator = PairVHE if model.model_name == "pair" else VHE
        again = estimator.from_config(model._config, random_state=model.seed_).fit(train)
        share = counted(len(test), "link")
        how = (
            f"The model was fitted a second time, with the same settings, without {share} "
            f"({100 * len(test) / len(model.network_.links):.0f} %), which are predicted here."
        )
        return measure_accuracy(again, test, how)
    except VHEError as error:
        return f"The accuracy could not be measured: {error}"


def write_model_report(
    path: Path,
    found: Findings,
    coordinates: np.ndarray,
    *,
    title: str,
    lede: str,
    texts: Sequence[str] | None = None,
    labels: Sequence[Hashable | None] | None = None,
    omitted: str = "Pairs of nearly the same texts are omitted.",
    versions: Mapping[str, str] | None = None,
) -> Path:
    """Write the report and return its path.

    Parameters
    ----------
    coordinates : (n, 2) positions on the map
    texts, labels : default: those of the network
    omitted : a sentence on the suggestions that are not listed
    versions : of further packages
    """
    network, model, result = found.network, found.model, found.model.result_
    texts = network.texts if texts is None else texts
    accuracy = found.accuracy if isinstance(found.accuracy, Accuracy) else None
    rows = accuracy.rows() if accuracy else []
    isolated, duplicates = found.isolated(), found.duplicates()
    packages = dict(result["versions"]) | dict(versions or {})
    by_chance = accuracy.held_out**2 / (len(network) * (len(network) - 1) / 2) if accuracy else 0
    return write_report(
        path,
        network,
        coordinates,
        title=title,
        lede=lede,
        texts=texts,
        labels=grouped_labels(network.labels) if labels is None else labels,
        suggestions=found.pairs,
        probabilities=found.probability,
        corpus=found.model._corpus,
        template="model.html",
        ids=[str(vertex_id) for vertex_id in network.ids],
        snippets=[first_words(text, 100) for text in texts],
        density_sentence=found.density_sentence(),
        omitted=omitted,
        links=[(i, j, p, *_phrases(model, network, i, j)) for i, j, p in found.suggestions()],
        accuracy=accuracy,
        no_accuracy="" if accuracy else found.accuracy,
        rows=rows,
        score_names=SCORES.values(),
        best_scores=[max(column) for column in zip(*(values for _, values in rows), strict=True)],
        found_by_chance=f"{by_chance:.2g}",
        partners=PARTNERS,
        reliability=_reliability(found),
        training=_training_sentence(result),
        curves=_curves(model.history_, result["best_step"]),
        isolated=_likeliest_partners(model, network, isolated[:SHOWN_VERTICES]),
        isolated_count=counted(len(isolated), "vertex", "vertices"),
        duplicates=duplicates[:SHOWN_VERTICES].tolist(),
        duplicates_count=counted(len(duplicates), "pair"),
        notes=result.get("notes", ()),
        environment={
            "Packages": ", ".join(f"{name} {number}" for name, number in packages.items()),
            "Seed": result["seed"],
            "Seconds": ", ".join(
                f"{part} {taken:.0f}"
                for part, taken in ({"fit": result["seconds"]} | dict(found.seconds)).items()
            ),
            "Machine": result["machine"],
            "Date": time.strftime("%Y-%m-%d %H:%M"),
        },
    )


def _phrases(model: FittedModel, network: TextNetwork, i: int, j: int) -> tuple[str, str]:
    """The words of both texts that raise the score of a pair."""
    why = model.explain(network.ids[i], network.ids[j])
    source, target = (
        ", ".join(phrase for phrase, _ in side.phrases(PHRASES))
        for side in (why.source, why.target)
    )
    return source, target


def _likeliest_partners(
    model: FittedModel, network: TextNetwork, vertices: np.ndarray
) -> list[tuple[int, int, float]]:
    """The likeliest partner of each vertex, and the probability of the link."""
    found = []
    for vertex in vertices.tolist():
        for suggestion in model.suggest_links(network.ids[vertex], 1):
            found.append((vertex, network.index(suggestion.id), suggestion.probability))
    return found


def _training_sentence(result: Mapping[str, Any]) -> str:
    if result["model"] == "graph" and not result["best_step"]:
        return "Training did not improve validation; the closed-form solution is used."
    if result["model"] == "graph":
        return f"Step {result['best_step']} had the best validation AUC; its weights are used."
    return f"{result['steps']:,} training steps."


def _reliability(found: Findings) -> dict[str, Any]:
    """The calibration plot in the coordinates of its drawing, and what it was measured on."""
    measured = "validation links that the fit held out"
    curve = found.model.reliability()
    if isinstance(found.accuracy, Accuracy):
        held_out = next(iter(found.accuracy.scores.values())).reliability
        if held_out is not None:
            curve, measured = held_out, "the held-out links"
    left, right, top, bottom = 52, 264, 26, 238

    def position(x: float, y: float) -> tuple[float, float]:
        return round(left + (right - left) * x, 1), round(bottom - (bottom - top) * y, 1)

    points = zip(curve.probability.tolist(), curve.frequency.tolist(), strict=True)
    return {
        "points": [position(x, y) for x, y in points],
        "ticks": [(f"{t:g}", *position(t, t)) for t in (0, 0.5, 1)],
        "error": f"{curve.error:.3f}",
        "measured": measured,
    }


def _curves(history: list[dict[str, Any]], best_step: int) -> list[dict[str, Any]]:
    """Line charts of the recorded `CURVES`: points and ticks in the coordinates of the drawing."""
    steps = np.array([entry["step"] for entry in history], dtype=float)
    curves: list[dict[str, Any]] = []
    if not len(steps):
        return curves
    x_ticks, across = _axis(steps, 52, 544)
    for name, (label, covered) in CURVES.items():
        values = np.array([entry.get(name, np.nan) for entry in history], dtype=float)
        known = np.isfinite(values)
        if not known.any():
            continue
        y_ticks, up = _axis(np.append(values[known], covered), 134, 26)
        points = {x: (across(x), up(y)) for x, y in zip(steps[known], values[known], strict=True)}
        curves.append(
            {
                "label": label,
                "points": points.values(),
                "marked": [points[best_step]] if best_step in points else [],
                "x_ticks": x_ticks,
                "y_ticks": y_ticks,
            }
        )
    return curves


def _axis(
    values: np.ndarray, first: float, last: float
) -> tuple[list[tuple[str, float]], Callable[[float], float]]:
    """Up to three ticks that cover ``values``, and the function from a value to its position."""
    low, high = float(values.min()), float(values.max())

    def position(value: float) -> float:
        return round(first + (last - first) * (float(value) - low) / ((high - low) or 1.0), 1)

    ticks = np.unique(np.linspace(low, high, 3)).tolist()
    return [(f"{tick:.3g}", position(tick)) for tick in ticks], position
