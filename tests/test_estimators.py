"""VHE as people meet it: a scikit-learn estimator that answers questions about a network, and says
what is wrong in one sentence."""

import inspect
import json
import signal
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import vhe
from vhe.config import VHEConfig
from vhe.data.network import TextNetwork
from vhe.data.splits import validation_links
from vhe.errors import VHEError
from vhe.estimators import VHE, Suggestion
from vhe.predict.probability import cosine
from vhe.runtime.progress import Progress

New = Callable[..., VHE]


def press_ctrl_c(monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    """Interrupt the training when so many steps are done."""

    def update(progress: Progress, done: int, note: str | None = None) -> None:
        if done == at and progress.task == "training" and not pressed:
            pressed.append(done)
            signal.raise_signal(signal.SIGINT)

    pressed: list[int] = []
    monkeypatch.setattr(Progress, "update", update)


# --- scikit-learn's rules


def test_the_parameters_are_those_of_the_configuration() -> None:
    names = {f.name for f in fields(VHEConfig)} | {"random_state", "threads", "device", "verbose"}
    assert set(VHE().get_params()) == names
    assert set(inspect.signature(VHE).parameters) == names
    for f in fields(VHEConfig):
        assert VHE().get_params()[f.name] == f.default


def test_init_only_stores() -> None:
    nonsense = {f.name: object() for f in fields(VHEConfig)}
    model = VHE(**nonsense, random_state="never", device=7)
    assert vars(model) == {**VHE().get_params(), **nonsense, "random_state": "never", "device": 7}
    with pytest.raises(VHEError):
        _ = model.config


def test_params_can_be_set_and_cloned(fitted: VHE, new: New) -> None:
    model = new(homophily=0.5)
    assert model.set_params(homophily=0.25, verbose=True) is model
    assert (model.get_params()["homophily"], model.homophily, model.verbose) == (0.25, 0.25, True)
    assert model.config.homophily == 0.25
    copy = clone(model)
    assert copy is not model
    assert copy.get_params() == model.get_params()
    again = clone(fitted)
    assert again.get_params() == fitted.get_params()
    assert not hasattr(again, "embedding_")
    assert not any(name.endswith("_") and not name.startswith("__") for name in vars(again))


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [("homophilly", "homophily"), ("stpes", "steps"), ("random_stat", "random_state"),
     ("verbos", "verbose")],
)  # fmt: skip
def test_an_unknown_parameter_names_the_nearest(wrong: str, meant: str) -> None:
    with pytest.raises(VHEError, match=rf"'{wrong}'.*{meant}\b") as refused:
        VHE(**{wrong: 1})
    assert "known are" not in str(refused.value)
    with pytest.raises(ValueError, match=wrong):
        VHE().set_params(**{wrong: 1})


def test_parameters_have_names() -> None:
    with pytest.raises(TypeError, match="positional"):
        VHE(100)


def test_fit_returns_the_model_itself(hasty: New, network: TextNetwork) -> None:
    model = hasty()
    before = model.get_params()
    assert model.fit(network) is model
    assert model.get_params() == before
    assert model.network_ is network


def test_from_config(config: VHEConfig) -> None:
    chosen = config.replace(homophily=0.125)
    model = VHE.from_config(chosen, random_state=8)
    assert model.config == chosen
    assert model.random_state == 8


def test_the_repr_tells_what_it_is(fitted: VHE) -> None:
    assert repr(VHE(steps=7)) == "VHE(steps=7)"
    assert repr(VHE()) == "VHE()"
    told = repr(fitted)
    assert repr(fitted.network_) in told
    assert f"{100 * fitted.result_['validation_auc']:.1f} %" in told
    assert "\n" not in told


# --- what fit leaves


