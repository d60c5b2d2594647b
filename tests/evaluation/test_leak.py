"""No held-out edge reaches any method of the registry, and leaks would be detected.

Two networks differ in their held-out edges only. The argument of ``fit`` is searched for held-out
edges, including hidden references; and the scores after the fit must be equal to the last bit.
"""

import gc
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import numpy as np
import pytest

from vhe.data.network import TextNetwork
from vhe.data.splits import LinkTest, split_edges, split_vertices
from vhe.errors import VHEError
from vhe.evaluation import experiment as experiment_module
from vhe.evaluation import link as link_module
from vhe.evaluation.experiment import Evaluator, Experiment
from vhe.evaluation.methods import METHODS, make
from vhe.evaluation.unseen import check_unseen
from vhe.predict.scoring import CosineMethod, Method

RATIO, SEED = 0.6, 0
VERTICES, TOPICS = 40, 4

# Settings for fast fits; choices on validation links remain enabled.
NEURAL = {"word_dim": 8, "structure_dim": 8, "kernels": 4, "kernel_width": 3, "contexts": 2}
NEURAL |= {"steps": 4, "validate_every": 2, "patience": 10}
GRAPH = {"latent_dim": 8, "max_steps": 4, "validate_every": 2, "step_links": 16, "threads": 1}
PAIR = {"word_dim": 8, "structure_dim": 8, "latent_dim": 8, "hidden_dim": 8, "kernels": 4}
PAIR |= {"kernel_width": 3, "contexts": 2, "steps": 4, "batch_size": 32}
WALKS = {"dimensions": 8, "walks": 4, "length": 8, "window": 2}
SMALL: dict[str, dict[str, Any]] = {
    **dict.fromkeys(("pwa", "pwa-controlled", "cane", "wane", "cene", "dmte"), NEURAL),
    **{name: NEURAL for name in METHODS if name.endswith(("-text", "-mlp")) and name[0] in "cwp"},
    **dict.fromkeys(("vhe", "vhe-one-scale", "vhe-texts"), GRAPH),
    "pair-vhe": {**PAIR, "near_pairs": 8, "threads": 1},
    "pair-vhe-paper": {**PAIR, "epochs": 0.0},
    "mmb": {"blocks": 3, "steps": 5},
    "line": {"dimensions": 8, "passes": 5},
    "deepwalk": WALKS,
    "node2vec": WALKS,
    "tadw": {"dimensions": 8},
    "vgae": {"epochs": 5},
}
WITH_GENSIM = {"deepwalk", "node2vec", "naive-vae"}


@pytest.fixture(scope="module")
def network() -> TextNetwork:
    """Sorted links, mostly within a topic: the rows of lines and links are the same."""
    rng = np.random.default_rng(3)
    i, j = np.triu_indices(VERTICES, 1)
    drawn = rng.random(len(i)) < np.where(i % TOPICS == j % TOPICS, 0.4, 0.03)
    words = rng.integers(6, size=(VERTICES, 4))
    texts = [" ".join(f"t{k % TOPICS}w{w}" for w in row) for k, row in enumerate(words)]
    return TextNetwork(range(VERTICES), texts, np.stack([i[drawn], j[drawn]], axis=1))


def rewired(network: TextNetwork) -> TextNetwork:
    """Replace held-out edges by others at the same positions of the sorted list."""
    held_out = set(map(tuple, split_edges(network, RATIO, SEED)[1].pairs.tolist()))
    edges = [tuple(edge) for edge in network.edges.tolist()]
    for k, (i, j) in enumerate(edges):
        before = edges[k - 1] if k else (-1, 0)
        after = edges[k + 1] if k + 1 < len(edges) else (VERTICES, 0)
        others = [(i, other) for other in (j + 1, j - 1) if i < other < VERTICES]
        if (i, j) in held_out:
            edges[k] = next((edge for edge in others if before < edge < after), (i, j))
    return network.with_edges(np.array(edges))


def rewired_unseen(network: TextNetwork) -> TextNetwork:
    """Move every edge of an unseen vertex to another end."""
    seen = set(split_vertices(network, RATIO, SEED)[0].ids)
    edges = [
        (i, j) if {i, j} <= seen else (i, (j + 1) % VERTICES if (j + 1) % VERTICES != i else j)
        for i, j in network.edges.tolist()
        if {i, j} <= seen or i not in seen
    ]
    return network.with_edges(np.array(edges))


