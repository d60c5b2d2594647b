"""The two estimators: the contract that both fulfil, and what is special to each."""

import inspect
import itertools
import json
import signal
from collections.abc import Callable, Hashable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from sklearn.base import clone

import vhe
from vhe.config import PairVHEConfig, VHEConfig
from vhe.data.network import TextNetwork
from vhe.data.sampling import LinkSet
from vhe.data.splits import validation_links
from vhe.errors import VHEError
from vhe.estimators import VHE, Estimator, PairVHE, load_model
from vhe.graph import validation
from vhe.graph.posterior import Posterior
from vhe.graph.prior import GraphPrior
from vhe.predict import link_posterior
from vhe.predict.link_posterior import LinkPosterior
from vhe.predict.pair_features import LINK_STRENGTHS, paired
from vhe.predict.predictor import Suggestion, TextReading
from vhe.runtime.progress import Progress
from vhe.text.codes import TextCodes

New = Callable[..., Any]

NEW_TEXTS = ["t0w1 t0w2 t0w3 common1", "t3w1 t3w4", "", "unknown words only", "t1w1 " * 30]


@pytest.fixture(params=["graph", "pair"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def cls(kind: str) -> type[Estimator]:
    return VHE if kind == "graph" else PairVHE


@pytest.fixture
def make(kind: str, new: New, new_pair: New) -> New:
    """Makes an estimator with tiny settings, not fitted."""
    return new if kind == "graph" else new_pair


@pytest.fixture
def quick(kind: str, hasty: New, new_pair: New) -> New:
    """Makes an estimator that trains for four steps only."""
    if kind == "graph":
        return hasty
    return lambda **changes: new_pair(**{"steps": 4, **changes})


@pytest.fixture
def model(kind: str, request: pytest.FixtureRequest) -> Any:
    """A fitted estimator; tests must not change it."""
    return request.getfixturevalue("fitted" if kind == "graph" else "fitted_pair")


def press_ctrl_c(monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    """Interrupt training after so many steps."""

    def update(progress: Progress, done: int, note: str | None = None) -> None:
        if done == at and progress.task == "training" and not pressed:
            pressed.append(done)
            signal.raise_signal(signal.SIGINT)

    pressed: list[int] = []
    monkeypatch.setattr(Progress, "update", update)


def cosines(model: Any, i: Any, j: Any) -> np.ndarray:
    a, b = model.embedding_[i], model.embedding_[j]
    return (a * b).sum(axis=1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)


# --- the conventions of scikit-learn


def test_the_parameters_are_those_of_the_configuration(cls: type[Estimator]) -> None:
    settings = fields(cls.config_class)  # type: ignore[arg-type]
    names = {f.name for f in settings} | {"random_state", "threads", "device", "verbose"}
    own = {"encoder", "encoder_device", "encoder_batch", "max_memory"}
    names |= own if cls is VHE else set()
    assert set(cls().get_params()) == names
    assert set(inspect.signature(cls).parameters) == names
    parameters = inspect.signature(cls.__init__).parameters
    for f in settings:
        assert (parameters[f.name].default, parameters[f.name].annotation) == (f.default, f.type)


def test_init_only_stores_its_parameters(cls: type[Estimator]) -> None:
    invalid = {f.name: object() for f in fields(cls.config_class)}  # type: ignore[arg-type]
    model = cls(**invalid, random_state="never", device=7)
    assert vars(model) == {**cls().get_params(), **invalid, "random_state": "never", "device": 7}
    with pytest.raises(VHEError):
        _ = model.config


def test_parameters_can_be_set_and_cloned(model: Any, make: New) -> None:
    other = make(min_count=2)
    assert other.set_params(min_count=3, verbose=True) is other
    assert (other.get_params()["min_count"], other.min_count, other.verbose) == (3, 3, True)
    assert other.config.min_count == 3
    copy = clone(other)
    assert copy is not other
    assert copy.get_params() == other.get_params()
    unfitted = clone(model)
    assert unfitted.get_params() == model.get_params()
    assert not any(name.endswith("_") and not name.startswith("__") for name in vars(unfitted))


def test_unknown_parameters_are_refused(cls: type[Estimator]) -> None:
    with pytest.raises(TypeError, match="'latent_dimm'"):
        cls(latent_dimm=1)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="latent_dimm"):
        cls().set_params(latent_dimm=1)


def test_each_estimator_has_its_own_settings_only() -> None:
    with pytest.raises(TypeError, match="'homophily'"):
        VHE(homophily=0.5)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="'max_steps'"):
        PairVHE(max_steps=5)  # type: ignore[call-arg]


def test_parameters_are_keywords(cls: type[Estimator]) -> None:
    with pytest.raises(TypeError, match="positional"):
        cls(100)  # type: ignore[call-arg]


def test_fit_returns_the_estimator(quick: New, network: TextNetwork) -> None:
    model = quick()
    before = model.get_params()
    assert model.fit(network) is model
    assert model.get_params() == before
    assert model.network_ is network


def test_from_config(config: VHEConfig, pair_config: PairVHEConfig) -> None:
    chosen = config.replace(link_strength=0.125)
    graph = VHE.from_config(chosen, random_state=8)
    assert (graph.config, graph.random_state) == (chosen, 8)
    other = pair_config.replace(homophily=0.125)
    pair = PairVHE.from_config(other, random_state=8)
    assert (pair.config, pair.random_state) == (other, 8)


def test_the_repr_shows_the_network_and_the_validation_auc(
    model: Any, cls: type[Estimator]
) -> None:
    assert repr(cls(min_count=7)) == f"{cls.__name__}(min_count=7)"
    assert repr(cls()) == f"{cls.__name__}()"
    shown = repr(model)
    assert shown.startswith(cls.__name__)
    assert repr(model.network_) in shown
    assert "16-dimensional" in shown
    assert f"{100 * model.result_['validation_auc']:.1f} %" in shown
    assert "\n" not in shown


# --- the attributes of a fitted model


def test_the_fitted_attributes(model: Any, kind: str, network: TextNetwork) -> None:
    n = len(network)
    assert model.embedding_.shape == (n, 16)
    assert model.embedding_std_.shape == ((n, 1) if kind == "graph" else (n, 16))
    for array in (model.embedding_, model.embedding_std_):
        assert array.dtype == np.float32
        assert np.isfinite(array).all()
    assert model.embedding_std_.min() > 0
    assert len(np.unique(model.embedding_.round(4), axis=0)) > n / 2
    result = model.result_
    assert (result["model"], result["seed"], model.seed_) == (kind, 3, 3)
    assert (result["steps"], result["stopped"], result["threads"]) == (20, "", 1)
    assert result["seconds"] > 0
    assert result["versions"].keys() >= {"python", "vhe", "torch", "numpy"}
    assert json.loads(json.dumps(result)) == result
    records = model.history_
    assert records[0].keys() == {"step", "seconds", "validation_auc"}
    assert (records[0]["step"], records[-1]["step"]) == (0, 20)
    assert result["trained"] is (result["best_step"] > 0)
    (best,) = (r for r in records if r["step"] == result["best_step"])
    assert result["validation_auc"] == best["validation_auc"]


def test_the_steps_of_the_graph_model(fitted: VHE) -> None:
    assert [record["step"] for record in fitted.history_] == [0, 5, 10, 15, 20]
    best = max(record["validation_auc"] for record in fitted.history_)
    assert fitted.result_["validation_auc"] == best
    chosen = fitted.result_["chosen"]
    assert chosen == {
        "link_strength": fitted._graph.link_strength,
        "text_knn_weight": fitted._graph.text_knn_weight,
    }


def test_given_strengths_are_used(hasty: New, network: TextNetwork) -> None:
    given = {"link_strength": 3.5, "text_knn_weight": 0.75}
    assert hasty(**given).fit(network).result_["chosen"] == given


def test_the_pair_model_is_trained_to_its_last_step(fitted_pair: PairVHE) -> None:
    assert fitted_pair.result_["best_step"] == 20
    assert fitted_pair.result_["trained"]
    assert {"bound", "kl_linked"} < fitted_pair.history_[1].keys()


def test_another_seed_gives_another_embedding(quick: New, network: TextNetwork) -> None:
    changes = {"word_init": "random"}
    one, other = (quick(random_state=s, **changes).fit(network).embedding_ for s in (0, 1))
    assert np.abs(one - other).max() > 1e-3


def test_a_seed_that_is_not_given_is_drawn_and_stored(
    quick: New, cls: type[Estimator], network: TextNetwork, tmp_path: Path
) -> None:
    model = quick(random_state=None).fit(network)
    seed = model.result_["seed"]
    assert model.random_state is None
    again = quick(random_state=seed).fit(network)
    np.testing.assert_array_equal(again.embedding_, model.embedding_)
    np.testing.assert_array_equal(again.embedding_std_, model.embedding_std_)
    assert quick(random_state=None).fit(network).result_["seed"] != seed
    model.save(tmp_path / "model")
    assert cls.load(tmp_path / "model").result_["seed"] == seed


def test_a_second_fit_starts_from_scratch(quick: New, network: TextNetwork) -> None:
    model = quick()
    first = model.fit(network).embedding_
    model.embed_texts(["t0w1"])  # fills what is cached for new texts
    np.testing.assert_array_equal(model.fit(network).embedding_, first)
    small = network.subnetwork(np.arange(30))
    assert model.fit(small).embedding_.shape == (30, 16)
    assert model.network_ is small
    alone = quick().fit(small)
    np.testing.assert_array_equal(model.embed_texts(NEW_TEXTS)[0], alone.embed_texts(NEW_TEXTS)[0])


def test_the_number_of_threads_is_restored(quick: New, network: TextNetwork) -> None:
    before = torch.get_num_threads()
    assert quick(threads=1).fit(network).result_["threads"] == 1
    assert torch.get_num_threads() == before


def test_progress_is_shown_on_standard_error(
    quick: New, network: TextNetwork, capsys: pytest.CaptureFixture[str]
) -> None:
    quick(verbose=False).fit(network)
    assert capsys.readouterr() == ("", "")
    quick(verbose=True).fit(network)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "training 4/4" in printed.err
    assert "validation AUC" in printed.err


PHASES = {
    "graph": [
        "text codes",
        "text neighbours",
        "choosing strengths",
        "training",
        "link posterior",
        "posterior of embedding",
        "variance",
    ],
    "pair": ["training", "link posterior", "embedding"],
}


@pytest.mark.parametrize("verbose", [True, False])
def test_every_phase_has_a_progress_display(
    kind: str,
    quick: New,
    network: TextNetwork,
    verbose: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown: list[tuple[str, bool]] = []
    monkeypatch.setattr(
        Progress, "__enter__", lambda self: shown.append((self.task, self.show)) or self
    )
    monkeypatch.setattr(Progress, "__exit__", lambda self, *error: None)
    quick(verbose=verbose).fit(network)
    shown = [phase for phase in shown if not phase[0].endswith("links")]  # of scales that are used
    assert shown == [(task, verbose) for task in ("vocabulary", "word vectors", *PHASES[kind])]


# --- what is learned


def test_held_out_links_rank_high(make: New, network: TextNetwork) -> None:
    aucs = []
    for seed in (0, 1):
        train, test = network.split_edges(0.8, seed=seed)
        aucs.append(vhe.evaluate(make(random_state=seed).fit(train), test).auc)
    assert np.mean(aucs) > 0.8


def two_vocabularies(n: int = 96, topics: int = 4) -> TextNetwork:
    """Linked texts have no word in common; texts that share words are never linked."""
    rng = np.random.default_rng(0)
    topic, side = np.arange(n) % topics, np.arange(n) // topics % 2
    texts = [
        " ".join(f"t{t}s{s}w{k}" for k in rng.integers(6, size=6))
        for t, s in zip(topic, side, strict=True)
    ]
    partners = (topic[:, None] == topic) & (side[:, None] < side)
    return TextNetwork(range(n), texts, np.argwhere(partners & (rng.random((n, n)) < 0.4)))


UNTRAINED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "graph": (
        {"link_strength": 0.0, "text_knn_weight": 0.0, "link_features": ""},
        {"max_steps": 40},
    ),
    "pair": (
        {"structure": "none", "learning_rate": 0.03, "near_pairs": 0},
        {"steps": 80},
    ),
}


def test_training_finds_what_the_texts_alone_do_not_show(kind: str, make: New) -> None:
    train, test = two_vocabularies().split_edges(0.7)
    settings, length = UNTRAINED[kind]
    none = dict.fromkeys(length, 0)
    untrained = vhe.evaluate(make(**settings, **none).fit(train), test).auc
    trained = vhe.evaluate(make(**settings, **length).fit(train), test)
    assert untrained < 0.6
    assert trained.auc > 0.8


def test_pairs_of_a_topic_are_likelier_than_others(model: Any, network: TextNetwork) -> None:
    topic = np.array([int(label[-1]) for label in network.labels])
    i, j = np.triu_indices(len(network), 1)
    probabilities = model.probability_indices(i, j)
    same = topic[i] == topic[j]
    assert probabilities[same].mean() > probabilities[~same].mean() + 0.3


# --- embeddings, scores and probabilities


def test_embed_returns_rows_by_id(model: Any) -> None:
    np.testing.assert_array_equal(model.embed(), model.embedding_)
    mean, std = model.embed(["v40", "v3", "v40"], return_std=True)
    np.testing.assert_array_equal(mean, model.embedding_[[40, 3, 40]])
    np.testing.assert_array_equal(std, model.embedding_std_[[40, 3, 40]])
    assert model.embed([]).shape == (0, 16)
    assert model.embed(iter(["v1"])).shape == (1, 16)


def test_a_modified_copy_of_the_embedding_does_not_change_the_model(model: Any) -> None:
    before = model.embedding_.copy(), model.embedding_std_.copy()
    scores = model.score_matrix(np.arange(60), np.arange(60))
    for ids in (None, ["v3", "v4"]):
        for found in model.embed(ids, return_std=True):
            found[:] = np.nan
        model.embed(ids)[:] = np.nan
    np.testing.assert_array_equal(model.embedding_, before[0])
    np.testing.assert_array_equal(model.embedding_std_, before[1])
    np.testing.assert_array_equal(model.score_matrix(np.arange(60), np.arange(60)), scores)


def naive_score(model: Any, i: int, j: int) -> float:
    """The log odds of a link from the features that need no table of the model."""
    network, rows = model.network_, [model._rows.take(np.array([v])) for v in (i, j)]
    degree = network.degrees
    weights, offset = model._link_posterior.kind(*rows)
    isolated = 0 in (degree[i], degree[j]) and isinstance(model, VHE)
    assert (weights is model._link_posterior.isolated_weights) == isolated
    linked = [{*network.links[(network.links == v).any(axis=1)].ravel()} - {v} for v in (i, j)]
    values = {
        "embedding": np.arcsinh(cosines(model, [i], [j])[0] / 0.15),
        "degree": np.log1p(degree[i]) + np.log1p(degree[j]),
        "isolated": float(0 in (degree[i], degree[j])),
        "neighbours": np.log1p(sum(1 / np.log1p(degree[k]) for k in linked[0] & linked[1])),
    }
    tables = paired(*rows, tuple(weights))
    values = {name: float(value[0]) for name, value in tables} | values
    return offset + sum(weights[name] * values[name] for name in weights)


def test_a_score_is_the_weighted_sum_of_the_features(model: Any) -> None:
    i, j = np.array([0, 7, 9]), np.array([1, 7, 30])
    pairs = [("v0", "v1"), ("v7", "v7"), ("v9", "v30")]
    expected = [naive_score(model, a, b) for a, b in zip(i, j, strict=True)]
    for found in (
        model.score(pairs),
        model.score(np.array(pairs)),
        model.score_indices(i, j),
        np.diag(model.score_matrix(i, j)),
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(model.probability_indices(i, j), 1 / (1 + np.exp(-found)), rtol=1e-4)


def test_the_features_are_those_of_the_setting(quick: New, network: TextNetwork) -> None:
    for groups, names in (
        ("", set()),
        ("degree", {"degree", "isolated"}),
        ("words, structure", {"words", "structure", "neighbours"}),
    ):
        model = quick(link_features=groups, validation=0.3).fit(network)
        assert set(model.result_["link_posterior"]) == {"embedding", *names}
        assert model.result_["link_posterior"] == model._link_posterior.weights
    alone = quick(link_features="").fit(network)
    i, j = np.triu_indices(60, 1)
    order = np.argsort(cosines(alone, i, j), kind="stable")
    assert (np.diff(alone.score_indices(i, j)[order]) > -1e-5).all()


def test_probabilities_increase_with_the_score(model: Any, network: TextNetwork) -> None:
    i, j = np.triu_indices(len(network), 1)
    probabilities, scores = model.probability_indices(i, j), model.score_indices(i, j)
    assert ((probabilities >= 0) & (probabilities <= 1)).all()
    order = np.argsort(scores, kind="stable")
    assert (np.diff(probabilities[order]) >= 0).all()
    assert probabilities.max() > probabilities.min() + 0.3
    pairs = [(network.ids[a], network.ids[b]) for a, b in zip(i[:9], j[:9], strict=True)]
    np.testing.assert_allclose(model.predict_proba(pairs), probabilities[:9])
    swapped = [(b, a) for a, b in pairs]
    np.testing.assert_allclose(model.predict_proba(swapped), probabilities[:9], rtol=1e-5)
    assert model.predict_proba([]).shape == (0,)
    assert model.score([]).shape == (0,)


def test_probabilities_increase_with_the_score_for_few_held_out_links(quick: New) -> None:
    """Few validation links may score low by chance; the calibration must not be reversed."""
    for seed in range(4):
        texts = ["x y", "y z", "z w", "w x", "x z"]
        path = TextNetwork(range(5), texts, [[0, 1], [1, 2], [2, 3], [3, 4]])
        model = quick(random_state=seed, validation=0.3).fit(path)
        i, j = np.triu_indices(5, 1)
        order = np.argsort(model.score_indices(i, j))
        assert (np.diff(model.probability_indices(i, j)[order]) >= 0).all()


def test_probabilities_in_the_network_follow_bayes_rule(model: Any, network: TextNetwork) -> None:
    pairs = [("v0", "v5"), ("v0", "v1"), ("v3", "v8")]
    balanced, sparse = model.predict_proba(pairs), model.predict_proba(pairs, balanced=False)
    density = len(network.links) / (60 * 59 / 2)
    odds = balanced / (1 - balanced) * density / (1 - density)
    np.testing.assert_allclose(sparse, odds / (1 + odds), rtol=1e-6)
    assert model.density_ == pytest.approx(density)


def test_the_reliability_curve_is_saved(model: Any, tmp_path: Path) -> None:
    curve = model.reliability()
    assert model.result_["calibration_error"] == pytest.approx(curve.error)
    assert (np.diff(curve.probability) > 0).all()
    assert ((curve.frequency >= 0) & (curve.frequency <= 1)).all()
    assert np.average(curve.frequency, weights=curve.count) == pytest.approx(0.5)  # balanced
    model.save(tmp_path / "model")
    assert load_model(tmp_path / "model").reliability().error == pytest.approx(curve.error)


def test_the_graph_model_masks_the_held_out_links_that_it_is_calibrated_on(
    hasty: New, network: TextNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At every scale."""
    monkeypatch.setattr(validation, "MOST_FOLDS", 2)
    masks: dict[GraphPrior, list[set[tuple[int, int]]]] = {}
    posterior = GraphPrior.posterior

    def spy(prior: GraphPrior, masked: Any = None) -> Posterior:
        if masked is not None and len(prior.links) == len(network.links):
            hidden = {tuple(link) for link in prior.links[masked].tolist()}
            masks.setdefault(prior, []).append(hidden)
        return posterior(prior, masked)

    monkeypatch.setattr(GraphPrior, "posterior", spy)
    model = hasty(validation=0.1).fit(network)
    links, held = validation_links(network.links, 0.1, model.seed_, 256)
    fitting = [found for found in masks.values() if any(found)]
    assert len(fitting) == 3  # the embedding, weak links and strong links
    for fold in validation.validation_folds(links, held, model.seed_):
        held_out = {tuple(link) for link in fold.held_out.tolist()}
        for found in fitting:
            parts = [mask for mask in found if mask <= held_out]
            assert set.union(*parts) == held_out
            assert max(map(len, parts)) < len(held_out)  # the other held-out links are read


def test_no_feature_reads_a_held_out_link_while_it_is_scored(
    kind: str, quick: New, network: TextNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Degrees, common neighbours and structure are those of the network without it."""
    from vhe.estimators import base

    calls: list[tuple[np.ndarray, np.ndarray]] = []
    original = base.vertex_rows

    def spy(scales: Any, words: Any, links: np.ndarray, *rest: Any) -> Any:
        calls.append(links)
        return original(scales, words, links, *rest)

    monkeypatch.setattr(base, "vertex_rows", spy)
    monkeypatch.setattr(validation, "MOST_FOLDS", 2)
    model = quick(validation=0.3, link_features="degree,structure").fit(network)
    links, held = validation_links(network.links, 0.3, model.seed_, 256)
    folds = validation.validation_folds(links, held, model.seed_)[: 2 if kind == "graph" else 1]
    whole = {tuple(link) for link in network.links.tolist()}
    masked = [whole - {tuple(link) for link in links.tolist()} for links in calls]
    parts = 3 * len(folds)
    masked, whole_vertices = masked[:parts], masked[parts:]
    assert sum(map(len, masked)) == len(set.union(*masked))  # each once
    for k, fold in enumerate(folds):
        held_out = {tuple(link) for link in fold.held_out.tolist()}
        assert set.union(*masked[3 * k : 3 * k + 3]) == held_out
        if whole_vertices:
            assert set.union(*whole_vertices[3 * k : 3 * k + 3]) > held_out
    assert len(whole_vertices) == (parts if isinstance(model, VHE) else 0)


def test_training_never_reads_validation_links(
    hasty: New, network: TextNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until training ends, no prior couples a validation link while it is scored."""
    from vhe.graph import training

    seen: list[tuple[np.ndarray, np.ndarray]] = []
    trainer = training.GraphTrainer.__init__

    def spy(
        self: Any, config: Any, words: Any, codes: Any, prior: GraphPrior, held: Any, *rest: Any
    ) -> None:
        seen.append((prior.links, held))
        trainer(self, config, words, codes, prior, held, *rest)

    monkeypatch.setattr(training.GraphTrainer, "__init__", spy)
    model = hasty(validation=0.2).fit(network)
    _, held_out = validation_links(network.links, 0.2, model.seed_, 256)
    np.testing.assert_array_equal(seen[0][1], held_out)
    assert len(seen) > 1  # few links: several folds
    for links, held_out in seen:
        assert len(links) + len(held_out) == len(network.links)
        assert not LinkSet(links, len(network)).linked(*held_out.T).any()


def test_the_word_vectors_are_the_mean_of_those_of_the_folds(
    hasty: New, monkeypatch: pytest.MonkeyPatch
) -> None:
    from vhe.graph.training import CrossFitTrainer

    trained: list[CrossFitTrainer] = []
    original = CrossFitTrainer.words

    def spy(self: CrossFitTrainer) -> Any:
        trained.append(self)
        return original(self)

    monkeypatch.setattr(CrossFitTrainer, "words", spy)
    settings = {"link_strength": 0.0, "text_knn_weight": 0.0}  # so that training helps
    model = hasty(validation=0.2, **settings).fit(two_vocabularies())
    (trainer,) = trained
    words = [fold.words.detach().numpy() for fold in trainer.folds]
    assert np.abs(words[0] - words[1]).max() > 0
    np.testing.assert_allclose(model._graph.words, np.mean(words, axis=0), atol=1e-6)


def test_the_pair_model_is_calibrated_without_the_held_out_links(
    new_pair: New, network: TextNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    from vhe.estimators import pair

    sets: list[LinkSet] = []
    original = pair.embedding_of

    def spy(model: Any, corpus: Any, links: LinkSet, *rest: Any, **more: Any) -> np.ndarray:
        sets.append(links)
        return original(model, corpus, links, *rest, **more)

    monkeypatch.setattr(pair, "embedding_of", spy)
    model = new_pair(steps=2).fit(network)
    links, validation = validation_links(network.links, 0.1, model.seed_, 256)
    assert sets
    for known in sets:
        assert not known.linked(*validation.T).any()
        assert known.linked(*links.T).all()


# --- suggestions and neighbours


def test_suggestions_are_the_likeliest_missing_links(model: Any, network: TextNetwork) -> None:
    linked = {tuple(link) for link in network.links.tolist()}
    for vertex in (0, 17, 59):
        name = network.ids[vertex]
        found = model.suggest_links(name, k=7)
        assert len(found) == 7
        assert all(isinstance(suggestion, Suggestion) for suggestion in found)
        probabilities = [suggestion.probability for suggestion in found]
        assert probabilities == sorted(probabilities, reverse=True)
        others = network.indices([suggestion.id for suggestion in found])
        assert len(set(others.tolist())) == 7
        assert not linked & {(min(vertex, o), max(vertex, o)) for o in others.tolist()}
        assert vertex not in others
        rest = [o for o in range(60) if o not in others and o != vertex]
        rest = [o for o in rest if (min(vertex, o), max(vertex, o)) not in linked]
        left_out = model.probability_indices(
            np.full(len(rest), vertex), np.array(rest), balanced=False
        )
        assert left_out.max() <= min(probabilities)
        pairs = [(name, s.id) for s in found]
        assert probabilities == pytest.approx(model.predict_proba(pairs, balanced=False))
        assert (model.predict_proba(pairs) > probabilities).all()  # few pairs are links
        assert [s.text for s in found] == [network.texts[o] for o in others]


def test_the_number_of_suggestions(model: Any, network: TextNetwork) -> None:
    found = model.suggest_links("v0", k=1000)
    assert len(found) == len(network) - 1 - network.degrees[0]
    assert model.suggest_links("v0", k=0) == []
    assert len(model.suggest_links("v0")) == 10
    for k in (-1, 2.5, "many", True):
        with pytest.raises(VHEError, match="k is"):
            model.suggest_links("v0", k=k)


def test_a_suggestion_shows_the_beginning_of_a_long_text(hasty: New) -> None:
    texts = ["a b", "a b", f"first\n line\t{'word ' * 100}"]
    model = hasty(max_words=300).fit(TextNetwork("xyz", texts, [[0, 1]]))
    (found,) = [s for s in model.suggest_links("x") if s.id == "z"]
    assert found.text.startswith("first line word word")
    assert found.text.endswith("…")
    assert len(found.text) <= 80


def test_a_complete_graph_has_no_suggestions(quick: New) -> None:
    model = quick().fit(TextNetwork("ab", ["x y", "y z"], [[0, 1]]))
    assert model.suggest_links("a") == []
    assert len(model.suggest_all()) == len(model.suggest_each()) == 0


def test_the_likeliest_missing_links_of_the_network(model: Any, network: TextNetwork) -> None:
    table = model.suggest_all(k=20)
    i, j = np.triu_indices(len(network), 1)
    unlinked = ~LinkSet(network.links, len(network)).linked(i, j)
    probabilities = model.probability_indices(i[unlinked], j[unlinked], balanced=False)
    expected = np.sort(probabilities)[::-1][:20]
    np.testing.assert_allclose(table["probability"], expected, rtol=1e-4)
    pairs = list(zip(table["source"], table["target"], strict=True))
    assert len({frozenset(pair) for pair in pairs}) == 20
    again = model.predict_proba(pairs, balanced=False)
    np.testing.assert_allclose(again, table["probability"], rtol=1e-4)
    texts = [[network.texts[network.index(v)] for v in pair] for pair in pairs]
    assert table[["source_text", "target_text"]].to_numpy().tolist() == texts
    assert len(model.suggest_all(k=0)) == 0


def test_suggestions_for_all_vertices(model: Any, network: TextNetwork) -> None:
    table = model.suggest_each(k=3)
    assert list(table.columns) == ["source", "target", "probability", "text"]
    assert len(table) == 3 * len(network)
    for name in ("v0", "v31"):
        rows = table[table["source"] == name]
        expected = model.suggest_links(name, k=3)
        assert rows["target"].tolist() == [s.id for s in expected]
        assert rows["probability"].tolist() == pytest.approx([s.probability for s in expected])
        assert rows["text"].tolist() == [s.text for s in expected]
    assert len(model.suggest_each(k=0)) == 0


def test_the_nearest_vertices(model: Any) -> None:
    near = model.nearest("v7", k=4)
    others = np.array([j for j in range(60) if j != 7])
    scores = cosines(model, np.full(59, 7), others)
    best = np.argsort(-scores, kind="stable")[:4]
    assert [vertex for vertex, _ in near] == [f"v{j}" for j in others[best]]
    assert [cosine for _, cosine in near] == pytest.approx(scores[best].tolist(), abs=1e-5)
    assert model.nearest(model.embedding_[7], k=5)[0] == ("v7", pytest.approx(1))
    assert len(model.nearest("v7", k=1000)) == 59
    with pytest.raises(VHEError, match="shape"):
        model.nearest(np.zeros(3))
    with pytest.raises(VHEError, match="k is -1"):
        model.nearest("v7", k=-1)
    for wrong in (np.full(16, np.nan), np.full(16, "a")):
        with pytest.raises(VHEError, match="finite numbers"):
            model.nearest(wrong)


def test_vertex_numbers_outside_of_the_network_are_refused(model: Any) -> None:
    for k in (-1, 60):
        with pytest.raises(VHEError, match="vertex numbers must be from 0 to 59"):
            model.score_indices(np.array([k]), np.array([1]))
    none = np.zeros(0, dtype=np.int64)
    assert model.score_indices(none, none).shape == (0,)


# --- explanations


def assert_parts_add_up(model: Any, found: Any, isolated: bool = False) -> None:
    posterior = model._link_posterior
    own = isolated and posterior.isolated_weights
    offset = posterior.isolated_offset if own else posterior.offset
    assert found.score == offset + sum(found.parts.values())  # exactly
    assert found.offset == pytest.approx(offset, abs=1e-12)
    whole = found.offset + found.text_score + found.structure_score
    assert whole == pytest.approx(found.score, abs=1e-12)
    assert list(found.parts)[:2] == ["texts", "links"]
    assert set(found.parts) == {"texts", "links"} | set(model._link_posterior.names) - {"embedding"}
    assert found.text_share + found.structure_share == 1


def test_the_parts_of_an_explanation_add_up_to_the_score(model: Any, kind: str) -> None:
    assert any(share for _, share in model.explain("v0", "v5").source.words)
    for a, b in (("v0", "v5"), ("v5", "v0"), ("v1", "v2"), ("v5", "v5")):
        found = model.explain(a, b)
        assert found.score == pytest.approx(float(model.score([(a, b)])[0]), abs=1e-5)
        assert_parts_add_up(model, found)
        probability = float(model.predict_proba([(a, b)])[0])
        assert found.balanced_probability == pytest.approx(probability, rel=1e-4)
        sparse = float(model.predict_proba([(a, b)], balanced=False)[0])
        assert found.probability == pytest.approx(sparse, rel=1e-4)
        assert (found.source.id, found.target.id) == (a, b)
        for side in (found.source, found.target):
            shares = np.array([share for _, share in side.words])
            assert (shares >= 0).all()
            assert shares.sum() == pytest.approx(1) or not shares.any()
            assert (side.alignment is None) == (kind == "graph")
            if side.alignment is not None:
                assert len(side.alignment) == len(side.words)
                assert sum(side.alignment) == pytest.approx(1)


def test_an_explanation_has_the_parts_of_all_features(quick: New, network: TextNetwork) -> None:
    model = quick(link_features="words,degree,structure", validation=0.3).fit(network)
    weights = {"embedding": 1.2, "words": 0.4, "degree": -0.3, "neighbours": 0.7, "structure": 0.0}
    model._link_posterior = LinkPosterior(weights, -0.4)
    found = model.explain("v0", "v5")
    assert found.score == pytest.approx(float(model.score([("v0", "v5")])[0]), abs=1e-5)
    assert_parts_add_up(model, found)
    log_degrees = np.log1p(network.degrees[[0, 5]]).sum()
    assert found.parts["degree"] == pytest.approx(-0.3 * log_degrees)
    embedding = 1.2 * np.arcsinh(cosines(model, [0], [5])[0] / 0.15)
    assert found.parts["texts"] + found.parts["links"] == pytest.approx(embedding, rel=1e-4)


def test_texts_and_links_divide_the_embedding_as_they_divide_the_cosine(fitted: VHE) -> None:
    for a, b in (("v0", "v5"), ("v1", "v2"), ("v3", "v30")):
        ends = fitted.network_.indices([a, b])
        corpus, texts = fitted._corpus, fitted.network_.texts
        tokens = [corpus.tokens[corpus.offsets[v] : corpus.offsets[v + 1]] for v in ends]
        sides = [TextReading(int(v), texts[v], t) for v, t in zip(ends, tokens, strict=True)]
        _, _, own, cosine = fitted._attribute(*sides)
        text = own["texts"]
        found = fitted.explain(a, b)
        embedding = found.parts["texts"] + found.parts["links"]
        assert found.parts["texts"] == pytest.approx(embedding * text / cosine, rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("cosine", [0.0, 1e-12, -1e-12])
def test_an_explanation_of_embeddings_that_are_nearly_orthogonal(
    fitted: VHE, cosine: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts and links may cancel out; rounding errors of the cosine must not change their parts."""
    attribute = VHE._attribute

    def orthogonal(self: VHE, a: Any, b: Any) -> Any:
        source, target, *_ = attribute(self, a, b)
        return source, target, {"texts": 0.3}, cosine

    monkeypatch.setattr(VHE, "_attribute", orthogonal)
    found = fitted.explain("v0", "v1")
    weight = fitted._link_posterior.weights["embedding"]
    assert found.parts["texts"] == pytest.approx(weight * 0.3 / 0.15)
    assert_parts_add_up(fitted, found)


def test_swapping_the_ends_swaps_the_sides(fitted: VHE) -> None:
    """Not so for `PairVHE`, whose alignment has other kernels for each end."""
    one, other = fitted.explain("v0", "v6"), fitted.explain("v6", "v0")
    assert one.text_score == pytest.approx(other.text_score, rel=1e-4, abs=1e-5)
    for a, b in ((one.source, other.target), (one.target, other.source)):
        assert a.id == b.id
        assert [w for _, w in a.words] == pytest.approx([w for _, w in b.words], abs=1e-4)


def test_words_are_shown_in_their_original_spelling(quick: New) -> None:
    texts = ["Cats, PURR once1!", "cats purr -- once2", "the Stars shine", "stars Shine?", ""]
    links = [[0, 1], [2, 3], [1, 4]]
    model = quick(min_count=2).fit(TextNetwork("abcde", texts, links))
    found = model.explain("a", "b")
    assert [word for word, _ in found.source.words] == ["Cats", "PURR", "once1"]
    assert [word for word, _ in found.target.words] == ["cats", "purr", "once2"]
    assert found.source.words[2][1] == 0  # not in the vocabulary
    assert model.explain("a", "e").target.words == []


def test_an_explanation_of_two_texts(model: Any) -> None:
    first, second = "t0w1 T0W2, unknown", "t0w3 t1w1"
    found = model.explain_texts(first, second)
    assert [word for word, _ in found.source.words] == ["t0w1", "T0W2", "unknown"]
    assert found.source.words[2][1] == 0
    assert found.source.id is found.target.id is None
    mean = np.concatenate([model.embed_texts([text])[0] for text in (first, second)])
    cosine = mean[0] @ mean[1] / np.linalg.norm(mean, axis=1).prod()
    weights = model._link_posterior.isolated_weights or model._link_posterior.weights
    embedding = weights["embedding"] * np.arcsinh(cosine / 0.15)
    assert found.parts["texts"] + found.parts["links"] == pytest.approx(embedding, abs=1e-3)
    assert_parts_add_up(model, found, isolated=True)


# --- new vertices


METHODS = [("graph", None), ("graph", "fast"), ("pair", None), ("pair", "fast"), ("pair", "paper")]


@pytest.fixture
def inductive(request: pytest.FixtureRequest) -> tuple[Any, Any]:
    """A fitted model and a method to embed new texts."""
    kind, method = request.param
    return request.getfixturevalue("fitted" if kind == "graph" else "fitted_pair"), method


@pytest.mark.parametrize("inductive", METHODS, indirect=True)
def test_a_new_text_is_embedded_near_its_topic(inductive: tuple[Any, Any]) -> None:
    model, method = inductive
    mean, std = model.embed_texts(NEW_TEXTS, method=method)
    assert mean.shape == (5, 16)
    assert std.shape == (5, model.embedding_std_.shape[1])
    assert mean.dtype == std.dtype == np.float32
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()
    assert std.min() > 0
    for row, topic in ((0, 0), (1, 3), (4, 1)):
        near = [vertex for vertex, _ in model.nearest(mean[row], 5)]
        labels = [model.network_.labels[model.network_.index(v)] for v in near]
        assert labels.count(f"topic {topic}") >= 4


def test_texts_may_be_any_iterable(model: Any) -> None:
    expected, scores = model.embed_texts(NEW_TEXTS)[0], model.score_texts(NEW_TEXTS)
    for kind in (iter, tuple, np.array):
        np.testing.assert_array_equal(model.embed_texts(kind(NEW_TEXTS))[0], expected)
        np.testing.assert_array_equal(model.score_texts(kind(NEW_TEXTS)), scores)


@pytest.mark.parametrize("inductive", METHODS[1:4:2], indirect=True)
def test_new_texts_do_not_influence_each_other(inductive: tuple[Any, Any]) -> None:
    model, method = inductive
    together = model.embed_texts(NEW_TEXTS, method=method)
    for k, text in enumerate(NEW_TEXTS):
        alone = model.embed_texts([text], method=method)
        for one, among in zip(alone, together, strict=True):
            np.testing.assert_allclose(one[0], among[k], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("inductive", METHODS[1:], indirect=True)
def test_links_attract_a_new_text(inductive: tuple[Any, Any]) -> None:
    model, method = inductive
    links = [(0, f"v{k}") for k in (1, 6, 11, 16)]  # of another topic than the text
    (far,), (uncertain,) = model.embed_texts(["t0w1 t0w2 common1"], method=method)
    (near,), (certain,) = model.embed_texts(["t0w1 t0w2 common1"], links, method=method)
    partners = model.embed([vertex for _, vertex in links]).mean(axis=0)

    def cosine(z: np.ndarray) -> float:
        return float(z @ partners / np.linalg.norm(z) / np.linalg.norm(partners))

    assert cosine(near) > cosine(far) + 0.1
    if isinstance(model, VHE):
        assert certain[0] < uncertain[0] - 0.01


def test_vertices_are_added_and_saved(
    quick: New, cls: type[Estimator], network: TextNetwork, tmp_path: Path
) -> None:
    model = quick().fit(network)
    mean, std = model.embedding_.copy(), model.embedding_std_.copy()
    new: dict[Hashable, str] = {"x": "t0w1 t0w2", 7: "t3w1 t3w2", ("a", 1): ""}
    edges = [("x", "v0"), ("v3", 7), (7, "x"), ("x", "x")]
    unlinked = model.embed_texts(list(new.values()), [(0, "v0"), (1, "v3")])
    assert model.add_vertices(new, edges, labels={"x": "topic 0"}) is model
    grown = model.network_
    assert grown.ids == (*network.ids, "x", 7, ("a", 1))
    assert grown.texts[-3:] == tuple(new.values())
    assert grown.labels == (*network.labels, "topic 0", None, None)
    assert len(grown.links) == len(network.links) + 3
    assert len(grown.edges) == len(network.edges) + 4
    np.testing.assert_array_equal(model.embedding_[:60], mean)
    np.testing.assert_array_equal(model.embedding_std_[:60], std)
    assert model.embedding_std_.shape == (63, std.shape[1])
    np.testing.assert_allclose(model.embedding_[62], unlinked[0][2], rtol=1e-3, atol=1e-4)
    assert np.abs(model.embedding_[60] - unlinked[0][0]).max() > 1e-3  # its link with 7 counts
    assert model.result_["added"] == 3
    assert "v0" not in [link.id for link in model.suggest_links("x", k=100)]
    assert model._rows.degree[60:].tolist() == [2, 2, 0]
    explained = model.explain("x", "v0")
    assert explained.score == pytest.approx(float(model.score([("x", "v0")])[0]), abs=1e-5)

    model.save(tmp_path / "grown")
    loaded = cls.load(tmp_path / "grown")
    assert loaded.network_.ids == grown.ids
    np.testing.assert_array_equal(loaded.network_.links, grown.links)
    np.testing.assert_array_equal(loaded.embedding_, model.embedding_)
    np.testing.assert_array_equal(loaded.embedding_std_, model.embedding_std_)
    assert loaded.suggest_links(7, k=3) == model.suggest_links(7, k=3)
    everyone = np.arange(63)
    np.testing.assert_array_equal(
        loaded.score_matrix(everyone, everyone), model.score_matrix(everyone, everyone)
    )
    more = [m.add_vertices({"y": "t1w1"}, [("y", "x")]).embedding_[-1] for m in (model, loaded)]
    np.testing.assert_array_equal(*more)
    assert loaded.result_["added"] == 4


def test_the_scores_of_texts_are_those_of_vertices_that_are_added(
    quick: New, network: TextNetwork
) -> None:
    """Texts without links change nothing else."""
    features = {"link_features": "words,degree,structure", "validation": 0.3}
    model = quick(**features).fit(network)
    before = model.score_texts(NEW_TEXTS)
    assert before.shape == (len(NEW_TEXTS), 60)
    assert model.score_texts([]).shape == (0, 60)
    old = model.score_matrix(np.arange(60), np.arange(60))
    model.add_vertices(dict(enumerate(NEW_TEXTS)))
    after = model.score_matrix(np.arange(60, 60 + len(NEW_TEXTS)), np.arange(60))
    np.testing.assert_allclose(after, before, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(model.score_matrix(np.arange(60), np.arange(60)), old, atol=1e-6)


def test_the_scores_of_texts_with_links(hasty: New, network: TextNetwork) -> None:
    """An added link changes the degree of its other end only; all scales are used."""
    model = hasty(validation=0.3).fit(network)
    weights = dict.fromkeys(("weak links", "strong links", "words", "structure", "neighbours"), 0.5)
    model = with_posterior(model, LinkPosterior({"embedding": 1.0, **weights}, 0.0))
    edges = [(0, "v0"), (0, "v5"), (1, "v3")]
    before = model.score_texts(NEW_TEXTS, edges)
    near = before[0].copy()
    assert near[[5, 10, 15]].mean() > near[[1, 2, 3]].mean()
    model.add_vertices(dict(enumerate(NEW_TEXTS)), [(text, vertex) for text, vertex in edges])
    after = model.score_matrix(np.arange(60, 65), np.arange(60))
    ends = [0, 5, 3]  # these have one neighbour more
    unlinked = np.delete(np.arange(60), ends)
    touching = {*network.links[np.isin(network.links, ends).any(axis=1)].ravel()}
    others = [v for v in unlinked if v not in touching]
    np.testing.assert_allclose(after[:, others], before[:, others], rtol=1e-3, atol=1e-3)


def with_posterior(model: VHE, posterior: LinkPosterior) -> VHE:
    """A model with other weights, and the tables that they need."""
    from vhe.predict.pair_features import structure_factors

    links, n = model.network_.links, len(model.network_)
    model._link_posterior = posterior
    model._structure = structure_factors(links, n, 0)
    lengths = model._corpus.lengths
    codes = TextCodes(model._corpus, torch.device("cpu"))(torch.from_numpy(model._graph.words))
    model._scales = {
        name: GraphPrior(links, lengths, link_strength=strength).posterior().mean(codes).numpy()
        for name, strength in LINK_STRENGTHS.items()
    }
    model.__dict__.pop("_rows", None)
    return model


def test_a_vertex_that_is_added_after_its_neighbour(hasty: New, network: TextNetwork) -> None:
    """A scale stores the posterior mean itself, whose length the next vertex needs, not its
    direction only."""
    model = with_posterior(hasty().fit(network), EVERY_SCALE)
    for vertex, text, partner in (("x", "t0w1 t0w2", "v0"), ("y", "t3w1", "x")):
        corpus, links = model._encode([text]), model._text_links([text], [(0, partner)])
        expected = model._new_scales(corpus, links, model.embed_texts([text])[0])
        model.add_vertices({vertex: text}, [(vertex, partner)])
        for name, table in model._scales.items():
            np.testing.assert_allclose(table[-1], expected[name][0], rtol=1e-5)
            assert np.linalg.norm(table[-1]) != pytest.approx(1, abs=1e-3)


EVERY_SCALE = LinkPosterior({"embedding": 1.0, "weak links": 0.5, "strong links": 0.5}, 0.0)


def test_nothing_is_added(quick: New, network: TextNetwork) -> None:
    model = quick().fit(network)
    mean, std = model.embed_texts([])
    assert mean.shape == (0, 16)
    assert std.shape == (0, model.embedding_std_.shape[1])
    assert model.add_vertices({}).embedding_.shape == (60, 16)


def test_a_pair_model_without_structure_embeddings_takes_new_vertices(
    new_pair: New, network: TextNetwork, tmp_path: Path
) -> None:
    model = new_pair(structure="none", steps=2).fit(network)
    model.add_vertices({"x": "t0w1 t0w2", "y": "unknown words"}, [("x", "v0")])
    assert np.isfinite(model.embedding_).all()
    assert model.nearest("x", 1)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(PairVHE.load(tmp_path / "model").embedding_, model.embedding_)


@pytest.mark.parametrize(
    ("texts", "edges", "message"),
    [
        ({"v1": "text"}, [], "duplicate id 'v1'"),
        ({"x": "text"}, [("x", "v99")], "'v99'"),
        ({"x": "text"}, [("v1", "v2")], "edge 0 links two vertices of the fitted network"),
        ({"x": 5}, [], "text"),
        ({"x": "text"}, ["xv"], "pairs"),
    ],
)
def test_a_wrong_addition_changes_nothing(
    model: Any, texts: dict[str, Any], edges: list[Any], message: str
) -> None:
    before = model.network_, model.embedding_, model._corpus
    with pytest.raises(VHEError, match=message):
        model.add_vertices(texts, edges)
    assert (model.network_, model.embedding_, model._corpus) == before


def test_wrong_new_texts(model: Any) -> None:
    for wrong in ("a text", [5], 5, None):
        for ask in (model.embed_texts, model.score_texts):
            with pytest.raises(VHEError, match="list of strings"):
                ask(wrong)
    with pytest.raises(VHEError, match="list of strings"):
        model.explain_texts("a text", 5)
    for edges in ([5], ["ab"], 5):
        with pytest.raises(VHEError, match="pairs must be a list"):
            model.embed_texts(["a"], edges)
    with pytest.raises(VHEError, match="text 1, but there are 1"):
        model.embed_texts(["a"], [(1, "v0")])
    with pytest.raises(VHEError, match="'v99'"):
        model.embed_texts(["a"], [(0, "v99")])
    with pytest.raises(VHEError, match="'slow'"):
        model.embed_texts(["a"], method="slow")


def test_the_graph_model_refuses_the_method_of_the_paper(fitted: VHE) -> None:
    for ask in (
        lambda: fitted.embed_texts(["a"], method="paper"),
        lambda: fitted.add_vertices({"x": "a"}, method="paper"),
    ):
        with pytest.raises(VHEError, match="use method 'fast', not 'paper'") as refused:
            ask()
        assert "\n" not in str(refused.value)
    assert "x" not in fitted.network_.ids


# --- to other libraries


def test_networkx_and_pandas_with_the_embedding(model: Any, network: TextNetwork) -> None:
    graph = model.to_networkx()
    assert set(graph.nodes) == set(network.ids)
    assert graph.number_of_edges() == network.to_networkx().number_of_edges()
    np.testing.assert_array_equal(graph.nodes["v4"]["embedding"], model.embedding_[4])
    assert graph.nodes["v4"]["text"] == network.texts[4]
    vertices, edges = model.to_pandas()
    np.testing.assert_array_equal(np.stack(vertices["embedding"]), model.embedding_)
    np.testing.assert_array_equal(np.stack(vertices["std"]), model.embedding_std_)
    assert vertices["id"].tolist() == list(network.ids)
    assert len(edges) == len(network.edges)


def test_pyg_with_the_embedding(model: Any, network: TextNetwork) -> None:
    pytest.importorskip("torch_geometric")
    data = model.to_pyg()
    np.testing.assert_array_equal(data.x.numpy(), model.embedding_)
    np.testing.assert_array_equal(data.x_std.numpy(), model.embedding_std_)
    assert data.ids == list(network.ids)


# --- invalid input


def test_a_network_that_cannot_be_fitted(quick: New, network: TextNetwork) -> None:
    for empty in (
        TextNetwork("abc", ["x", "y", "z"], []),
        TextNetwork("a", ["x"], []),
        TextNetwork("a", ["x"], [[0, 0]]),
        TextNetwork("ab", ["x", "y"], [[0, 0], [1, 1]]),
    ):
        with pytest.raises(VHEError, match="no link"):
            quick().fit(empty)
    for other in (None, [("a", "b")], network.to_networkx(), network.texts):
        with pytest.raises(VHEError, match="TextNetwork"):
            quick().fit(other)


WRONG: list[tuple[str, Any]] = [
    ("latent_dim", 0),
    ("min_count", 2.5),
    ("word_init", "glove"),
    ("validation", 0.75),
    ("link_features", "everything"),
    ("threads", 0),
    ("threads", "two"),
    ("threads", 10**9),
    ("device", "abacus"),
    ("device", None),
    ("random_state", -1),
    ("random_state", 2**40),
    ("random_state", "seven"),
    ("random_state", np.random.RandomState(0)),
]


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_a_wrong_setting_is_refused_in_one_sentence(
    quick: New, network: TextNetwork, name: str, value: Any
) -> None:
    with pytest.raises(VHEError, match=name) as refused:
        quick(**{name: value}).fit(network)
    assert "\n" not in str(refused.value)


def test_a_gpu_that_does_not_exist(quick: New, network: TextNetwork) -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    with pytest.raises(VHEError, match="cuda"):
        quick(device="cuda").fit(network)


def test_a_model_that_is_not_fitted(make: New, cls: type[Estimator], tmp_path: Path) -> None:
    model = make()
    for ask in (
        model.embed,
        lambda: model.score([("a", "b")]),
        lambda: model.predict_proba([("a", "b")]),
        lambda: model.suggest_links("a"),
        model.suggest_all,
        model.suggest_each,
        model.reliability,
        lambda: model.nearest("a"),
        lambda: model.explain("a", "b"),
        lambda: model.explain_texts("a", "b"),
        lambda: model.embed_texts(["a"]),
        lambda: model.add_vertices({"a": "b"}),
        model.to_networkx,
        model.to_pandas,
        model.to_pyg,
        lambda: model.save(tmp_path / "model"),
    ):
        with pytest.raises(VHEError, match=f"{cls.__name__} is not fitted"):
            ask()
    assert list(tmp_path.iterdir()) == []
    assert not hasattr(model, "embedding_")


def test_an_unknown_id_is_named(model: Any) -> None:
    for ask in (
        lambda: model.embed(["v1", "v99"]),
        lambda: model.score([("v1", "v2"), ("v1", "v99")]),
        lambda: model.predict_proba([("v99", "v2")]),
        lambda: model.suggest_links("v99"),
        lambda: model.explain("v1", "v99"),
        lambda: model.nearest("v99"),
    ):
        with pytest.raises(VHEError, match="'v99'"):
            ask()
    with pytest.raises(VHEError, match="1"):
        model.embed([1])


@pytest.mark.parametrize(
    "pairs", ["v1", [("v1",)], [("v1", "v2", "v3")], [1, 2], ["v1"], 7, None, ("v1", "v2"), ["xy"]]
)
def test_what_is_not_a_list_of_pairs(fitted: VHE, pairs: Any) -> None:
    with pytest.raises(VHEError, match="pairs"):
        fitted.predict_proba(pairs)
    with pytest.raises(VHEError, match="pairs"):
        fitted.score(pairs)


# --- interruption and resuming


def test_an_interrupted_second_fit_leaves_the_model_as_it_was(
    quick: New, cls: type[Estimator], network: TextNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = quick().fit(network)
    names = set(vars(model))
    before = model.embedding_.copy(), model.score_matrix(np.arange(60), np.arange(60))
    small = network.subnetwork(np.arange(30))

    def failing(*_: Any) -> None:
        raise KeyboardInterrupt

    for method in ("_train", "_fit_link_posterior", "_finalise"):
        with monkeypatch.context() as patch:
            patch.setattr(cls, method, failing)
            with pytest.raises(KeyboardInterrupt):
                model.fit(small)
        assert model.network_ is network
        assert set(vars(model)) >= names
        np.testing.assert_array_equal(model.embedding_, before[0])
        np.testing.assert_array_equal(model.score_matrix(np.arange(60), np.arange(60)), before[1])
        assert len(model.explain("v0", "v40").parts) >= 2
    unfitted = quick()
    with monkeypatch.context() as patch:
        patch.setattr(cls, "_finalise", failing)
        with pytest.raises(KeyboardInterrupt):
            unfitted.fit(network)
    with pytest.raises(VHEError, match="not fitted"):
        unfitted.embed()
    assert model.fit(small).embedding_.shape == (30, 16)


def test_ctrl_c_leaves_a_model_that_can_be_used(
    make: New,
    network: TextNetwork,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    logs: Any,
) -> None:
    press_ctrl_c(monkeypatch, at=7)
    with logs("interrupted at step 7"):
        model = make().fit(network)
    assert model.result_["stopped"] == "interrupted at step 7"
    assert model.result_["steps"] == 7
    assert np.isfinite(model.embedding_).all()
    assert len(model.suggest_links("v0", k=3)) == 3
    model.save(tmp_path / "model")
    assert load_model(tmp_path / "model").result_["stopped"] == "interrupted at step 7"


@pytest.mark.parametrize("seed", [3, None])
def test_resumed_training_ends_with_the_same_bits(
    make: New, network: TextNetwork, tmp_path: Path, seed: int | None
) -> None:
    folder = tmp_path / "training"
    with pytest.MonkeyPatch.context() as patch:
        press_ctrl_c(patch, at=7)
        first = make(random_state=seed).fit(network, checkpoint=folder)
    assert folder.is_dir()
    model = make(random_state=seed).fit(network, checkpoint=folder, resume=True)
    assert model.result_["seed"] == first.result_["seed"]
    assert (model.result_["stopped"], model.result_["steps"]) == ("", 20)
    whole = make(random_state=first.result_["seed"]).fit(network)
    np.testing.assert_array_equal(model.embedding_, whole.embedding_)
    np.testing.assert_array_equal(model.embedding_std_, whole.embedding_std_)
    pairs = [("v0", "v1"), ("v0", "v5")]
    np.testing.assert_array_equal(model.predict_proba(pairs), whole.predict_proba(pairs))
    assert model.result_["chosen"] == whole.result_["chosen"]
    timed = [[{**r, "seconds": 0} for r in m.history_] for m in (model, whole)]
    assert timed[0] == timed[1]


def test_there_is_nothing_to_resume(quick: New, network: TextNetwork, tmp_path: Path) -> None:
    with pytest.raises(VHEError, match="no such training folder"):
        quick().fit(network, checkpoint=tmp_path / "nothing", resume=True)
    for seed in (0, None):
        with pytest.raises(VHEError, match="resume"):
            quick(random_state=seed).fit(network, resume=True)


def test_the_training_of_another_model_is_not_resumed(
    hasty: New, new_pair: New, network: TextNetwork, tmp_path: Path
) -> None:
    hasty().fit(network, checkpoint=tmp_path / "training")
    with pytest.raises(VHEError, match="of a graph model, not of a pair model") as refused:
        new_pair(steps=2).fit(network, checkpoint=tmp_path / "training", resume=True)
    assert "\n" not in str(refused.value)


# --- model folders (see also tests/storage/test_model_folder.py)


def test_a_folder_of_the_other_model_is_refused(
    fitted: VHE, fitted_pair: PairVHE, tmp_path: Path
) -> None:
    fitted.save(tmp_path / "graph")
    fitted_pair.save(tmp_path / "pair")
    assert isinstance(load_model(tmp_path / "graph"), VHE)
    assert isinstance(load_model(tmp_path / "pair"), PairVHE)
    for name, wrong in (("graph", PairVHE), ("pair", VHE)):
        folder = tmp_path / name
        message = f"{folder}: this is a {name} model; use vhe.load_model"
        with pytest.raises(VHEError) as refused:
            wrong.load(folder)
        assert str(refused.value) == message


def test_a_model_folder_stores_each_table_once(model: Any, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    tensors = load_file(tmp_path / "model" / "weights.safetensors")
    n, d = model.embedding_.shape
    tables = {name: t for name, t in tensors.items() if t.ndim > 1 or t.numel() not in (1, d)}
    assert any(len(table) == n for table in tables.values())
    for (one, a), (other, b) in itertools.combinations(tables.items(), 2):
        # layers that training has not changed yet may be equal: all zeros
        if a.numel() == b.numel() and a.any():
            assert not torch.equal(a.flatten(), b.flatten()), (one, other)


# --- every setting changes the result

GRAPH_BASE: dict[str, Any] = {
    "max_words": 16,
    "min_count": 1,
    "latent_dim": 8,
    "max_steps": 6,
    "step_links": 24,
    "validate_every": 2,
    "patience": 100,
    "validation": 0.2,
    "link_strength": 0.5,
    "text_knn_weight": 0.5,
    "link_features": "",
}
PAIR_BASE: dict[str, Any] = {
    "max_words": 16,
    "min_count": 1,
    "word_dim": 8,
    "latent_dim": 8,
    "structure_dim": 8,
    "hidden_dim": 8,
    "kernels": 4,
    "kernel_width": 3,
    "batch_size": 32,
    "near_pairs": 8,
    "warmup": 2,
    "steps": 4,
    "validation": 0.2,
    "contexts": 4,
    "link_features": "",
}
FREE_SIZES = {"residual": False}
FLUCTUATING = {"validate_every": 1, "learning_rate": 0.3, "max_steps": 12}
# of each setting: the changed value, and other settings that hold before and after the change
GRAPH_CHANGES: dict[str, tuple[Any, dict[str, Any]]] = {
    "max_words": (3, {}),
    "min_count": (6, {}),
    "latent_dim": (6, {}),
    "word_init": ("random", {}),
    "encoder_weight": (0.9, {"encoder": lambda texts: [[len(t), t.count("0")] for t in texts]}),
    "link_strength": (2.0, {}),
    "text_knn_weight": (2.0, {}),
    "link_features": ("structure", {}),
    "learning_rate": (1e-3, {"validation": 0.0}),
    "step_links": (8, {"validation": 0.0}),
    "max_steps": (2, {"validation": 0.0}),
    "validation": (0.4, {}),
    "validate_every": (6, FLUCTUATING),
    "patience": (1, FLUCTUATING),
}
PAIR_CHANGES: dict[str, tuple[Any, dict[str, Any]]] = {
    "max_words": (3, {}),
    "min_count": (6, {}),
    "word_dim": (6, FREE_SIZES),
    "word_init": ("random", {}),
    "kernels": (3, {}),
    "kernel_width": (5, {}),
    "latent_dim": (6, FREE_SIZES),
    "structure": ("none", {}),
    "structure_dim": (6, FREE_SIZES),
    "hidden_dim": (6, {}),
    "homophily": (0.5, {}),
    "pi0": (0.5, {"link_posterior": "mlp"}),
    "residual": (False, {}),
    "shared_posterior": (False, {}),
    "link_posterior": ("mlp", {}),
    "link_features": ("structure", {}),
    "decoder": ("multinomial", {}),
    "target": ("max", {}),
    "fixed_target": (False, {}),
    "precision": (1.0, {}),
    "alpha": (0.9, {}),
    "negatives": (3, {}),
    "link_weight": (0.0, {}),
    "batch_size": (16, {}),
    "near_pairs": (0, {}),
    "learning_rate": (1e-2, {}),
    "structure_rate": (0.01, {}),
    "warmup": (0, {}),
    "decay": (False, {}),
    "steps": (2, {}),
    "epochs": (5.0, {}),
    "validation": (0.4, {}),
    "contexts": (2, {}),
}
SETTINGS = [(VHE, f.name) for f in fields(VHEConfig)]
SETTINGS += [(PairVHE, f.name) for f in fields(PairVHEConfig)]


def ring_network(n: int = 120) -> TextNetwork:
    """Each vertex is linked with the next six; the texts say nothing, common neighbours much."""
    rng = np.random.default_rng(0)
    texts = [" ".join(f"w{w}" for w in rng.integers(60, size=8)) for _ in range(n)]
    return TextNetwork(range(n), texts, [(v, (v + k) % n) for v in range(n) for k in range(1, 7)])


@pytest.fixture(scope="module")
def result() -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    """The embedding and the probabilities of all pairs; fits with equal settings run once."""
    networks = {False: two_vocabularies(40), True: ring_network()}
    results: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    def of(
        cls: type[Estimator], settings: dict[str, Any], ring: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        key = f"{cls.__name__} {ring} {sorted(settings.items())}"
        if key not in results:
            network = networks[ring]
            model = cls(random_state=0, threads=1, verbose=False, **settings).fit(network)
            i, j = np.triu_indices(len(network), 1)
            results[key] = model.embedding_, model.probability_indices(i, j)
        return results[key]

    return of


@pytest.mark.parametrize(
    ("cls", "name"), SETTINGS, ids=[f"{cls.__name__}-{name}" for cls, name in SETTINGS]
)
def test_every_setting_changes_the_result(
    cls: type[Estimator], name: str, result: Callable[..., tuple[np.ndarray, np.ndarray]]
) -> None:
    """A new setting needs an entry in the table above."""
    base, changes = (GRAPH_BASE, GRAPH_CHANGES) if cls is VHE else (PAIR_BASE, PAIR_CHANGES)
    value, others = changes[name]
    ring = name == "link_features"  # they have a weight only where they help
    before = result(cls, base | others, ring)
    after = result(cls, base | others | {name: value}, ring)
    changed = before[0].shape != after[0].shape or any(
        np.abs(x - y).max() > 1e-6 for x, y in zip(before, after, strict=True)
    )
    assert changed


GROUPS_OF = [("graph", g) for g in ("scales", "words", "degree", "structure")]
GROUPS_OF += [("pair", g) for g in ("words", "degree", "structure")]


@pytest.mark.parametrize(("kind", "group"), GROUPS_OF)
def test_every_group_of_features_changes_the_result(
    kind: str, group: str, quick: New, network: TextNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_posterior, "_others_help", lambda *arguments: True)
    if group == "structure":  # the texts of the other network say all
        network = two_vocabularies()
    # two dimensions do not hold all words
    sizes = {"latent_dim": 2} if (kind, group) == ("graph", "words") else {}
    i, j = np.triu_indices(len(network), 1)
    with_group, without = (
        quick(link_features=features, validation=0.4, **sizes).fit(network)
        for features in (group, "")
    )
    np.testing.assert_array_equal(with_group.embedding_, without.embedding_)
    difference = with_group.score_indices(i, j) - without.score_indices(i, j)
    assert np.abs(difference).max() > 1e-4


def test_an_embedding_of_a_text_that_is_not_finite_is_refused(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Weights of a changed model folder can be in range and still overflow together."""
    found = model._embed_new(model._encode(["t0w1"]), np.zeros((0, 2), np.int64), None)
    found.variance[:] = np.inf
    monkeypatch.setattr(model, "_embed_new", lambda *arguments: found)
    for use in (
        lambda: model.embed_texts(["t0w1"]),
        lambda: model.score_texts(["t0w1"]),
        lambda: model.add_vertices({"new": "t0w1"}),
    ):
        with pytest.raises(VHEError, match="damaged"):
            use()


def test_dir_of_a_model_computes_nothing(fitted: VHE) -> None:
    """Completion in a notebook calls it; scikit-learn's form evaluates every attribute."""
    before = set(vars(fitted))
    assert {"fit", "predict_proba", "embedding_"} <= set(dir(fitted))
    assert set(vars(fitted)) == before
    assert "fit" in dir(VHE())
