"""The report of a model: scores, curves, missing links and the state of the data."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from tests.web.html_page import Page

from vhe.data.network import TextNetwork
from vhe.data.text import Corpus
from vhe.estimators import VHE, PairVHE
from vhe.predict.calibration import ReliabilityCurve
from vhe.web.model_report import (
    SCORES,
    Accuracy,
    Findings,
    find,
    refitted_accuracy,
    write_model_report,
)

HOSTILE = "a.</script><img src=x onerror=alert(1)>&'\"/+%"
TRAINED = [
    {"step": 0, "validation_auc": 0.93},
    {"step": 5, "validation_auc": 0.95, "contrastive": 2.5},
    {"step": 10, "validation_auc": 0.97, "contrastive": 2.1},
]


CURVE = ReliabilityCurve(np.array([0.1, 0.9]), np.array([0.2, 0.8]), np.array([1.0, 1.0]))


def fake_model(network: TextNetwork, history: list[dict[str, float]], best_step: int) -> Any:
    result = {"model": "graph", "best_step": best_step, "steps": 10, "seed": 0, "seconds": 1.0}
    result |= {"versions": {"vhe": HOSTILE}, "machine": HOSTILE, "notes": [HOSTILE]}
    side = SimpleNamespace(phrases=lambda count: [(HOSTILE, 1.0)][:count])
    suggestion = SimpleNamespace(id=network.ids[-1], probability=0.25)
    return SimpleNamespace(
        history_=history,
        result_=result,
        _rows=SimpleNamespace(words=sparse.csr_array(np.eye(len(network))[[0, 1, 2, 2]])),
        _corpus=Corpus.build(network.texts, min_count=1, max_words=9),
        reliability=lambda: CURVE,
        explain=lambda a, b: SimpleNamespace(source=side, target=side),
        suggest_links=lambda vertex, k: [suggestion],
    )


def written(
    path: Path, history: list[dict[str, float]], best_step: int, accuracy: Any = None
) -> str:
    network = TextNetwork(
        [HOSTILE, "numpy.b", "scipy.c", "d"],
        [HOSTILE, "b", "c", "c"],
        [[0, 1], [1, 2]],
        [HOSTILE] * 4,
    )
    scores: Any = {
        "VHE": SimpleNamespace(edges=1, reliability=CURVE, **dict.fromkeys(SCORES, 0.5)),
        HOSTILE: SimpleNamespace(edges=1, **(dict.fromkeys(SCORES, 0.25) | {"ap": 0.75})),
    }
    found = Findings(
        network=network,
        model=fake_model(network, history, best_step),
        pairs=np.array([[0, 2]]),
        probability=np.array([0.5]),
        chosen=np.array([0]),
        accuracy=accuracy or Accuracy("One link was held out.", scores, 0),
        seconds={"training": 1.0},
    )
    page = write_model_report(
        path / "report.html", found, np.zeros((4, 2)), title=HOSTILE, lede=HOSTILE
    )
    return page.read_text("utf-8")


@pytest.mark.parametrize(
    ("history", "best_step", "curves", "sentence"),
    [
        (TRAINED, 10, 2, "Step 10 had the best validation AUC"),
        (TRAINED[:1], 0, 1, "Training did not improve validation"),
        ([{"step": 0, "validation_auc": float("nan")}], 0, 0, "Training did not improve"),
    ],
)
def test_training_curves(
    tmp_path: Path, history: list[dict[str, float]], best_step: int, curves: int, sentence: str
) -> None:
    page = written(tmp_path, history, best_step)
    assert page.count('<svg class="curve"') == curves + 1  # and the calibration
    assert ("Contrastive loss" in page) == (curves == 2)
    assert "nan" not in page.split('class="sections"')[1].split("<script")[0]
    assert "lower bound" not in page
    assert sentence in page


def test_a_curve_covers_its_range_marks_a_point_and_omits_missing_values(tmp_path: Path) -> None:
    page = written(tmp_path, [*TRAINED, {"step": 20, "validation_auc": float("nan")}], 5)
    _, loss, auc = re.findall(r'<svg class="curve".*?</svg>', page, re.S)
    assert re.findall(r">([\d.]+)</text>", auc) == ["0.9", "0.95", "1", "0", "10", "20"]
    assert re.findall(r">([\d.]+)</text>", loss) == ["2.1", "2.3", "2.5", "0", "10", "20"]
    for drawn, points in ((loss, 2), (auc, 3)):
        (line,) = re.findall(r'points="([^"]+)"', drawn)
        assert len(line.split()) == points
        (x, y) = re.findall(r'<circle class="mark" cx="([\d.]+)" cy="([\d.]+)"', drawn)[0]
        assert f"{x},{y}" in line
        assert drawn.count("<circle") == 1


def test_the_best_score_of_each_column_is_marked(tmp_path: Path) -> None:
    page = written(tmp_path, TRAINED, 5)
    assert re.findall(r'<td class="number best">([^<]+)', page) == ["0.500"] * 3 + ["0.750"]


def test_markup_in_ids_texts_and_names_is_escaped(tmp_path: Path) -> None:
    page = Page(written(tmp_path, TRAINED, 5))
    assert {tag for tag, _ in page.tags} & {"img", "iframe", "object", "embed"} == set()
    assert sum(tag == "script" for tag, _ in page.tags) == 2
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
    # a missing link, the isolated vertex with its partner, and the duplicate texts
    assert page.texts["a"] == [HOSTILE, "scipy.c", "d", "d", "scipy.c", "d"]
    assert page.texts["small"] == [HOSTILE, "c", "c", "c", "c", "c"]
    assert page.texts["li"] == [HOSTILE]  # a note from reading the network
    assert HOSTILE in page.texts["td"]
    assert HOSTILE in page.texts["dd"]
    link = next(attributes["href"] for tag, attributes in page.tags if tag == "a")
    assert link is not None
    assert not re.search(r"[<>&'\"+ ]", link)


def test_a_report_without_accuracy_gives_the_reason(tmp_path: Path) -> None:
    page = written(tmp_path, TRAINED, 5, accuracy=f"No links: {HOSTILE}")
    assert f"No links: {HOSTILE}" in Page(page).texts["p"]
    assert "<p>Precision: " not in page
    assert "validation links that the fit held out" in page


def test_findings_of_a_fitted_model(fitted: VHE, tmp_path: Path) -> None:
    network = fitted.network_
    found = find(fitted, "not measured")
    best = fitted.suggest_all(30, duplicates=False)
    shown = [(network.ids[i], network.ids[j], p) for i, j, p in found.suggestions()]
    assert [p for *_, p in shown] == pytest.approx(best["probability"].tolist()[: len(shown)])
    assert (np.diff(found.probability) <= 0).all()
    linked = {tuple(link) for link in network.links.tolist()}
    assert not linked & {tuple(pair) for pair in found.pairs.tolist()}
    further = network.with_edges(np.concatenate([network.edges, found.pairs[:1]]))
    assert found.pairs[0].tolist() not in find(fitted, "", further).pairs.tolist()
    assert found.isolated().tolist() == np.flatnonzero(network.degrees == 0).tolist()
    for i, j in found.duplicates().tolist():
        a, b = (set(network.texts[vertex].split()) for vertex in (i, j))
        assert len(a & b) / len(a | b) > 0.3
    page = write_model_report(
        tmp_path / "report.html", found, np.zeros((len(network), 2)), title="t", lede="l"
    )
    words = fitted.explain(*shown[0][:2]).source.phrases(1)[0][0]
    assert words in page.read_text("utf-8")


@pytest.mark.parametrize("kind", ["graph", "pair"])
def test_the_accuracy_is_measured_by_a_second_fit(
    kind: str, fitted: VHE, fitted_pair: PairVHE
) -> None:
    model = fitted if kind == "graph" else fitted_pair
    before = model.embedding_.copy()
    measured = refitted_accuracy(model, seed=0)
    assert isinstance(measured, Accuracy)
    assert list(measured.scores) == [type(model).__name__, "Diffused text", "TF-IDF"]
    _, test = model.network_.split_edges(0.85, seed=0)
    assert measured.held_out == len(test)
    assert 0 <= measured.found_again <= len(test)
    assert f"{len(test)} links" in measured.how
    assert measured.scores[type(model).__name__].reliability is not None
    np.testing.assert_array_equal(model.embedding_, before)


def test_a_network_that_is_too_small_has_no_accuracy() -> None:
    network = TextNetwork(["a", "b", "c"], ["x y", "x z", "y z"], [[0, 1]])
    model = VHE(random_state=0, max_steps=1, min_count=1, latent_dim=2, verbose=False).fit(network)
    assert "could not be measured" in str(refitted_accuracy(model, seed=0))
