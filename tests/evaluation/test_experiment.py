"""Experiments: results, caching of fits, interrupted fits, parsing of option values."""

import os
import signal
from typing import Any

import numpy as np
import pytest

from vhe.data.network import TextNetwork
from vhe.data.splits import split_edges, split_vertices
from vhe.errors import VHEError
from vhe.evaluation.classify import evaluate_classification
from vhe.evaluation.experiment import (
    Evaluator,
    Experiment,
    check_methods,
    parse_names,
    parse_seeds,
    parse_shares,
)
from vhe.evaluation.link import evaluate
from vhe.evaluation.methods import make
from vhe.evaluation.summary import Figure
from vhe.evaluation.unseen import fit_unseen
from vhe.predict.scoring import CosineMethod

FAST_VHE = {"latent_dim": 16, "min_count": 1, "max_steps": 2, "validation": 0.2}


class Interrupted(CosineMethod):
    """A method whose fit was ended by Ctrl-C."""

    def fit(self, network: TextNetwork) -> "Interrupted":
        self.embedding_ = np.ones((len(network), 2))
        self.result_ = {"stopped": "interrupted at step 7"}
        return self

    def add_vertices(self, texts: dict) -> "Interrupted":
        return self


@pytest.mark.parametrize("protocol", ["clean", "lines"])
def test_a_link_experiment_splits_fits_and_evaluates(network: TextNetwork, protocol) -> None:
    result = Evaluator(network).measure(
        Experiment("link", "topics", "diffused-text", 0.6, protocol, 2)
    )
    train, test = split_edges(network, 0.6, 2, protocol)
    expected = evaluate(make("diffused-text", 2).fit(train), test).as_dict()
    assert list(result) == (
        [
            "task",
            "dataset",
            "method",
            "ratio",
            "protocol",
            "seed",
            "auc",
            "ap",
            "mrr",
            "hits10",
            "seconds",
        ]
    )
    assert {key: result[key] for key in ("auc", "ap", "mrr", "hits10")} == pytest.approx(
        {key: expected[key] for key in ("auc", "ap", "mrr", "hits10")}
    )
    assert (result["protocol"], result["ratio"], result["seed"]) == (protocol, 0.6, 2)
    assert result["seconds"] >= 0


def test_an_unseen_experiment_holds_out_vertices(network: TextNetwork) -> None:
    result = Evaluator(network).measure(Experiment("unseen", "topics", "tfidf", 0.6, "lines", 1))
    test = split_vertices(network, 0.6, 1, "lines")[1]
    assert result["auc"] == evaluate(fit_unseen(make("tfidf", 1), test), test).auc


def test_fractions_of_labels_share_one_fit(network: TextNetwork, monkeypatch) -> None:
    from vhe.baselines.diffused_text import DiffusedText

    fits = []
    fit = DiffusedText.fit
    monkeypatch.setattr(DiffusedText, "fit", lambda self, net: fits.append(net) or fit(self, net))
    evaluator = Evaluator(network)
    experiments = [
        Experiment("classify", "topics", "diffused-text", share, None, seed)
        for seed in (0, 1)
        for share in (0.3, 0.5)
    ]
    results = [evaluator.measure(experiment) for experiment in experiments]
    assert len(fits) == 2
    assert fits[0] is network  # all edges
    assert list(results[0]) == (
        ["task", "dataset", "method", "labelled", "seed", "accuracy", "macro_f1", "seconds"]
    )
    rows = make("diffused-text", 1).fit(network).embedding_
    expected = evaluate_classification(rows, network.labels, 0.5, 1)
    assert results[3]["accuracy"] == expected.accuracy
    assert results[3]["macro_f1"] == expected.macro_f1


def test_a_degree_experiment_has_groups(network: TextNetwork) -> None:
    result = Evaluator(network).measure(Experiment("degree", "topics", "tfidf", 0.6, "lines", 1))
    _, test = split_edges(network, 0.6, 1, "lines")
    groups = result["groups"]
    assert groups[0]["least"] == 1
    assert groups[-1]["most"] == network.degrees.max()
    assert sum(group["edges"] for group in groups) == 2 * len(test)
    mean = sum(group["edges"] * group["auc"] for group in groups) / (2 * len(test))
    assert mean == pytest.approx(result["auc"])


def test_a_map_and_a_classification_share_one_fit(network: TextNetwork, monkeypatch) -> None:
    from vhe.baselines.diffused_text import DiffusedText

    fits = []
    fit = DiffusedText.fit
    monkeypatch.setattr(DiffusedText, "fit", lambda self, net: fits.append(net) or fit(self, net))
    evaluator = Evaluator(network)
    evaluator.measure(Experiment("classify", "topics", "diffused-text", 0.5, None, 0))
    result = evaluator.measure(Experiment("tsne", "topics", "diffused-text", 1.0, None, 0))
    assert len(fits) == 1
    assert np.array(result["points"]).shape == (len(network), 2)
    assert result["labels"] == list(network.labels)
    assert result["purity"] > 0.3  # 0.2 for random labels