class Run:
    """An experiment with the arguments of ``fit``, the resulting scores and the test."""

    def __init__(
        self, name: str, task: str, protocol: str, network: TextNetwork, monkeypatch: Any
    ) -> None:
        self.fitted_on: list[TextNetwork] = []
        evaluate = link_module.evaluate

        def spying_make(name: str, seed: int, **settings: Any) -> Method:
            method = make(name, seed, **settings)
            fit = method.fit
            method.fit = lambda train: (self.fitted_on.append(train), fit(train))[1]  # type: ignore
            return method

        def spying_evaluate(method: Method, test: LinkTest) -> Any:
            vertices = np.arange(len(test.network))
            self.scores, self.test = method.score_matrix(vertices, vertices), test
            return evaluate(method, test)

        with monkeypatch.context() as patch:
            patch.setattr(experiment_module, "make", spying_make)
            patch.setattr(link_module, "evaluate", spying_evaluate)
            experiment = Experiment(task, "n", name, RATIO, protocol, SEED, settings_of(name))
            Evaluator(network).measure(experiment)


def settings_of(name: str) -> dict[str, Any]:
    if name == "naive-vae":
        from vhe.baselines.node2vec import Node2Vec

        return {"dimensions": 8, "epochs": 2, "structure": Node2Vec(**WALKS, p=1, q=1)}
    return SMALL.get(name, {})


def check_equal_scores(
    name: str, task: str, protocol: str, network: TextNetwork, monkeypatch: Any
) -> None:
    """Assert that other held-out edges change no score."""
    other = rewired_unseen(network) if task == "unseen" else rewired(network)
    first = Run(name, task, protocol, network, monkeypatch)
    second = Run(name, task, protocol, other, monkeypatch)
    moved = {*map(tuple, first.test.pairs)} ^ {*map(tuple, second.test.pairs)}
    assert len(moved) > len(first.test) / 2
    np.testing.assert_array_equal(first.scores, second.scores)


def check_reachable(
    name: str, task: str, protocol: str, network: TextNetwork, monkeypatch: Any
) -> None:
    """Assert that no held-out edge is reachable from the argument of ``fit``."""
    run = Run(name, task, protocol, network, monkeypatch)
    assert run.fitted_on
    train = run.test.train
    known = {frozenset(edge) for edge in train.edges.tolist()}
    held_out = {frozenset(edge) for edge in run.test.pairs.tolist()} - known
    for argument in run.fitted_on:
        given = {frozenset(edge) for edge in argument.edges.tolist()}
        assert given <= known, "fit is given held-out edges"
        found = held_out.intersection(pairs_in(argument))
        assert not found, f"fit can reach {len(found)} held-out edges"


def pairs_in(start: object) -> Iterator[frozenset[int]]:
    """Yield the pairs of vertex indices in all objects reachable from an object."""
    code = (type, ModuleType, FunctionType, BuiltinFunctionType)
    visited: dict[int, object] = {}
    queue: list[object] = [start]
    while queue:
        item = queue.pop()
        if id(item) in visited or isinstance(item, code):
            continue
        visited[id(item)] = item
        queue += gc.get_referents(item)
        if isinstance(item, np.ndarray):
            queue.append(item.base)  # a view holds the whole array
            if item.ndim == 2 and item.shape[1] == 2 and item.dtype.kind in "iu":
                yield from map(frozenset, item.tolist())
        elif isinstance(item, tuple | list) and [type(end) for end in item] == [int, int]:
            yield frozenset(item)


def unseen_methods() -> list[str]:
    """Return the methods that can embed unseen vertices."""
    applicable = []
    for name in METHODS:
        try:
            check_unseen(name, make(name, 0))
        except VHEError:
            continue
        applicable.append(name)
    return applicable


@pytest.fixture(autouse=True)
def _one_thread(one_thread: None) -> None:
    """Deterministic order of summation."""


@pytest.fixture
def optional_packages(request: pytest.FixtureRequest) -> None:
    if request.getfixturevalue("name") in WITH_GENSIM:
        pytest.importorskip("gensim")


CHECKS = [check_equal_scores, check_reachable]


@pytest.mark.usefixtures("optional_packages")
@pytest.mark.parametrize("protocol", ["clean", "lines"])
@pytest.mark.parametrize("name", METHODS)
def test_other_held_out_edges_change_no_score(name, protocol, network, monkeypatch) -> None:
    check_equal_scores(name, "link", protocol, network, monkeypatch)


@pytest.mark.usefixtures("optional_packages")
@pytest.mark.parametrize("name", METHODS)
def test_no_held_out_edge_is_reachable_from_fit(name, network, monkeypatch) -> None:
    check_reachable(name, "link", "clean", network, monkeypatch)


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("name", unseen_methods())
def test_links_of_unseen_vertices_do_not_leak(check, name, network, monkeypatch) -> None:
    check(name, "unseen", "clean", network, monkeypatch)


