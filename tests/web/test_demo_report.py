"""The training section of the demonstration's report, for any history of a model."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from vhe.data.network import TextNetwork
from vhe.web.demo_report import SCORES, Findings, write_demo_report

TRAINED = [
    {"step": 0, "validation_auc": 0.93},
    {"step": 5, "validation_auc": 0.95, "contrastive": 2.5},
    {"step": 10, "validation_auc": 0.97, "contrastive": 2.1},
]


@pytest.mark.parametrize(
    ("history", "best_step", "curves", "sentence"),
    [
        (TRAINED, 10, 2, "Step 10 had the best validation AUC"),
        (TRAINED[:1], 0, 1, "Training did not improve validation"),
    ],
)
def test_training_curves(
    tmp_path: Path, history: list[dict[str, float]], best_step: int, curves: int, sentence: str
) -> None:
    network = TextNetwork(["numpy.a", "numpy.b", "scipy.c"], ["a", "b", "c"], [[0, 1], [1, 2]])
    result = {"best_step": best_step, "versions": {"vhe": "0"}, "machine": "test"}
    model: Any = SimpleNamespace(history_=history, result_=result)
    scores: Any = SimpleNamespace(edges=1, **dict.fromkeys(SCORES, 0.5))
    found = Findings(
        network=network,
        model=model,
        seed=0,
        scores={"VHE": scores},
        found_again=0,
        pairs=np.array([[0, 2]]),
        probability=np.array([0.5]),
        chosen=np.array([0]),
        seconds={"training": 1.0},
    )
    page = write_demo_report(tmp_path / "report.html", found, np.zeros((3, 2))).read_text("utf-8")
    assert page.count('<svg class="curve"') == curves
    assert ("Contrastive loss" in page) == (curves == 2)
    assert "lower bound" not in page
    assert sentence in page
