"""Training of the word vectors: links are masked while they are predicted, and runs can resume."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from vhe.config import VHEConfig
from vhe.data.network import TextNetwork
from vhe.data.splits import validation_links
from vhe.data.text import Corpus
from vhe.graph import training
from vhe.graph.contrastive import contrastive_loss
from vhe.graph.model import TextNeighbours
from vhe.graph.neighbours import text_neighbours
from vhe.graph.posterior import ITERATIONS
from vhe.graph.prior import GraphPrior
from vhe.graph.training import CrossFitTrainer, GraphTrainer
from vhe.graph.validation import win_rates
from vhe.text.codes import TextCodes
from vhe.text.lsa import random_word_vectors

Make = Callable[..., GraphTrainer]


@pytest.fixture
def make(network: TextNetwork, corpus: Corpus, config: VHEConfig) -> Make:
    """Makes a trainer with random word vectors."""
    links, validation = validation_links(network.links, 0.2, 0, 256)
    words = torch.zeros(len(corpus.vocabulary) + 1, 16)
    words[1:] = torch.from_numpy(random_word_vectors(len(corpus.vocabulary), 16, 0))
    codes = TextCodes(corpus)
    near = text_neighbours(codes(words).numpy(), codes.empty)

    def trainer(
        links: np.ndarray = links, neighbours: TextNeighbours = near, **changes: float
    ) -> GraphTrainer:
        prior = GraphPrior(
            links, corpus.lengths, neighbours, link_strength=1.0, text_knn_weight=1.0
        )
        settings = config.replace(step_links=16, **changes)
        return GraphTrainer(settings, words, codes, prior, validation, seed=0)

    return trainer


@pytest.fixture(params=["whole graph", "region"])
def part(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Steps that solve for all codes, and steps that solve for a part of a large graph."""
    if request.param == "region":
        monkeypatch.setattr(training, "WHOLE_GRAPH", 10)
    return str(request.param)


def test_means_are_those_of_the_posterior_without_the_masked_links(make: Make, part: str) -> None:
    trainer = make()
    vertices = np.array([3, 8, 40])
    masked = np.flatnonzero(np.isin(trainer.prior.links, vertices).any(axis=1))
    assert len(masked) > 3
    with torch.no_grad():
        codes = trainer.codes(trainer.words)
        exact, other = (
            trainer.prior.posterior(mask).mean(codes, ITERATIONS)[vertices]
            for mask in (masked, None)
        )
        found = trainer.means(vertices, masked)
    # few iterations, and in a region the codes outside of it are approximate
    assert (found - exact).norm() < 0.1 * (other - exact).norm()


