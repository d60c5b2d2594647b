"""The quick check: measured cells beside the committed ones."""

import json
from dataclasses import replace

import pytest

from vhe.errors import VHEError
from vhe.evaluation.experiment import Evaluator
from vhe.evaluation.summary import Figure
from vhe.paper import quick
from vhe.paper.quick import CELLS, Check, quick_table, run_quick
from vhe.paper.results import result_path

CELL = CELLS[-1]
SCORES = {"ap": 0.5, "mrr": 0.5, "hits10": 0.5, "seconds": 1.0}


def committed(folder, auc: float, seed: int) -> None:
    path = result_path(folder, replace(CELL, seed=seed))
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(replace(CELL, seed=seed).as_dict() | SCORES | {"auc": auc}))


@pytest.fixture
def measured(monkeypatch):
    """Measures every cell as .9 without any data."""
    monkeypatch.setattr("vhe.data.datasets.load", lambda name: None)
    monkeypatch.setattr(Evaluator, "measure", lambda self, e: e.as_dict() | SCORES | {"auc": 0.9})


@pytest.mark.parametrize(("aucs", "agrees"), [((0.89, 0.92), True), ((0.95, 0.951), False)])
def test_a_cell_agrees_within_two_standard_deviations(tmp_path, measured, aucs, agrees) -> None:
    for seed, auc in zip((CELL.seed, 3), aucs, strict=True):
        committed(tmp_path, auc, seed)
    (check,) = run_quick(tmp_path, print, cells=[CELL])
    assert check.agrees is agrees
    assert check.committed.seeds == 2
    text = "\n".join(quick_table([check]))
    assert ("1 of 1 figures" if agrees else "0 of 1 figures") in text
    assert ("do not all agree" in text) is not agrees


def test_a_folder_without_results_is_refused(tmp_path, measured) -> None:
    with pytest.raises(VHEError, match="no result of the quick check"):
        run_quick(tmp_path, print, cells=[CELL])


def test_a_cell_that_cannot_be_measured_is_an_error(tmp_path, monkeypatch) -> None:
    def missing(name):
        raise VHEError("no such file")

    committed(tmp_path, 0.9, 0)
    monkeypatch.setattr("vhe.data.datasets.load", missing)
    with pytest.raises(VHEError, match="incomplete: hepth is not available"):
        run_quick(tmp_path, print, cells=[CELL])


def test_a_single_seed_has_a_tolerance_and_a_missing_figure_no_verdict() -> None:
    assert Check(CELL, 0.903, 0.9, Figure(0.95, None, 1)).agrees is True
    assert Check(CELL, 0.905, 0.9, Figure(0.905, None, 1)).agrees is False
    assert Check(CELL, 0.905, None, None).agrees is None
    assert len(quick.CELLS) == len(set(map(str, quick.CELLS))) == 30