def test_what_is_learned(fitted: VHE, network: TextNetwork) -> None:
    n = len(network)
    for array in (fitted.embedding_, fitted.embedding_std_):
        assert array.shape == (n, 16)
        assert array.dtype == np.float32
        assert np.isfinite(array).all()
    assert fitted.embedding_std_.min() > 0
    assert len(np.unique(fitted.embedding_.round(4), axis=0)) > n / 2
    result = fitted.result_
    assert result["seed"] == 3
    assert result["steps"] == 20
    assert result["stopped"] == ""
    assert result["threads"] == 1
    assert result["seconds"] > 0
    assert result["versions"].keys() >= {"python", "vhe", "torch", "numpy"}
    assert 0 <= result["best_step"] <= 20
    assert result["validation_auc"] == max(r["validation_auc"] for r in fitted.history_)
    assert json.loads(json.dumps(result)) == result
    assert [record["step"] for record in fitted.history_] == [0, 5, 10, 15, 20]


def test_another_seed_gives_another_embedding(hasty: New, network: TextNetwork) -> None:
    one, other = (hasty(random_state=seed).fit(network).embedding_ for seed in (0, 1))
    assert np.abs(one - other).max() > 1e-3


def test_a_seed_that_is_not_given_is_drawn_and_stored(
    hasty: New, network: TextNetwork, tmp_path: Path
) -> None:
    model = hasty(random_state=None).fit(network)
    seed = model.result_["seed"]
    assert model.random_state is None
    np.testing.assert_array_equal(
        hasty(random_state=seed).fit(network).embedding_, model.embedding_
    )
    assert hasty(random_state=None).fit(network).result_["seed"] != seed
    model.save(tmp_path / "model")
    assert VHE.load(tmp_path / "model").result_["seed"] == seed


def test_fitting_again_starts_anew(hasty: New, network: TextNetwork) -> None:
    model = hasty()
    first = model.fit(network).embedding_
    np.testing.assert_array_equal(model.fit(network).embedding_, first)
    small = network.subnetwork(np.arange(30))
    assert model.fit(small).embedding_.shape == (30, 16)
    assert model.network_ is small


def test_the_number_of_threads_is_as_before(hasty: New, network: TextNetwork) -> None:
    import torch

    before = torch.get_num_threads()
    assert hasty(threads=1).fit(network).result_["threads"] == 1
    assert torch.get_num_threads() == before


def test_progress_goes_to_standard_error(
    hasty: New, network: TextNetwork, capsys: pytest.CaptureFixture[str]
) -> None:
    hasty(verbose=False).fit(network)
    assert capsys.readouterr() == ("", "")
    hasty(verbose=True).fit(network)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "training 4/4" in printed.err
    assert "validation AUC" in printed.err


# --- it learns


def test_held_out_links_are_found(new: New, network: TextNetwork) -> None:
    aucs = []
    for seed in (0, 1):
        train, test = network.split_edges(0.8, seed=seed)
        aucs.append(vhe.evaluate(new(random_state=seed).fit(train), test).auc)
    assert np.mean(aucs) > 0.8


def test_it_learns_what_the_texts_alone_do_not_say(new: New) -> None:
    """Linked texts have no word in common here, those that share words are never linked."""
    rng = np.random.default_rng(0)
    n, topics = 96, 4
    topic, side = np.arange(n) % topics, np.arange(n) // topics % 2
    texts = [
        " ".join(f"t{t}s{s}w{k}" for k in rng.integers(6, size=6))
        for t, s in zip(topic, side, strict=True)
    ]
    partners = (topic[:, None] == topic) & (side[:, None] < side)
    links = np.argwhere(partners & (rng.random((n, n)) < 0.4))
    network = TextNetwork(range(n), texts, links)
    train, test = network.split_edges(0.7)
    settings = {"structure": "none", "learning_rate": 0.02, "batch_size": 128, "contexts": 8}
    untrained = vhe.evaluate(new(steps=0, **settings).fit(train), test).auc
    trained = vhe.evaluate(new(steps=60, **settings).fit(train), test).auc
    assert untrained < 0.6
    assert trained > 0.8


def test_links_are_likelier_than_other_pairs(fitted: VHE, network: TextNetwork) -> None:
    topic = np.array([int(label[-1]) for label in network.labels])
    i, j = np.triu_indices(len(network), 1)
    chances = fitted.probability_indices(i, j)
    same = topic[i] == topic[j]
    assert chances[same].mean() > chances[~same].mean() + 0.3