def test_a_small_region_approximates_the_posterior(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    vertices, masked = np.array([3, 8, 40]), np.array([0, 5, 7])
    with torch.no_grad():
        exact = make().means(vertices, masked)
        monkeypatch.setattr(training, "WHOLE_GRAPH", 10)
        errors = []
        for halo in (0, 40):
            monkeypatch.setattr(training, "HALO", halo)
            errors.append(float((make().means(vertices, masked) - exact).norm() / exact.norm()))
    assert errors[1] < errors[0] < 0.2


def test_a_masked_link_does_not_influence_the_means(make: Make, part: str) -> None:
    """The last two links are exchanged so that all degrees stay: only their masking hides them.

    In a region, the codes outside are those of the start, which has read all links: what they pass
    on is bounded here.
    """
    links = make().prior.links
    (a, b), (c, d) = links[-2:].tolist()
    assert len({a, b, c, d}) == 4
    exchanged = links.copy()
    exchanged[-2:] = [[a, d], [c, b]]
    masked, vertices = np.arange(len(links))[-2:], np.array([a, b, c, d])
    trainers = [make(links=links), make(links=exchanged)]
    with torch.no_grad():
        hidden = [trainer.means(vertices, masked) for trainer in trainers]
        shown = [trainer.means(vertices) for trainer in trainers]
    influence, visible = ((one - other).norm() for one, other in (hidden, shown))
    assert visible > 0.1
    assert influence <= (1e-5 if part == "whole graph" else 0.02 * visible)


def test_a_step_masks_exactly_the_links_that_it_predicts(
    make: Make, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = make()
    predicted: list[set[tuple[int, ...]]] = []
    masks: list[set[tuple[int, ...]]] = []
    means = trainer.means

    def masked_means(vertices: np.ndarray, masked: np.ndarray) -> torch.Tensor:
        masks.append({tuple(link) for link in trainer.prior.links[masked].tolist()})
        trainer.asked = vertices  # type: ignore[attr-defined]
        return means(vertices, masked)

    def loss(codes: torch.Tensor, links: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        ends = trainer.asked[links.numpy()]  # type: ignore[attr-defined]
        predicted.append({tuple(link) for link in ends.tolist()})
        return contrastive_loss(codes, links, scale)

    monkeypatch.setattr(trainer, "means", masked_means)
    monkeypatch.setattr(training, "contrastive_loss", loss)
    for number in range(3):
        trainer.step(number)
    assert masks == predicted
    assert [len(mask) for mask in masks] == [16] * 3


def test_steps_reduce_the_loss_and_change_words_and_scale(make: Make, part: str) -> None:
    trainer = make(learning_rate=0.02)
    words, scale = trainer.words.detach().clone(), trainer.log_scale.item()
    assert scale == pytest.approx(np.log(training.INITIAL_SCALE))
    losses = [trainer.step(number)["contrastive"] for number in range(25)]
    assert np.mean(losses[-5:]) < np.mean(losses[:5]) - 0.2
    assert trainer.log_scale.item() != scale
    assert (trainer.words[1:] != words[1:]).any(dim=1).all()
    assert torch.equal(trainer.words[0].detach(), words[0])  # padding


def test_a_loss_that_is_not_finite_changes_nothing(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = make()
    before = trainer.words.detach().clone()
    monkeypatch.setattr(
        training, "contrastive_loss", lambda codes, links, scale: codes.sum() * float("nan")
    )
    assert np.isnan(trainer.step(0)["contrastive"])
    assert torch.equal(trainer.words.detach(), before)
    assert trainer.optimiser_state() == {}


def test_a_resumed_trainer_continues_with_the_same_bits(
    make: Make, part: str, one_thread: None
) -> None:
    whole = make()
    for number in range(6):
        whole.step(number)
    first = make()
    for number in range(3):
        first.step(number)
    resumed = make()
    resumed.load_weights({name: value.clone() for name, value in first.weights().items()})
    resumed.load_optimiser_state(
        {name: value.clone() for name, value in first.optimiser_state().items()}
    )
    for number in range(3, 6):
        resumed.step(number)
    for name, value in whole.weights().items():
        assert torch.equal(resumed.weights()[name], value)
    for name, value in whole.optimiser_state().items():
        assert torch.equal(resumed.optimiser_state()[name], value)


def test_validation_is_the_ranking_of_held_out_links(make: Make) -> None:
    trainer = make()
    vertices, rows = np.unique(trainer.validation, return_inverse=True)
    with torch.no_grad():
        codes = trainer.means(vertices).numpy()
    assert trainer.validate().tolist() == win_rates(codes, rows.reshape(-1, 2)).tolist()
    trainer.validation = trainer.validation[:0]
    assert not len(trainer.validate())
    assert CrossFitTrainer([trainer]).validate() is None


def test_folds_are_trained_in_step_and_validated_together(make: Make) -> None:
    links = make().prior.links
    trainer = CrossFitTrainer([make(links=links[20:]), make(links=links[:-20])])
    alone = make(links=links[:-20])
    trainer.folds[0].validation = trainer.folds[0].validation[:3]  # folds of different sizes
    losses = trainer.step(0), trainer.step(1)
    assert losses[0]["contrastive"] != alone.step(0)["contrastive"]  # the mean over both
    alone.step(1)
    first, second = trainer.words()
    assert torch.equal(second, alone.words)
    assert not torch.equal(first, second)
    rates = [*trainer.folds[0].validate(), *trainer.folds[1].validate()]
    assert trainer.validate() == pytest.approx(np.mean(rates))


def test_folds_are_saved_and_restored_each_on_its_own(make: Make, one_thread: None) -> None:
    links = make().prior.links

    def trainer() -> CrossFitTrainer:
        return CrossFitTrainer([make(links=links[20:]), make(links=links[:-20])])

    whole = trainer()
    whole.step(0)
    resumed = trainer()
    resumed.load_weights({name: value.clone() for name, value in whole.weights().items()})
    resumed.load_optimiser_state(
        {name: value.clone() for name, value in whole.optimiser_state().items()}
    )
    whole.step(1)
    resumed.step(1)
    for expected, found in zip(whole.words(), resumed.words(), strict=True):
        assert torch.equal(expected, found)


def test_small_networks_mask_at_most_a_third_of_their_links(make: Make) -> None:
    links = make().prior.links[:9]
    assert len(make(links=links).batches.numbers(0)) == 3
    assert len(make(links=links[:1]).batches.numbers(0)) == 1