# Leaks that must be detected


class Leaking(CosineMethod):
    """Uses the whole network if it is reachable from the argument of ``fit``."""

    def fit(self, network: TextNetwork) -> "Leaking":
        self.network = network
        self.embedding_ = self.embed(network, getattr(network, "source", network))
        return self

    def add_vertices(self, texts: Any) -> "Leaking":
        return self

    @staticmethod
    def text(network: TextNetwork) -> np.ndarray:
        return np.array([[text.count(f"t{t}w") for t in range(TOPICS)] for text in network.texts])

    @staticmethod
    def spread(network: TextNetwork, links: np.ndarray) -> np.ndarray:
        adjacency = np.eye(len(network))
        adjacency[links[:, 0], links[:, 1]] = adjacency[links[:, 1], links[:, 0]] = 1
        return adjacency @ Leaking.text(network)

    def embed(self, train: TextNetwork, whole: TextNetwork) -> np.ndarray:
        raise NotImplementedError


class Training(Leaking):
    """Trains on all links."""

    def embed(self, train: TextNetwork, whole: TextNetwork) -> np.ndarray:
        return self.spread(whole, whole.links)


class Choosing(Leaking):
    """Chooses a setting on all links instead of validation links."""

    def embed(self, train: TextNetwork, whole: TextNetwork) -> np.ndarray:
        rows = self.spread(whole, train.links)
        i, j = whole.links.T
        best = (rows[i] * rows[j]).sum() / 1000  # grows with the scores of the links
        return np.hstack([rows, np.full((len(rows), 1), best)])


class Embedding(Leaking):
    """Trains on the training links and computes embeddings from all links."""

    def fit(self, network: TextNetwork) -> "Leaking":
        self.network = network
        return self

    @property
    def embedding_(self) -> np.ndarray:  # type: ignore[override]
        whole = getattr(self.network, "source", self.network)
        return self.spread(whole, whole.links)


LEAKS = [Training, Choosing, Embedding]
FOUND = "Arrays are not equal|held-out edges"


@pytest.fixture(params=LEAKS)
def leak(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Register a method that leaks if it can."""
    monkeypatch.setitem(METHODS, "leak", f"{__name__}:{request.param.__name__}")
    monkeypatch.setattr("vhe.runtime.plugins.import_module", _import_module(request.param))
    return "leak"


def _import_module(kind: type) -> Callable[[str], Any]:
    from importlib import import_module
    from types import SimpleNamespace

    here = SimpleNamespace(**{kind.__name__: kind})
    return lambda name: here if name == __name__ else import_module(name)


def test_a_leaking_method_passes_if_nothing_is_reachable(leak, network, monkeypatch) -> None:
    for check in CHECKS:
        check(leak, "link", "clean", network, monkeypatch)


@pytest.mark.parametrize("check", CHECKS)
def test_a_hidden_reference_is_detected(check, leak, network, monkeypatch) -> None:
    with_edges = TextNetwork.with_edges

    def hiding(self: TextNetwork, edges: Any, **changes: Any) -> TextNetwork:
        other = with_edges(self, edges, **changes)
        other.source = self  # type: ignore[attr-defined]
        return other

    monkeypatch.setattr(TextNetwork, "with_edges", hiding)
    with pytest.raises(AssertionError, match=FOUND):
        check(leak, "link", "clean", network, monkeypatch)


@pytest.mark.parametrize("check", CHECKS)
def test_an_evaluator_that_fits_on_all_edges_is_detected(check, leak, network, monkeypatch) -> None:
    def everything(network: TextNetwork, *how: Any) -> tuple[TextNetwork, LinkTest]:
        return network, split_edges(network, *how)[1]

    monkeypatch.setattr("vhe.data.splits.split_edges", everything)
    with pytest.raises(AssertionError, match=FOUND):
        check(leak, "link", "clean", network, monkeypatch)


@pytest.mark.parametrize("check", CHECKS)
def test_a_leak_of_unseen_vertices_is_detected(check, leak, network, monkeypatch) -> None:
    subnetwork = TextNetwork.subnetwork

    def hiding(self: TextNetwork, vertices: Any) -> TextNetwork:
        other = subnetwork(self, vertices)
        if len(other) < len(self):
            # in the order of the test: seen vertices first
            unseen = np.setdiff1d(np.arange(len(self)), vertices)
            other.source = subnetwork(self, np.concatenate([vertices, unseen]))  # type: ignore
        return other

    monkeypatch.setattr(TextNetwork, "subnetwork", hiding)
    with pytest.raises(AssertionError, match=FOUND):
        check(leak, "unseen", "clean", network, monkeypatch)