# --- questions to a model


def test_embed_gives_rows_by_id(fitted: VHE, network: TextNetwork) -> None:
    np.testing.assert_array_equal(fitted.embed(), fitted.embedding_)
    chosen = ["v40", "v3", "v40"]
    mean, std = fitted.embed(chosen, return_std=True)
    np.testing.assert_array_equal(mean, fitted.embedding_[[40, 3, 40]])
    np.testing.assert_array_equal(std, fitted.embedding_std_[[40, 3, 40]])
    assert fitted.embed([]).shape == (0, 16)
    assert fitted.embed(iter(["v1"])).shape == (1, 16)


def test_embed_with_other_contexts(network: TextNetwork, hasty: New) -> None:
    fitted = hasty(embedding="average").fit(network)
    exact, exact_std = fitted.embed(contexts="all", return_std=True)
    assert exact.shape == exact_std.shape == (len(network), 16)
    assert np.isfinite(exact).all()
    assert exact_std.min() > 0
    np.testing.assert_allclose(fitted.embed(contexts=1000), exact, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(fitted.embed(["v5"], contexts="all"), exact[[5]])
    np.testing.assert_allclose(fitted.embed(contexts=4), fitted.embedding_, rtol=1e-4, atol=1e-5)
    errors = [np.abs(fitted.embed(contexts=c) - exact).mean() for c in (2, 40)]
    assert errors[1] < errors[0]


@pytest.mark.parametrize("contexts", [0, -1, "some", 2.5])
def test_contexts_that_are_none(fitted: VHE, contexts: Any) -> None:
    with pytest.raises(VHEError, match="contexts"):
        fitted.embed(contexts=contexts)


def test_scores_are_cosines(fitted: VHE) -> None:
    z = fitted.embedding_
    pairs = [("v0", "v1"), ("v7", "v7"), ("v9", "v30")]
    wanted = cosine(z[[0, 7, 9]], z[[1, 7, 30]])
    np.testing.assert_allclose(fitted.score(pairs), wanted, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(fitted.score(np.array(pairs)), wanted, rtol=1e-4, atol=1e-6)


def test_probabilities_grow_with_the_score(fitted: VHE, network: TextNetwork) -> None:
    i, j = np.triu_indices(len(network), 1)
    chances, scores = fitted.probability_indices(i, j), fitted.score_indices(i, j)
    assert ((chances >= 0) & (chances <= 1)).all()
    order = np.argsort(scores, kind="stable")
    assert (np.diff(chances[order]) >= 0).all()
    assert chances.max() > chances.min() + 0.3
    pairs = [(network.ids[a], network.ids[b]) for a, b in zip(i[:9], j[:9], strict=True)]
    np.testing.assert_allclose(fitted.predict_proba(pairs), chances[:9])
    swapped = [(b, a) for a, b in pairs]
    np.testing.assert_allclose(fitted.predict_proba(swapped), chances[:9], rtol=1e-5)
    assert fitted.predict_proba([]).shape == (0,)
    assert fitted.score([]).shape == (0,)


def test_the_reliability_is_kept(fitted: VHE, tmp_path: Path) -> None:
    curve = fitted.reliability()
    assert fitted.result_["calibration_error"] == pytest.approx(curve.error)
    assert (np.diff(curve.probability) > 0).all()
    assert ((curve.frequency >= 0) & (curve.frequency <= 1)).all()
    half = (curve.frequency * curve.count).sum() / curve.count.sum()
    assert half == pytest.approx(0.5)  # as many links as non-links
    fitted.save(tmp_path / "model")
    assert VHE.load(tmp_path / "model").reliability().error == pytest.approx(curve.error)


def test_a_link_that_is_judged_is_not_read_from(
    hasty: New, network: TextNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The structure that a held-out link is scored with is made without it, and has the rest."""
    from vhe.graph.posterior import JointStructure

    without: list[set[tuple[int, int]]] = []
    store = JointStructure.store

    def spy(self: JointStructure, left_out: Any = None, **more: Any) -> None:
        left_out = more.get("without", left_out)
        if left_out is not None:
            assert self.prior is not None
            without.append({tuple(link) for link in network.links[left_out].tolist()})
        store(self, left_out)

    monkeypatch.setattr(JointStructure, "store", spy)
    model = hasty(validation=0.1).fit(network)
    _, validation = validation_links(network.links, 0.1, model.seed_, 256)
    assert set.union(*without) == {tuple(link) for link in validation.tolist()}
    assert max(map(len, without)) < len(validation)


def test_probabilities_grow_with_the_score_when_there_is_little_to_judge_by(hasty: New) -> None:
    """Few validation links may score low by chance; a likelier link must still be likelier."""
    for seed in range(6):
        texts = ["x y", "y z", "z w", "w x", "x z"]
        path = TextNetwork(range(5), texts, [[0, 1], [1, 2], [2, 3], [3, 4]])
        model = hasty(random_state=seed, validation=0.3).fit(path)
        i, j = np.triu_indices(5, 1)
        order = np.argsort(model.score_indices(i, j))
        assert (np.diff(model.probability_indices(i, j)[order]) >= 0).all()


def test_suggested_links_are_new_and_the_likeliest_first(fitted: VHE, network: TextNetwork) -> None:
    for vertex in (0, 17, 59):
        name = network.ids[vertex]
        found = fitted.suggest_links(name, k=7)
        assert len(found) == 7
        assert all(isinstance(suggestion, Suggestion) for suggestion in found)
        chances = [suggestion.probability for suggestion in found]
        assert chances == sorted(chances, reverse=True)
        others = network.indices([suggestion.id for suggestion in found])
        assert len(set(others.tolist())) == 7
        linked = {tuple(link) for link in network.links.tolist()}
        assert not linked & {(min(vertex, o), max(vertex, o)) for o in others.tolist()}
        assert vertex not in others
        # none that was left out is likelier
        rest = [o for o in range(60) if o not in others and o != vertex]
        rest = [o for o in rest if (min(vertex, o), max(vertex, o)) not in linked]
        left = fitted.probability_indices(
            np.full(len(rest), vertex), np.array(rest), balanced=False
        )
        assert left.max() <= min(chances)
        pairs = [(name, s.id) for s in found]
        assert chances == pytest.approx(fitted.predict_proba(pairs, balanced=False))
        assert (fitted.predict_proba(pairs) > chances).all()  # most pairs are no links
        assert [s.text for s in found] == [network.texts[o] for o in others]


def test_all_links_that_can_be_suggested(fitted: VHE, network: TextNetwork) -> None:
    found = fitted.suggest_links("v0", k=1000)
    assert len(found) == len(network) - 1 - network.degrees[0]
    assert fitted.suggest_links("v0", k=0) == []
    assert len(fitted.suggest_links("v0")) == 10
    with pytest.raises(VHEError, match="k"):
        fitted.suggest_links("v0", k=-1)


def test_a_suggestion_shows_the_beginning_of_a_long_text(hasty: New) -> None:
    texts = ["a b", "a b", f"first\n line\t{'word ' * 100}"]
    model = hasty(max_words=300).fit(TextNetwork("xyz", texts, [[0, 1]]))
    (found,) = [s for s in model.suggest_links("x") if s.id == "z"]
    assert found.text.startswith("first line word word")
    assert found.text.endswith("…")
    assert len(found.text) <= 80


def test_where_everything_is_linked_nothing_is_suggested(hasty: New) -> None:
    model = hasty().fit(TextNetwork("ab", ["x y", "y z"], [[0, 1]]))
    assert model.suggest_links("a") == []


def test_suggestions_for_everybody(fitted: VHE, network: TextNetwork) -> None:
    table = fitted.suggest_all(k=3)
    assert list(table.columns) == ["source", "target", "probability", "text"]
    assert len(table) == 3 * len(network)
    for name in ("v0", "v31"):
        rows = table[table["source"] == name]
        wanted = fitted.suggest_links(name, k=3)
        assert rows["target"].tolist() == [s.id for s in wanted]
        assert rows["probability"].tolist() == pytest.approx([s.probability for s in wanted])
        assert rows["text"].tolist() == [s.text for s in wanted]
    assert len(fitted.suggest_all(k=0)) == 0


def test_the_nearest_vertices(fitted: VHE) -> None:
    near = fitted.nearest("v7", k=4)
    others = [f"v{j}" for j in range(60) if j != 7]
    scores = fitted.score([("v7", other) for other in others])
    best = np.argsort(-scores, kind="stable")[:4]
    assert [vertex for vertex, _ in near] == [others[j] for j in best]
    assert [cosine for _, cosine in near] == pytest.approx(scores[best].tolist(), abs=1e-5)
    assert fitted.nearest(fitted.embedding_[7], k=5)[0] == ("v7", pytest.approx(1))
    assert len(fitted.nearest("v7", k=1000)) == 59
    with pytest.raises(VHEError, match="shape"):
        fitted.nearest(np.zeros(3))
    with pytest.raises(VHEError, match="k"):
        fitted.nearest("v7", k=-1)


def test_probabilities_in_the_network_are_bayes_rule(fitted: VHE, network: TextNetwork) -> None:
    pairs = [("v0", "v5"), ("v0", "v1"), ("v3", "v8")]
    even, sparse = fitted.predict_proba(pairs), fitted.predict_proba(pairs, balanced=False)
    share = len(network.links) / (60 * 59 / 2)
    odds = even / (1 - even) * share / (1 - share)
    np.testing.assert_allclose(sparse, odds / (1 + odds), rtol=1e-6)


# --- to other libraries


def test_networks_with_their_embedding(fitted: VHE, network: TextNetwork) -> None:
    graph = fitted.to_networkx()
    assert set(graph.nodes) == set(network.ids)
    assert graph.number_of_edges() == network.to_networkx().number_of_edges()
    np.testing.assert_array_equal(graph.nodes["v4"]["embedding"], fitted.embedding_[4])
    assert graph.nodes["v4"]["text"] == network.texts[4]
    vertices, edges = fitted.to_pandas()
    np.testing.assert_array_equal(np.stack(vertices["embedding"]), fitted.embedding_)
    np.testing.assert_array_equal(np.stack(vertices["std"]), fitted.embedding_std_)
    assert vertices["id"].tolist() == list(network.ids)
    assert len(edges) == len(network.edges)


def test_pyg_with_the_embedding(fitted: VHE, network: TextNetwork) -> None:
    pytest.importorskip("torch_geometric")
    data = fitted.to_pyg()
    np.testing.assert_array_equal(data.x.numpy(), fitted.embedding_)
    np.testing.assert_array_equal(data.x_std.numpy(), fitted.embedding_std_)
    assert data.ids == list(network.ids)


# --- mistakes


def test_what_cannot_be_learned(hasty: New, network: TextNetwork) -> None:
    for nothing in (
        TextNetwork("abc", ["x", "y", "z"], []),
        TextNetwork("a", ["x"], []),
        TextNetwork("a", ["x"], [[0, 0]]),
        TextNetwork("ab", ["x", "y"], [[0, 0], [1, 1]]),
    ):
        with pytest.raises(VHEError, match="no link"):
            hasty().fit(nothing)
    for thing in (None, [("a", "b")], network.to_networkx(), network.texts):
        with pytest.raises(VHEError, match="TextNetwork"):
            hasty().fit(thing)


@pytest.mark.parametrize(
    "wrong",
    [
        {"homophily": 1.0},
        {"homophily": "high"},
        {"steps": 2.5},
        {"latent_dim": 24},
        {"threads": 0},
        {"threads": "two"},
        {"device": "abacus"},
        {"device": None},
        {"random_state": -1},
        {"random_state": 2**40},
        {"random_state": "seven"},
        {"random_state": np.random.RandomState(0)},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_settings_that_are_wrong(hasty: New, network: TextNetwork, wrong: dict[str, Any]) -> None:
    with pytest.raises(VHEError, match=next(iter(wrong))) as refused:
        hasty(**wrong).fit(network)
    assert "\n" not in str(refused.value)


def test_a_gpu_that_is_not_there(hasty: New, network: TextNetwork) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is one")
    with pytest.raises(VHEError, match="cuda"):
        hasty(device="cuda").fit(network)


def test_a_model_that_is_not_fitted(new: New, tmp_path: Path) -> None:
    model = new()
    for ask in (
        model.embed,
        lambda: model.embed(["a"], contexts="all"),
        lambda: model.score([("a", "b")]),
        lambda: model.predict_proba([("a", "b")]),
        lambda: model.suggest_links("a"),
        model.suggest_all,
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
        with pytest.raises(VHEError, match="not fitted"):
            ask()
    assert list(tmp_path.iterdir()) == []
    assert not hasattr(model, "embedding_")


def test_unknown_ids_are_named(fitted: VHE) -> None:
    for ask in (
        lambda: fitted.embed(["v1", "v99"]),
        lambda: fitted.score([("v1", "v2"), ("v1", "v99")]),
        lambda: fitted.predict_proba([("v99", "v2")]),
        lambda: fitted.suggest_links("v99"),
    ):
        with pytest.raises(VHEError, match="'v99'"):
            ask()
    with pytest.raises(VHEError, match="1"):
        fitted.embed([1])


@pytest.mark.parametrize(
    "pairs", ["v1", [("v1",)], [("v1", "v2", "v3")], [1, 2], ["v1"], 7, None, ("v1", "v2"), ["xy"]]
)
def test_pairs_that_are_none(fitted: VHE, pairs: Any) -> None:
    with pytest.raises(VHEError, match="pairs"):
        fitted.predict_proba(pairs)
    with pytest.raises(VHEError, match="pairs"):
        fitted.score(pairs)


# --- interruption


def test_ctrl_c_leaves_a_model_that_can_be_used(
    new: New, network: TextNetwork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    press_ctrl_c(monkeypatch, at=7)
    with pytest.warns(UserWarning, match="interrupted at step 7"):
        model = new().fit(network)
    assert model.result_["stopped"] == "interrupted at step 7"
    assert model.result_["steps"] == 7
    assert np.isfinite(model.embedding_).all()
    assert len(model.suggest_links("v0", k=3)) == 3
    model.save(tmp_path / "model")
    assert VHE.load(tmp_path / "model").result_["stopped"] == "interrupted at step 7"


@pytest.mark.parametrize("seed", [3, None])
@pytest.mark.filterwarnings("ignore:training stopped early")
def test_a_training_can_be_resumed(
    new: New, network: TextNetwork, tmp_path: Path, seed: int | None
) -> None:
    kept = tmp_path / "kept"
    with pytest.MonkeyPatch.context() as patch:
        press_ctrl_c(patch, at=7)
        first = new(random_state=seed).fit(network, checkpoint=kept)
    assert kept.is_dir()
    model = new(random_state=seed).fit(network, checkpoint=kept, resume=True)
    assert model.result_["seed"] == first.result_["seed"]
    assert model.result_["stopped"] == ""
    assert model.result_["steps"] == 20
    whole = new(random_state=first.result_["seed"]).fit(network)
    np.testing.assert_array_equal(model.embedding_, whole.embedding_)
    np.testing.assert_array_equal(model.embedding_std_, whole.embedding_std_)
    pairs = [("v0", "v1"), ("v0", "v5")]
    np.testing.assert_array_equal(model.predict_proba(pairs), whole.predict_proba(pairs))


def test_nothing_to_resume(hasty: New, network: TextNetwork, tmp_path: Path) -> None:
    with pytest.raises(VHEError, match="no such training folder"):
        hasty().fit(network, checkpoint=tmp_path / "nothing", resume=True)
    for seed in (0, None):
        with pytest.raises(VHEError, match="resume"):
            hasty(random_state=seed).fit(network, resume=True)
