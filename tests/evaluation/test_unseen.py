"""Unseen vertices: inductive methods get texts only, transductive ones no links either."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vhe.baselines.tfidf import TFIDF
from vhe.cli import main
from vhe.data.network import TextNetwork
from vhe.data.readers.tables import write_table
from vhe.data.splits import UnseenTest, split_vertices
from vhe.errors import VHEError
from vhe.estimators import load_model
from vhe.evaluation.link import evaluate
from vhe.evaluation.methods import make
from vhe.evaluation.unseen import check_unseen, fit_unseen
from vhe.predict.scoring import CosineMethod

TOPICS = 5
PAIR = {"word_dim": 16, "structure_dim": 16, "latent_dim": 16, "hidden_dim": 16, "kernels": 8}
PAIR |= {"kernel_width": 3, "min_count": 1, "steps": 20, "epochs": 0.0, "contexts": 4}
SETTINGS: dict[str, dict[str, Any]] = {
    "vhe": {"latent_dim": 16, "min_count": 1, "max_steps": 10, "threads": 1},
    "pair-vhe": PAIR | {"threads": 1},
    "pair-vhe-paper": PAIR,
}


def topics(texts: Sequence[str]) -> np.ndarray:
    """Count the words of each topic in each text."""
    return np.array([[text.count(f"t{t}w") for t in range(TOPICS)] for text in texts], dtype=float)


class Inductive(CosineMethod):
    """Embeds new vertices."""

    def fit(self, network: TextNetwork) -> "Inductive":
        self.network = network
        self.embedding_ = topics(network.texts)
        return self

    def add_vertices(self, texts: dict) -> "Inductive":
        self.added = list(texts)
        self.embedding_ = np.concatenate([self.embedding_, topics(list(texts.values()))])
        return self


class Structure(CosineMethod):
    """Embeds vertices of the fitted network only."""

    def fit(self, network: TextNetwork) -> "Structure":
        self.embedding_ = np.ones((len(network), 2))
        return self


@pytest.fixture(scope="module", params=["clean", "lines"])
def test_(request, network: TextNetwork) -> UnseenTest:
    return split_vertices(network, 0.6, seed=1, protocol=request.param)[1]


def test_methods_are_fitted_on_the_training_network_and_score_all_vertices(test_) -> None:
    method = Inductive()
    fitted = fit_unseen(method, test_)
    assert method.network is test_.train
    assert np.array_equal(fitted.embedding_, topics(test_.network.texts))
    scores = evaluate(fit_unseen(Inductive(), test_), test_)
    assert scores.auc > 0.8
    assert scores.edges == len(test_)
    assert scores.protocol == test_.protocol


def test_vertices_are_added_in_order(test_) -> None:
    method = Inductive()
    fit_unseen(method, test_)
    assert tuple(method.added) == test_.unseen.ids


def test_diffused_text_sees_all_texts_but_only_edges_of_seen_vertices(test_, monkeypatch) -> None:
    from vhe.baselines.diffused_text import DiffusedText

    seen: list[TextNetwork] = []
    fit = DiffusedText.fit
    monkeypatch.setattr(DiffusedText, "fit", lambda self, net: seen.append(net) or fit(self, net))
    assert evaluate(fit_unseen(make("diffused-text", 0), test_), test_).auc > 0.7
    assert seen[0].texts == test_.network.texts
    assert seen[0].edges.max() < len(test_.train)
    assert np.array_equal(seen[0].edges, test_.train.edges)


def test_tfidf_scores_as_on_the_whole_network(test_) -> None:
    pairs = test_.pairs[:5]
    ours = fit_unseen(TFIDF(), test_).score_indices(pairs[:, 0], pairs[:, 1])
    whole = TFIDF().fit(test_.network).score_indices(pairs[:, 0], pairs[:, 1])
    assert np.array_equal(ours, whole)


def test_a_method_that_is_not_inductive_is_refused(test_) -> None:
    with pytest.raises(VHEError, match="Structure cannot embed unseen vertices"):
        evaluate(fit_unseen(Structure(), test_), test_)
    with pytest.raises(VHEError, match="my-method cannot embed"):
        check_unseen("my-method", Structure())


@pytest.mark.parametrize("name", SETTINGS)
def test_vhe_embeds_unseen_vertices_as_the_command_adds_them(
    name: str, test_: UnseenTest, tmp_path: Path
) -> None:
    """The evaluated embedding equals that of a model that is saved, loaded and extended."""
    settings = SETTINGS[name]
    method = fit_unseen(make(name, 4, **settings), test_)
    make(name, 4, **settings).fit(test_.train).save(tmp_path / "model")
    unseen = test_.unseen
    write_table(tmp_path / "new.csv", {"id": unseen.ids, "text": unseen.texts})
    vertices, out = str(tmp_path / "new.csv"), str(tmp_path / "grown")
    assert main(["add", str(tmp_path / "model"), "--vertices", vertices, "--out", out]) == 0
    added = load_model(out)
    assert added.network_.ids == method.network_.ids == test_.network.ids
    np.testing.assert_array_equal(added.embedding_, method.embedding_)
    np.testing.assert_array_equal(added.embedding_std_, method.embedding_std_)
    auc = evaluate(method, test_).auc
    assert evaluate(added, test_).auc == auc
    assert auc > (0.3 if name == "pair-vhe-paper" else 0.7)  # few steps from random words
