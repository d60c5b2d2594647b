"""One measurement: a method on a split of a network. The command and the paper's grid run these."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

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
MEASURES: dict[Task, tuple[str, ...]] = {
    "link": LINK_MEASURES,
    "classify": ("accuracy", "macro_f1"),
    "unseen": LINK_MEASURES,
    "degree": LINK_MEASURES,
    "lambda": LINK_MEASURES,
    "alpha": LINK_MEASURES,
    "structure": LINK_MEASURES,
    "tsne": ("purity",),
    "ablation": LINK_MEASURES,
}
CALIBRATION = ("brier", "ece")  # in a result only where the method gives probabilities
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
WHOLE: tuple[Task, ...] = ("classify", "tsne")  # learn from all edges: no protocol, no negatives
VARIED: dict[Task, str] = {  # the setting whose influence a task shows
    "lambda": "homophily",
    "alpha": "alpha",
    "structure": "structure",
}


@dataclass(frozen=True)
class Cell:
    """What is measured.

    Attributes
    ----------
    share : of the labels (classify), vertices (unseen) or else edges that are seen.
    protocol : None for what learns from all edges and needs no negatives.
    settings : of the method, where they are not its own choices.
    """

    task: Task
    dataset: str
    method: str
    share: float
    protocol: Protocol | None
    seed: int
    settings: dict[str, Any] = field(default_factory=dict, hash=False)

    def as_dict(self) -> dict[str, Any]:
        """The cell as it stands in a result; settings only where there are any."""
        share = "labelled" if self.task == "classify" else "ratio"
        told: dict[str, Any] = {"task": self.task, "dataset": self.dataset, "method": self.method}
        told[share] = self.share
        if self.protocol is not None:
            told["protocol"] = self.protocol
        told["seed"] = self.seed
        return told | ({"settings": self.settings} if self.settings else {})

    @property
    def variant(self) -> str | None:
        """The value of the setting that the task varies, as it is written in names."""
        if self.task == "ablation":
            return ablation_name(self.settings)
        if self.task not in VARIED:
            return None
        value = self.settings[VARIED[self.task]]
        return value if isinstance(value, str) else f"{value:g}"

    def __str__(self) -> str:
        said = [self.task, self.dataset, self.method, f"{percent(self.share)} %"]
        said += [self.protocol] if self.protocol else []
        if self.variant:
            said.append(
                f"{VARIED[self.task]}={self.variant}" if self.task in VARIED else self.variant
            )
        return " ".join([*said, f"seed {self.seed}"])


def ablation_name(settings: dict[str, Any]) -> str:
    """Which settings are not the default ones, as it is written in names."""
    return "+".join(f"{name}={value}" for name, value in settings.items()) or "default"


class Bench:
    """Measures methods on one network.

    Labels are not looked at when a method is fitted, so that classification of several shares
    needs one fit: the last embedding is kept.

    Attributes
    ----------
    reliability : of the probabilities of the cell that was measured last; None without any.
    """

    def __init__(self, network: TextNetwork) -> None:
        self.network = network
        self.reliability: ReliabilityCurve | None = None
        self._kept: tuple[object, Any, float] | None = None

    def measure(self, cell: Cell) -> dict[str, Any]:
        """The result of a cell: what it is, its scores, and the seconds that fitting took."""
        self.reliability = None
        if cell.task == "classify":
            scores, seconds = self._classify(cell)
        elif cell.task == "tsne":
            scores, seconds = self._map(cell)
        else:
            scores, seconds = self._link(cell)
        return cell.as_dict() | scores | {"seconds": round(seconds, 3)}

    def _link(self, cell: Cell) -> tuple[dict[str, Any], float]:
        from vhe.data.splits import split_edges, split_vertices
        from vhe.evaluation.degree import auc_by_degree
        from vhe.evaluation.link import evaluate
        from vhe.evaluation.unseen import check_unseen, fit_unseen

        protocol = cell.protocol or "clean"
        method = make(cell.method, cell.seed, **cell.settings)
        fitted: Method
        test: LinkTest
        if cell.task == "unseen":
            check_unseen(cell.method, method)
            _, unseen = split_vertices(self.network, cell.share, cell.seed, protocol)
            began = time.monotonic()
            fitted, test = fit_unseen(method, unseen), unseen
        else:
            train, test = split_edges(self.network, cell.share, cell.seed, protocol)
            began = time.monotonic()
            fitted = method.fit(train)
        seconds = time.monotonic() - began
        scores = evaluate(fitted, test)
        self.reliability = scores.reliability
        told = scores.as_dict()
        chosen = {name: told[name] for name in (*LINK_MEASURES, *CALIBRATION) if name in told}
        if cell.task == "degree":
            chosen["groups"] = [asdict(group) for group in auc_by_degree(fitted, test)]
        return chosen, seconds

    def _classify(self, cell: Cell) -> tuple[dict[str, Any], float]:
        from vhe.evaluation.classify import evaluate_classification, number_labels

        number_labels(self.network.labels)  # refuses before the work what has no labels
        embedding, seconds = self._embedding(cell)
        scores = evaluate_classification(embedding, self.network.labels, cell.share, cell.seed)
        return {name: getattr(scores, name) for name in MEASURES["classify"]}, seconds

    def _map(self, cell: Cell) -> tuple[dict[str, Any], float]:
        from vhe.evaluation.classify import map_purity, number_labels
        from vhe.predict.layout import layout

        number_labels(self.network.labels)
        embedding, seconds = self._embedding(cell)
        points = layout(embedding, cell.seed).round(2)
        return {
            "purity": map_purity(points, self.network.labels),
            "points": points.tolist(),
            "labels": [None if v is None else str(v) for v in self.network.labels or ()],
        }, seconds

    def _embedding(self, cell: Cell) -> tuple[Any, float]:
        """What a method learns from the whole network, and the seconds that took."""
        key = (cell.method, cell.seed, cell.settings)
        if self._kept is None or self._kept[0] != key:
            self._kept = None  # two embeddings at a time are one too many
            began = time.monotonic()
            method = make(cell.method, cell.seed, **cell.settings).fit(self.network)
            self._kept = key, method.embedding_, time.monotonic() - began
        return self._kept[1], self._kept[2]


def check_methods(methods: Sequence[str], task: Task) -> None:
    """Refuse, before any work, a method that is unknown or cannot do the task."""
    from vhe.evaluation.unseen import check_unseen

    for name in methods:
        check_name(name)
        if task == "unseen":
            check_unseen(name, make(name, 0))


def parse_shares(text: str, option: str) -> tuple[float, ...]:
    """Shares from a list such as ``0.15,0.55`` or, in percent, ``15,55``."""
    shares = []
    for part in _parts(text, option):
        try:
            value = float(part.removesuffix("%"))
        except ValueError:
            value = -1.0
        share = value / 100 if value > 1 else value
        if not 0 < share < 1:
            raise VHEError(f"{option} {part}: a share is a number as 0.55, or a percentage as 55")
        shares.append(round(share, 6))
    return tuple(dict.fromkeys(shares))


def parse_seeds(text: str) -> tuple[int, ...]:
    """Seeds from a list such as ``3``, ``0-9`` or ``0-2,7``."""
    seeds: list[int] = []
    for part in _parts(text, "--seeds"):
        first, dash, last = part.partition("-")
        try:
            low, high = int(first), int(last if dash else first)
        except ValueError:
            low, high = 0, -1
        if not 0 <= low <= high:
            raise VHEError(f"--seeds {part}: seeds are whole numbers as 3, or a range as 0-9")
        seeds.extend(range(low, high + 1))
    return tuple(dict.fromkeys(seeds))


def parse_names(text: str, option: str) -> tuple[str, ...]:
    """Names from a list such as ``vhe,tfidf``."""
    return tuple(dict.fromkeys(_parts(text, option)))


def percent(share: float) -> str:
    """A share in percent, without needless digits."""
    return f"{100 * share:.6g}"


def _parts(text: str, option: str) -> list[str]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise VHEError(f"{option} is empty: give at least one, or leave it out")
    return parts
