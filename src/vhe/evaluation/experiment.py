"""Experiments: one method on one split of a network, run by `vhe evaluate` and `vhe reproduce`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

from vhe.errors import VHEError
from vhe.evaluation.methods import check_name, make

if TYPE_CHECKING:
    from vhe.data.network import TextNetwork
    from vhe.data.splits import LinkTest, Protocol
    from vhe.predict.calibration import ReliabilityCurve
    from vhe.predict.scoring import Method

Task = Literal[
    "link", "classify", "unseen", "degree", "lambda", "alpha", "structure", "tsne", "ablation"
]

LINK_MEASURES = ("auc", "ap", "mrr", "hits10")
MEASURES: dict[Task, tuple[str, ...]] = dict.fromkeys(get_args(Task), LINK_MEASURES) | {
    "classify": ("accuracy", "macro_f1"),
    "tsne": ("purity",),
}
CALIBRATION = ("brier", "ece")  # only for methods that predict probabilities
TITLES = {
    "auc": "AUC",
    "ap": "AP",
    "mrr": "MRR",
    "hits10": "Hits@10",
    "brier": "Brier score",
    "ece": "Calibration error",
    "accuracy": "accuracy",
    "macro_f1": "macro F1",
    "purity": "purity",
}
WHOLE: tuple[Task, ...] = ("classify", "tsne")  # trained on all edges: no protocol, no negatives
VARIED: dict[Task, str] = {  # the setting that a task varies
    "lambda": "homophily",
    "alpha": "alpha",
    "structure": "structure",
}


@dataclass(frozen=True)
class Experiment:
    """One method on one split of a dataset.

    Attributes
    ----------
    share : fraction of the labels (classify), vertices (unseen) or edges that are seen.
    protocol : None for tasks that train on all edges and need no negatives.
    settings : settings of the method that differ from its defaults.
    """

    task: Task
    dataset: str
    method: str
    share: float
    protocol: Protocol | None
    seed: int
    settings: dict[str, Any] = field(default_factory=dict, hash=False)

    def as_dict(self) -> dict[str, Any]:
        """Return the fields of the experiment as a result stores them."""
        share = "labelled" if self.task == "classify" else "ratio"
        fields = {"task": self.task, "dataset": self.dataset, "method": self.method}
        protocol = {} if self.protocol is None else {"protocol": self.protocol}
        settings = {"settings": self.settings} if self.settings else {}
        return fields | {share: self.share} | protocol | {"seed": self.seed} | settings

    @property
    def variant(self) -> str | None:
        """The value of the setting that the task varies, as used in file names."""
        if self.task == "ablation":
            return ablation_name(self.settings)
        if self.task not in VARIED:
            return None
        value = self.settings[VARIED[self.task]]
        return value if isinstance(value, str) else f"{value:g}"

    def __str__(self) -> str:
        parts = [self.task, self.dataset, self.method, f"{percent(self.share)} %"]
        parts += [self.protocol] if self.protocol else []
        if self.variant:
            parts.append(
                f"{VARIED[self.task]}={self.variant}" if self.task in VARIED else self.variant
            )
        return " ".join([*parts, f"seed {self.seed}"])


def ablation_name(settings: dict[str, Any]) -> str:
    """Return the settings that differ from the defaults, as used in file names."""
    return "+".join(f"{name}={value}" for name, value in settings.items()) or "default"


def headline(result: dict[str, Any]) -> str:
    """Return the first measure of a result, such as ``AUC 94.4``."""
    measure = MEASURES[result["task"]][0]
    return f"{TITLES[measure]} {100 * result[measure]:.1f}"


class Evaluator:
    """Runs experiments on one network.

    Classification at several fractions of labels needs one fit, because methods do not see labels:
    the last embedding is cached.

    Attributes
    ----------
    reliability : reliability curve of the last experiment; None without probabilities.
    """

    def __init__(self, network: TextNetwork) -> None:
        self.network = network
        self.reliability: ReliabilityCurve | None = None
        self._cached: tuple[object, Any, float] | None = None

    def measure(self, experiment: Experiment) -> dict[str, Any]:
        """Run an experiment; return its fields, its scores and the seconds of the fit.

        Raises
        ------
        KeyboardInterrupt
            If the fit was interrupted: a partly trained method is never scored.
        """
        self.reliability = None
        measured = self._whole if experiment.task in WHOLE else self._link
        scores, seconds = measured(experiment)
        return experiment.as_dict() | scores | {"seconds": round(seconds, 3)}

    def _link(self, experiment: Experiment) -> tuple[dict[str, Any], float]:
        from vhe.data.splits import split_edges, split_vertices
        from vhe.evaluation.degree import auc_by_degree
        from vhe.evaluation.link import evaluate
        from vhe.evaluation.unseen import check_unseen, fit_unseen

        protocol = experiment.protocol or "clean"
        method = make(experiment.method, experiment.seed, **experiment.settings)
        fitted: Method
        test: LinkTest
        if experiment.task == "unseen":
            check_unseen(experiment.method, method)
            _, unseen = split_vertices(self.network, experiment.share, experiment.seed, protocol)
            started = time.monotonic()
            fitted, test = fit_unseen(method, unseen), unseen
        else:
            train, test = split_edges(self.network, experiment.share, experiment.seed, protocol)
            started = time.monotonic()
            fitted = method.fit(train)
        seconds = time.monotonic() - started
        _check_completed(fitted)
        scores = evaluate(fitted, test)
        self.reliability = scores.reliability
        values = scores.as_dict()
        chosen = {name: values[name] for name in (*LINK_MEASURES, *CALIBRATION) if name in values}
        if experiment.task == "degree":
            chosen["groups"] = [asdict(group) for group in auc_by_degree(fitted, test)]
        return chosen, seconds

    def _whole(self, experiment: Experiment) -> tuple[dict[str, Any], float]:
        from vhe.evaluation.classify import evaluate_classification, map_purity, number_labels
        from vhe.predict.layout import layout

        labels = self.network.labels
        number_labels(labels)  # raises before the fit if there are no labels
        embedding, seconds = self._embedding(experiment)
        if experiment.task == "classify":
            scores = evaluate_classification(embedding, labels, experiment.share, experiment.seed)
            return {name: getattr(scores, name) for name in MEASURES["classify"]}, seconds
        points = layout(embedding, experiment.seed).round(2)
        return {
            "purity": map_purity(points, labels),
            "points": points.tolist(),
            "labels": [None if label is None else str(label) for label in labels or ()],
        }, seconds

    def _embedding(self, experiment: Experiment) -> tuple[Any, float]:
        """Return the embedding of the whole network and the seconds of the fit."""
        key = (experiment.method, experiment.seed, experiment.settings)
        if self._cached is None or self._cached[0] != key:
            self._cached = None  # free the memory before the next fit
            started = time.monotonic()
            method = make(experiment.method, experiment.seed, **experiment.settings)
            fitted = method.fit(self.network)
            _check_completed(fitted)
            self._cached = key, fitted.embedding_, time.monotonic() - started
        return self._cached[1], self._cached[2]


def _check_completed(method: Method) -> None:
    """Raise `KeyboardInterrupt` if Ctrl-C ended the training of a method early.

    Estimators treat Ctrl-C as early stopping and return normally.
    """
    result: dict[str, Any] = getattr(method, "result_", {})
    if result.get("stopped", "").startswith("interrupted"):
        raise KeyboardInterrupt


def check_methods(methods: Sequence[str], task: Task) -> None:
    """Raise `VHEError` for a method that is unknown or not applicable to the task."""
    from vhe.evaluation.unseen import check_unseen

    for name in methods:
        check_name(name)
        if task == "unseen":
            check_unseen(name, make(name, 0))


def parse_shares(text: str, option: str) -> tuple[float, ...]:
    """Parse fractions such as ``0.15,0.55`` or, in percent, ``15,55``."""
    shares = []
    for part in _parts(text, option):
        try:
            value = float(part.removesuffix("%"))
        except ValueError:
            value = -1.0
        share = value / 100 if value > 1 else value
        if not 0 < share < 1:
            raise VHEError(
                f"{option} {part}: expected a fraction such as 0.55 or a percentage such as 55"
            )
        shares.append(round(share, 6))
    return tuple(dict.fromkeys(shares))


def parse_seeds(text: str) -> tuple[int, ...]:
    """Parse seeds such as ``3``, ``0-9`` or ``0-2,7``."""
    seeds: list[int] = []
    for part in _parts(text, "--seeds"):
        first, dash, last = part.partition("-")
        try:
            low, high = int(first), int(last if dash else first)
        except ValueError:
            low, high = 0, -1
        if not 0 <= low <= high:
            raise VHEError(f"--seeds {part}: expected an integer such as 3 or a range such as 0-9")
        seeds.extend(range(low, high + 1))
    return tuple(dict.fromkeys(seeds))


def parse_names(text: str, option: str) -> tuple[str, ...]:
    """Parse names such as ``vhe,tfidf``."""
    return tuple(dict.fromkeys(_parts(text, option)))


def percent(share: float) -> str:
    """Format a fraction in percent without trailing zeros."""
    return f"{100 * share:.6g}"


def _parts(text: str, option: str) -> list[str]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise VHEError(f"{option} is empty: give at least one value, or omit it")
    return parts
