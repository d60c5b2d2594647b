"""A check of the committed results in minutes: a few experiments, measured again and compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from vhe.errors import VHEError
from vhe.evaluation.experiment import Experiment, percent
from vhe.evaluation.summary import Figure
from vhe.paper.results import read_result, read_results, result_path
from vhe.paper.runner import run
from vhe.paper.tables import dataset_name, display

SEED = 10  # one of the committed seeds, so that the split is one of theirs
LEAST_STD = 0.002  # for cells with one seed, or seeds that happen to agree
METHODS = {  # the trained models of the paper on the smaller dataset
    "vhe": ("cora", "hepth"),
    "pair-vhe": ("hepth",),
    "pwa": ("hepth",),
    "diffused-text": ("cora", "hepth"),
    "tadw": ("cora", "hepth"),
    "tfidf": ("cora", "hepth"),
}
CELLS = tuple(
    Experiment("link", dataset, method, share, "clean", SEED)
    for method, datasets in METHODS.items()
    for dataset in datasets
    for share in (0.15, 0.55, 0.95)
)


@dataclass(frozen=True)
class Check:
    """An experiment measured again.

    Attributes
    ----------
    auc : measured now.
    same_seed : committed AUC of the same experiment; None if there is none.
    committed : committed figure over all seeds; None if there is none.
    """

    experiment: Experiment
    auc: float
    same_seed: float | None
    committed: Figure | None

    @property
    def agrees(self) -> bool | None:
        """Whether it is within two standard deviations of the same seed; None without a figure.

        The standard deviation is that over seeds.
        """
        if self.committed is None or self.same_seed is None:
            return None
        return abs(self.auc - self.same_seed) <= 2 * max(self.committed.std or 0, LEAST_STD)

    def as_dict(self) -> dict[str, Any]:
        """Return the check ready for JSON."""
        committed = {} if self.committed is None else vars(self.committed)
        names = ("dataset", "method", "share", "protocol", "seed")
        fields = {name: getattr(self.experiment, name) for name in names}
        return fields | {
            "auc": self.auc,
            "same_seed": self.same_seed,
            "committed": committed or None,
            "agrees": self.agrees,
        }


def run_quick(
    results: Path,
    report: Callable[[str], None],
    *,
    workers: int = 1,
    cells: Sequence[Experiment] = CELLS,
) -> list[Check]:
    """Measure the cells again in a temporary folder and compare them with ``results``.

    Raises
    ------
    VHEError
        If ``results`` has none of the cells, or a cell cannot be measured.
    """
    committed: dict[Any, list[float]] = {}
    for result in read_results(results):
        if result["task"] == "link":
            committed.setdefault(_key(**result), []).append(result["auc"])
    known = {
        _cell(cell): Figure.of(committed[_cell(cell)]) for cell in cells if _cell(cell) in committed
    }
    if not known:
        raise VHEError(f"{results}: no result of the quick check; give the folder by --results")
    with TemporaryDirectory() as folder:
        tally = run(cells, Path(folder), report=report, workers=workers)
        for reason in (*tally.skipped, *tally.failed):
            raise VHEError(f"the quick check is incomplete: {reason}")
        measured = [read_result(result_path(Path(folder), cell)) or {} for cell in cells]
    return [
        Check(cell, result["auc"], _committed(results, cell), known.get(_cell(cell)))
        for cell, result in zip(cells, measured, strict=True)
    ]


def quick_table(checks: Sequence[Check]) -> list[str]:
    """Return the lines of the comparison, with a verdict at the end."""
    lines = [f"{'AUC, protocol clean':40} now    committed  all seeds             within 2 sd"]
    for check in checks:
        e = check.experiment
        name = f"{display(e.method)}, {dataset_name(e.dataset)}, {percent(e.share)} %"
        figure = "none"
        if check.committed is not None:
            figure = f"{check.committed} ({check.committed.seeds})"
        verdict = {True: "yes", False: "NO", None: "-"}[check.agrees]
        same = "-" if check.same_seed is None else f"{100 * check.same_seed:5.1f}"
        lines.append(f"{name:40} {100 * check.auc:5.1f}  {same:>9}  {figure:20}  {verdict}")
    compared = [check for check in checks if check.agrees is not None]
    agreeing = sum(bool(check.agrees) for check in compared)
    verdict = "agree" if agreeing == len(compared) else "do not all agree"
    lines.append(
        f"{agreeing} of {len(compared)} figures are within two standard deviations: they {verdict}"
    )
    return lines


def _committed(results: Path, cell: Experiment) -> float | None:
    result = read_result(result_path(results, cell))
    return None if result is None else float(result["auc"])


def _key(dataset: str, method: str, ratio: float, protocol: str, **_: Any) -> tuple[Any, ...]:
    return dataset, method, ratio, protocol


def _cell(cell: Experiment) -> tuple[Any, ...]:
    return cell.dataset, cell.method, cell.share, cell.protocol
