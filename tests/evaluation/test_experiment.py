"""A measurement: what it is called, what it does once only, and how lists on the line are read."""

import numpy as np
import pytest

from vhe.data.network import TextNetwork
from vhe.data.splits import split_edges, split_vertices
from vhe.errors import VHEError
from vhe.evaluation.classify import evaluate_classification
from vhe.evaluation.experiment import (
    Bench,
    Cell,
    check_methods,
    parse_names,
    parse_seeds,
    parse_shares,
)
from vhe.evaluation.link import evaluate
from vhe.evaluation.methods import make
from vhe.evaluation.summary import Figure
from vhe.evaluation.unseen import evaluate_unseen


@pytest.mark.parametrize("protocol", ["clean", "lines"])
def test_a_link_cell_is_split_fit_evaluate(network: TextNetwork, protocol) -> None:
    result = Bench(network).measure(Cell("link", "topics", "diffused-text", 0.6, protocol, 2))
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


def test_an_unseen_cell_holds_out_vertices(network: TextNetwork) -> None:
    result = Bench(network).measure(Cell("unseen", "topics", "tfidf", 0.6, "lines", 1))
    test = split_vertices(network, 0.6, 1, "lines")[1]
    assert result["auc"] == evaluate_unseen(make("tfidf", 1), test).auc


def test_shares_of_labels_need_one_fit(network: TextNetwork, monkeypatch) -> None:
    from vhe.baselines.diffused_text import DiffusedText

    fits = []
    fit = DiffusedText.fit
    monkeypatch.setattr(DiffusedText, "fit", lambda self, net: fits.append(net) or fit(self, net))
    bench = Bench(network)
    cells = [
        Cell("classify", "topics", "diffused-text", share, None, seed)
        for seed in (0, 1)
        for share in (0.3, 0.5)
    ]
    results = [bench.measure(cell) for cell in cells]
    assert len(fits) == 2
    assert fits[0] is network  # all edges
    assert list(results[0]) == (
        ["task", "dataset", "method", "labelled", "seed", "accuracy", "macro_f1", "seconds"]
    )
    rows = make("diffused-text", 1).fit(network).embedding_
    expected = evaluate_classification(rows, network.labels, 0.5, 1)
    assert results[3]["accuracy"] == expected.accuracy
    assert results[3]["macro_f1"] == expected.macro_f1


def test_a_degree_cell_tells_its_groups(network: TextNetwork) -> None:
    result = Bench(network).measure(Cell("degree", "topics", "tfidf", 0.6, "lines", 1))
    _, test = split_edges(network, 0.6, 1, "lines")
    groups = result["groups"]
    assert groups[0]["least"] == 1
    assert groups[-1]["most"] == network.degrees.max()
    assert sum(group["edges"] for group in groups) == 2 * len(test)
    mean = sum(group["edges"] * group["auc"] for group in groups) / (2 * len(test))
    assert mean == pytest.approx(result["auc"])


def test_a_map_and_a_classification_need_one_fit(network: TextNetwork, monkeypatch) -> None:
    from vhe.baselines.diffused_text import DiffusedText

    fits = []
    fit = DiffusedText.fit
    monkeypatch.setattr(DiffusedText, "fit", lambda self, net: fits.append(net) or fit(self, net))
    bench = Bench(network)
    bench.measure(Cell("classify", "topics", "diffused-text", 0.5, None, 0))
    result = bench.measure(Cell("tsne", "topics", "diffused-text", 1.0, None, 0))
    assert len(fits) == 1
    assert np.array(result["points"]).shape == (len(network), 2)
    assert result["labels"] == list(network.labels)
    assert result["purity"] > 0.3  # by chance a fifth


def test_probabilities_are_judged_where_there_are_any(
    network: TextNetwork, tiny: dict, monkeypatch
) -> None:
    bench = Bench(network)
    told = bench.measure(Cell("link", "topics", "vhe", 0.8, "clean", 0, tiny | {"steps": 2}))
    assert 0 < told["brier"] < 0.3
    assert 0 < told["ece"] < 0.5
    assert bench.reliability.error == told["ece"]
    assert "brier" not in bench.measure(Cell("link", "topics", "tfidf", 0.8, "clean", 0))
    assert bench.reliability is None


def test_what_a_task_varies_is_in_its_name() -> None:
    cell = Cell("lambda", "cora", "vhe", 0.95, "lines", 3, {"homophily": 0.0})
    assert str(cell) == "lambda cora vhe 95 % lines homophily=0 seed 3"
    plain = Cell("link", "cora", "cane", 0.95, "lines", 3, {"weights": {"text": 1}})
    assert str(plain) == "link cora cane 95 % lines seed 3"
    assert plain.variant is None


def test_settings_are_used_and_told(network: TextNetwork) -> None:
    few = Cell("link", "topics", "diffused-text", 0.6, "clean", 0, {"dimensions": 1})
    result = Bench(network).measure(few)
    assert result["settings"] == {"dimensions": 1}
    plain = Bench(network).measure(Cell("link", "topics", "diffused-text", 0.6, "clean", 0))
    assert result["auc"] != plain["auc"]


def test_labels_are_asked_for_before_the_work(network: TextNetwork, monkeypatch) -> None:
    monkeypatch.setattr(
        "vhe.evaluation.experiment.make", lambda *_, **__: pytest.fail("was fitted")
    )
    bare = TextNetwork(network.ids, network.texts, network.edges)
    with pytest.raises(VHEError, match="label"):
        Bench(bare).measure(Cell("classify", "bare", "tfidf", 0.5, None, 0))


def test_methods_are_checked_before_the_work() -> None:
    check_methods(["tfidf", "vhe"], "link")
    check_methods(["tfidf", "diffused-text"], "unseen")
    with pytest.raises(VHEError, match="deepwalk cannot embed"):
        check_methods(["tfidf", "deepwalk"], "unseen")
    with pytest.raises(VHEError, match="did you mean tfidf"):
        check_methods(["tfdif"], "link")


def test_lists_on_the_command_line() -> None:
    assert parse_shares("0.15, 55,95%", "--ratio") == (0.15, 0.55, 0.95)
    assert parse_shares("55,0.55", "--ratio") == (0.55,)
    assert parse_seeds("0-2,7") == (0, 1, 2, 7)
    assert parse_seeds("3") == (3,)
    assert parse_names("vhe, tfidf,vhe", "--method") == ("vhe", "tfidf")


@pytest.mark.parametrize("text", ["", "1", "0", "100", "-5", "x", "0.5;0.6", "nan"])
def test_what_is_no_share_is_refused(text: str) -> None:
    with pytest.raises(VHEError, match="--ratio"):
        parse_shares(text, "--ratio")


@pytest.mark.parametrize("text", ["", ",", "x", "3-1", "-1", "1-", "0.5"])
def test_what_is_no_seed_is_refused(text: str) -> None:
    with pytest.raises(VHEError, match="--seeds"):
        parse_seeds(text)


def test_figures_are_mean_and_sample_deviation() -> None:
    values = [0.9, 0.95, 0.97]
    figure = Figure.of(values)
    assert figure.mean == pytest.approx(np.mean(values))
    assert figure.deviation == pytest.approx(np.std(values, ddof=1))
    assert str(figure) == "94.0 ± 3.6"
    assert str(Figure.of([0.5])) == "50.0"