def test_calibration_is_scored_for_methods_with_probabilities(
    network: TextNetwork,
) -> None:
    evaluator = Evaluator(network)
    result = evaluator.measure(Experiment("link", "topics", "vhe", 0.8, "clean", 0, FAST_VHE))
    assert 0 < result["brier"] < 0.3
    assert 0 < result["ece"] < 0.5
    assert evaluator.reliability.error == result["ece"]
    assert "brier" not in evaluator.measure(Experiment("link", "topics", "tfidf", 0.8, "clean", 0))
    assert evaluator.reliability is None


@pytest.mark.parametrize("task", ["link", "unseen", "classify", "tsne"])
def test_an_interrupted_fit_is_never_scored(
    task, network: TextNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vhe.evaluation.experiment.make", lambda *_, **__: Interrupted())
    evaluator = Evaluator(network)
    protocol = "clean" if task in ("link", "unseen") else None
    for _ in range(2):  # the second time must not use a cached embedding
        with pytest.raises(KeyboardInterrupt):
            evaluator.measure(Experiment(task, "topics", "vhe", 0.5, protocol, 0))


def test_ctrl_c_during_training_ends_the_experiment(
    network: TextNetwork, monkeypatch: pytest.MonkeyPatch, logs: Any
) -> None:
    from vhe.graph.training import CrossFitTrainer

    step = CrossFitTrainer.step

    def interrupted(self: CrossFitTrainer, number: int) -> dict[str, float]:
        os.kill(os.getpid(), signal.SIGINT)
        return step(self, number)

    monkeypatch.setattr(CrossFitTrainer, "step", interrupted)
    with logs("stopped early"), pytest.raises(KeyboardInterrupt):
        Evaluator(network).measure(Experiment("link", "topics", "vhe", 0.8, "clean", 0, FAST_VHE))


def test_the_varied_setting_is_part_of_the_name() -> None:
    varied = Experiment("lambda", "cora", "pair-vhe", 0.95, "lines", 3, {"homophily": 0.0})
    assert str(varied) == "lambda cora pair-vhe 95 % lines homophily=0 seed 3"
    plain = Experiment("link", "cora", "cane", 0.95, "lines", 3, {"weights": {"text": 1}})
    assert str(plain) == "link cora cane 95 % lines seed 3"
    assert plain.variant is None


def test_settings_are_used_and_stored(network: TextNetwork) -> None:
    few = Experiment("link", "topics", "diffused-text", 0.6, "clean", 0, {"dimensions": 1})
    result = Evaluator(network).measure(few)
    assert result["settings"] == {"dimensions": 1}
    plain = Evaluator(network).measure(
        Experiment("link", "topics", "diffused-text", 0.6, "clean", 0)
    )
    assert result["auc"] != plain["auc"]


def test_missing_labels_are_refused_before_the_fit(network: TextNetwork, monkeypatch) -> None:
    monkeypatch.setattr(
        "vhe.evaluation.experiment.make", lambda *_, **__: pytest.fail("was fitted")
    )
    bare = TextNetwork(network.ids, network.texts, network.edges)
    with pytest.raises(VHEError, match="label"):
        Evaluator(bare).measure(Experiment("classify", "bare", "tfidf", 0.5, None, 0))


def test_methods_are_checked_before_the_fit() -> None:
    check_methods(["tfidf", "vhe"], "link")
    check_methods(["tfidf", "diffused-text"], "unseen")
    with pytest.raises(VHEError, match="deepwalk cannot embed"):
        check_methods(["tfidf", "deepwalk"], "unseen")
    with pytest.raises(VHEError, match="did you mean tfidf"):
        check_methods(["tfdif"], "link")


def test_option_values_are_parsed() -> None:
    assert parse_shares("0.15, 55,95%", "--ratio") == (0.15, 0.55, 0.95)
    assert parse_shares("55,0.55", "--ratio") == (0.55,)
    assert parse_seeds("0-2,7") == (0, 1, 2, 7)
    assert parse_seeds("3") == (3,)
    assert parse_names("vhe, tfidf,vhe", "--method") == ("vhe", "tfidf")


@pytest.mark.parametrize("text", ["", "1", "0", "100", "-5", "x", "0.5;0.6", "nan"])
def test_invalid_fractions_are_refused(text: str) -> None:
    with pytest.raises(VHEError, match="--ratio"):
        parse_shares(text, "--ratio")


@pytest.mark.parametrize("text", ["", ",", "x", "3-1", "-1", "1-", "0.5"])
def test_invalid_seeds_are_refused(text: str) -> None:
    with pytest.raises(VHEError, match="--seeds"):
        parse_seeds(text)


def test_figures_are_mean_and_sample_standard_deviation() -> None:
    values = [0.9, 0.95, 0.97]
    figure = Figure.of(values)
    assert figure.mean == pytest.approx(np.mean(values))
    assert figure.std == pytest.approx(np.std(values, ddof=1))
    assert str(figure) == "94.0 ± 3.6"
    assert str(Figure.of([0.5])) == "50.0"
