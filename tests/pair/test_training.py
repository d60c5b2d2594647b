"""Training is a function of its seed, also when interrupted; validation links are held out."""

import copy
import math
import signal
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from vhe.config import PairVHEConfig
from vhe.data.network import TextNetwork
from vhe.data.splits import validation_links
from vhe.data.text import Corpus
from vhe.errors import VHEError
from vhe.pair import training
from vhe.pair.elbo import Terms
from vhe.pair.model import PairVAE
from vhe.pair.training import PairTrainer, shared_rows, train
from vhe.runtime import process_group
from vhe.runtime.loop import TrainingState

pytestmark = pytest.mark.usefixtures("one_thread")

STEPS, VALIDATE_EVERY = 12, 4
TERMS = {"bound", "reconstruction", "kl_linked", "kl_unlinked", "kl_edge", "link"}
SHAPES: dict[str, dict[str, Any]] = {
    "default": {},
    "paper": {
        "residual": False,
        "shared_posterior": False,
        "link_posterior": "mlp",
        "target": "max",
        "fixed_target": False,
        "near_pairs": 0,
        "warmup": 0,
        "decay": False,
        "structure_rate": 1e-3,
    },
    "text only": {"structure": "none", "shared_posterior": False, "decoder": "multinomial"},
}

Make = Callable[..., PairTrainer]
Report = Callable[[int, str | None], None]


@pytest.fixture
def make(network: TextNetwork, corpus: Corpus, pair_config: PairVHEConfig) -> Make:
    """Makes a new trainer of a new model; equal arguments give equal trainers."""

    def new(seed: int = 1, **changes: Any) -> PairTrainer:
        settings = {"steps": STEPS, "batch_size": 32, "warmup": 3} | changes
        config = pair_config.replace(**settings)
        links, validation = validation_links(network.links, config.validation, seed, 100)
        model = PairVAE(config, len(corpus.vocabulary), len(network), pi0=0.05)
        model.initialise(corpus, seed)
        return PairTrainer(model, corpus, links, validation, seed=seed)

    return new


class Memory:
    """A checkpoint in memory."""

    seconds = 1e9

    def __init__(self) -> None:
        self.saved: tuple[TrainingState, dict[str, Tensor]] | None = None

    def save(self, state: TrainingState, tensors: dict[str, Tensor]) -> None:
        copied = {name: tensor.detach().clone() for name, tensor in tensors.items()}
        self.saved = copy.deepcopy(state), copied


def run(trainer: PairTrainer, **options: Any) -> TrainingState:
    return train(trainer, **{"validate_every": VALIDATE_EVERY} | options)


def weights(trainer: PairTrainer) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in trainer.weights().items()}


def assert_same_bits(one: dict[str, Tensor], other: dict[str, Tensor]) -> None:
    assert one.keys() == other.keys()
    for name, value in one.items():
        assert torch.equal(value, other[name]), name


def without_seconds(state: TrainingState) -> list[dict[str, float]]:
    return [{k: v for k, v in record.items() if k != "seconds"} for record in state.history]


def press_ctrl_c(*steps: int) -> Report:
    """A report that interrupts each of these steps once."""
    remaining = set(steps)

    def report(step: int, note: str | None) -> None:
        if step in remaining:
            remaining.remove(step)
            signal.raise_signal(signal.SIGINT)

    return report


# --- reproducibility


@pytest.mark.parametrize("shape", SHAPES)
def test_the_same_seed_gives_the_same_bits(make: Make, shape: str) -> None:
    one, other, different = make(1, **SHAPES[shape]), make(1, **SHAPES[shape]), make(2)
    assert_same_bits(weights(one), weights(other))
    before = weights(one)
    states = [run(trainer) for trainer in (one, other)]
    assert_same_bits(weights(one), weights(other))
    assert without_seconds(states[0]) == without_seconds(states[1])
    assert not torch.equal(one.model.words.weight, different.model.words.weight)
    assert not torch.equal(one.model.words.weight, before["words.weight"])


@pytest.mark.parametrize(
    ("shape", "stop"),
    [("default", 1), ("default", VALIDATE_EVERY), ("default", STEPS), ("paper", 6)],
)
@pytest.mark.parametrize("patience", [None, 100])
def test_a_resumed_training_ends_as_an_uninterrupted_one(
    make: Make, shape: str, stop: int, patience: int | None
) -> None:
    whole = make(**SHAPES[shape])
    uninterrupted = run(whole, patience=patience)

    checkpoint = Memory()
    first = make(**SHAPES[shape])
    stopped = run(first, patience=patience, report=press_ctrl_c(stop), checkpoint=checkpoint)
    assert stopped.step == stop
    assert stopped.interrupted

    second = make(**SHAPES[shape])
    ended = run(second, patience=patience, resume=checkpoint.saved)
    assert (ended.step, ended.stopped) == (STEPS, "")
    assert_same_bits(weights(second), weights(whole))
    assert without_seconds(ended) == without_seconds(uninterrupted)
    assert (ended.best_step, ended.best_score) == (
        uninterrupted.best_step,
        uninterrupted.best_score,
    )


def test_a_training_that_is_interrupted_repeatedly(make: Make) -> None:
    whole = make(steps=5)
    run(whole)
    checkpoint = Memory()
    for interruptions in range(9):  # noqa: B007
        trainer = make(steps=5)
        state = run(
            trainer,
            report=press_ctrl_c(*range(1, 99)),
            checkpoint=checkpoint,
            resume=checkpoint.saved,
        )
        if state.stopped == "":
            break
    assert interruptions == 5
    assert_same_bits(weights(trainer), weights(whole))


def test_a_training_that_crashed_continues_from_the_last_checkpoint(make: Make) -> None:
    whole = make()
    run(whole)

    def crash(step: int, note: str | None) -> None:
        if step == 7:
            raise MemoryError

    checkpoint = Memory()
    checkpoint.seconds = 0
    with pytest.raises(MemoryError):
        run(make(), report=crash, checkpoint=checkpoint)
    assert checkpoint.saved is not None
    assert checkpoint.saved[0].step == 6
    second = make()
    run(second, resume=checkpoint.saved)
    assert_same_bits(weights(second), weights(whole))


def test_only_rank_0_writes_checkpoints(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint = Memory()
    trainer = make(steps=2)
    monkeypatch.setattr(process_group, "rank", lambda: 1)
    run(trainer, checkpoint=checkpoint)
    assert checkpoint.saved is None


def test_a_lost_peer_leaves_a_checkpoint(make: Make) -> None:
    checkpoint, trainer = Memory(), make()
    step = trainer.step

    def failing(number: int) -> dict[str, float]:
        if number == 3:
            raise process_group.PeerLostError("rank 1 has ended")
        return step(number)

    trainer.step = failing  # type: ignore[method-assign]
    with pytest.raises(process_group.PeerLostError):
        run(trainer, checkpoint=checkpoint)
    assert checkpoint.saved is not None
    assert checkpoint.saved[0].step == 3


# --- interruption


def test_ctrl_c_has_its_usual_effect_afterwards(make: Make) -> None:
    before = signal.getsignal(signal.SIGINT)
    run(make(steps=2), report=press_ctrl_c(1))
    assert signal.getsignal(signal.SIGINT) is before


def test_a_second_ctrl_c_ends_at_once(make: Make) -> None:
    def twice(step: int, note: str | None) -> None:
        if step == 2:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        run(make(), report=twice)
    assert signal.getsignal(signal.SIGINT) is before


def test_training_in_another_thread(make: Make) -> None:
    here, there = make(), make()
    thread = threading.Thread(target=run, args=(there,))
    thread.start()
    thread.join()
    run(here)
    assert_same_bits(weights(here), weights(there))


# --- pairs


def as_links(pairs: np.ndarray) -> set[tuple[int, int]]:
    return {(min(i, j), max(i, j)) for i, j in pairs.tolist()}


def test_validation_links_are_known_in_no_batch(make: Make) -> None:
    trainer = make()
    held_out = as_links(trainer.validation)
    assert len(held_out) >= 5
    drawn = set()
    for step in range(60):
        batch = trainer.batch(step)
        pairs = np.column_stack([batch.i, batch.j])
        drawn |= as_links(pairs)
        assert not held_out & as_links(pairs[batch.links == 1])
        assert not held_out & as_links(pairs[batch.known & (batch.links == 1)])
    assert not trainer.link_set.linked(*trainer.validation.T).any()
    assert held_out & drawn  # as near texts with an unknown edge


def test_near_pairs_are_nearest_texts_with_an_unknown_edge_unless_linked(make: Make) -> None:
    trainer = make()
    count, near = trainer.config.near_pairs, as_links(trainer.near)
    known, first = 0, []
    for step in range(20):
        batch, sampled = trainer.batch(step), trainer.sampler.batch(step)
        assert len(batch) == len(sampled) + count
        pairs = np.column_stack([batch.i, batch.j])[-count:]
        assert as_links(pairs) <= near
        linked = trainer.link_set.linked(*pairs.T)
        assert (batch.known[-count:] == linked).all()
        assert (batch.links[-count:] == linked).all()
        known += int(linked.sum())
        first.append(pairs[:, 0] < pairs[:, 1])
        for name in ("i", "j", "links", "known"):
            start = getattr(batch, name)[: len(sampled)]
            np.testing.assert_array_equal(start, getattr(sampled, name))
    assert 0 < known < 20 * count
    assert 0.3 < np.mean(first) < 0.7  # either end may be the first
    assert len(make(near_pairs=0).batch(0)) == len(make().sampler.batch(0))


def test_near_texts_are_those_with_the_largest_cosines(make: Make) -> None:
    trainer = make()
    words, corpus = trainer.model.words.weight.detach().numpy(), trainer.corpus
    codes = []
    for vertex in range(len(corpus)):
        tokens = corpus.tokens[corpus.offsets[vertex] : corpus.offsets[vertex + 1]].tolist()
        u = sum((1 + math.log(tokens.count(t))) * words[t] for t in set(tokens))
        codes.append(u / np.linalg.norm(u))
    centred = np.array(codes) - np.mean(codes, axis=0)
    centred /= np.linalg.norm(centred, axis=1, keepdims=True)
    cosine = centred @ centred.T - 2 * np.eye(len(corpus))
    expected = {
        (min(i, j), max(i, j))
        for i in range(len(corpus))
        for j in np.argsort(-cosine[i])[:10].tolist()
        if cosine[i, j] > 0
    }
    assert as_links(trainer.near) == expected


def test_empty_texts_are_near_no_text(network: TextNetwork, pair_config: PairVHEConfig) -> None:
    texts = ["", "", *network.texts[2:]]
    corpus = Corpus.build(texts, min_count=1, max_words=16)
    model = PairVAE(pair_config, len(corpus.vocabulary), len(corpus), pi0=0.05)
    model.initialise(corpus, 0)
    trainer = PairTrainer(model, corpus, network.links, network.links[:0], seed=0)
    assert len(trainer.near)
    assert not np.isin(trainer.near, [0, 1]).any()


def test_training_does_not_depend_on_the_validation_links(make: Make) -> None:
    one, other, none = make(), make(), make()
    other.validation = np.array([[0, 1], [2, 3]])
    none.validation = np.zeros((0, 2), dtype=np.int64)
    states = [run(trainer) for trainer in (one, other, none)]
    assert_same_bits(weights(one), weights(other))
    assert_same_bits(weights(one), weights(none))
    scores = [[r.get("validation_auc") for r in state.history] for state in states]
    assert scores[0] != scores[1]
    assert scores[2] == [None] * len(scores[2])


def test_the_validation_score_is_that_of_the_codes(make: Make) -> None:
    trainer = make()
    run(trainer)
    vertices = np.unique(trainer.validation)
    codes = training.embedding_of(
        trainer.model, trainer.corpus, trainer.link_set, vertices, contexts=4, seed=1
    )
    rows = np.searchsorted(vertices, trainer.validation)
    assert trainer.validate() == training.ranking_auc(codes, rows)


# --- the last weights, or the best


def score_by_step(trainer: PairTrainer, scores: dict[int, float]) -> Report:
    """Let validation give the score of each step, 0 elsewhere; returns a report that counts."""
    step = [0]

    def report(number: int, note: str | None) -> None:
        step[0] = number + 1

    def validate() -> float:
        return scores.get(step[0], 0.0)

    trainer.validate = validate  # type: ignore[method-assign]
    return report


def test_without_patience_the_last_weights_remain(make: Make) -> None:
    seen: dict[int, dict[str, Tensor]] = {}
    trainer = make()
    count = score_by_step(trainer, {0: 0.9})

    def report(step: int, note: str | None) -> None:
        count(step, note)
        seen[step] = weights(trainer)

    state = run(trainer, report=report)
    assert (state.step, state.stopped) == (STEPS, "")
    assert_same_bits(weights(trainer), seen[STEPS])


@pytest.mark.parametrize("patience", [1, 2])
def test_with_patience_training_stops_and_the_best_weights_are_restored(
    make: Make, patience: int
) -> None:
    seen: dict[int, dict[str, Tensor]] = {}
    trainer = make(steps=40)
    scores = {0: 0.5, 2: 0.4, 4: 0.7, 6: 0.7, 8: 0.6, 10: 0.9} if patience == 2 else {0: 0.9}
    count = score_by_step(trainer, scores)

    def report(step: int, note: str | None) -> None:
        count(step, note)
        seen[step] = weights(trainer)

    state = run(trainer, validate_every=2, patience=patience, report=report)
    best = {1: 0, 2: 4}[patience]  # an equal score is no improvement
    assert (state.best_step, state.step) == (best, best + 2 * patience)
    assert state.stopped == f"no improvement since step {best}"
    assert_same_bits(weights(trainer), seen[best])
    assert not torch.equal(weights(trainer)["words.weight"], seen[state.step]["words.weight"])


# --- values that are not finite


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_loss_that_is_not_finite(make: Make, bad: float) -> None:
    trainer, calls = make(), [0]
    loss = trainer.model.loss

    def failing(*arguments: Any) -> Terms:
        terms = loss(*arguments)
        calls[0] += 1
        return Terms(terms | {"bound": terms["bound"] * bad}) if calls[0] == 10 else terms

    trainer.model.loss = failing  # type: ignore[method-assign]
    seen: dict[int, dict[str, Tensor]] = {}
    state = run(trainer, report=lambda step, note: seen.update({step: weights(trainer)}))
    assert state.stopped == "the loss was not finite at step 10"
    assert (state.step, state.best_step) == (9, 8)
    assert [r["step"] for r in state.history] == [0, 4, 8]
    assert_same_bits(weights(trainer), seen[8])


@pytest.mark.parametrize("step", [6, 7])  # the 8th step is followed by a validation
def test_a_gradient_that_is_not_finite(make: Make, step: int) -> None:
    trainer, calls = make(), [0]

    def spoil(gradient: Tensor) -> Tensor:
        calls[0] += 1
        return gradient * math.nan if calls[0] == step + 1 else gradient

    trainer.model.words.weight.register_hook(spoil)
    state = run(trainer)
    assert "not finite" in state.stopped
    assert state.step <= step + 1
    assert all(value.isfinite().all() for value in weights(trainer).values())
    assert state.best_step <= step


# --- the record


@pytest.mark.parametrize("shape", SHAPES)
def test_the_history_has_every_term(make: Make, shape: str) -> None:
    state = run(make(steps=10, **SHAPES[shape]))
    assert [record["step"] for record in state.history] == [0, 4, 8, 10]
    assert state.history[0].keys() == {"step", "seconds", "validation_auc"}
    for record in state.history[1:]:
        assert record.keys() == TERMS | {"step", "seconds", "validation_auc"}
        assert all(math.isfinite(value) for value in record.values())
        parts = record["kl_linked"] + record["kl_unlinked"] + record["kl_edge"]
        assert record["bound"] == pytest.approx(record["reconstruction"] - parts, rel=1e-4)
        assert min(record["kl_linked"], record["kl_unlinked"], record["kl_edge"]) >= 0
        assert record["link"] <= 0


def test_a_record_is_the_mean_since_the_last_validation(make: Make) -> None:
    trainer = make(steps=10)
    found: list[dict[str, float]] = []
    step = trainer.step

    def recorded(number: int) -> dict[str, float]:
        found.append(step(number))
        return found[-1]

    trainer.step = recorded  # type: ignore[method-assign]
    state = run(trainer)
    for record, part in zip(state.history[1:], (found[:4], found[4:8], found[8:]), strict=True):
        for name in TERMS:
            assert record[name] == pytest.approx(np.mean([terms[name] for terms in part]))


def test_every_step_is_reported(make: Make) -> None:
    reported: list[tuple[int, str | None]] = []
    run(make(steps=5), report=lambda step, note: reported.append((step, note)))
    assert list(dict.fromkeys(step for step, _ in reported)) == [0, 1, 2, 3, 4, 5]
    notes = [(step, note) for step, note in reported if note is not None]
    assert [step for step, _ in notes] == [0, 4, 5]
    assert all(note.startswith("validation AUC ") for _, note in notes)


# --- optimisation


def test_epochs_and_steps_are_both_lower_bounds(make: Make) -> None:
    for epochs, steps in ((0.0, 3), (2.0, 3), (2.0, 500)):
        trainer = make(epochs=epochs, steps=steps, batch_size=32, negatives=1)
        assert trainer.steps == max(steps, math.ceil(epochs * len(trainer.links) / 16))


def test_the_rates_grow_linearly_and_decay_as_a_cosine(make: Make) -> None:
    trainer = make(steps=11, warmup=3)
    rates = [trainer.rate(step) for step in range(11)]
    expected = [0.25, 0.5, 0.75] + [(1 + math.cos(math.pi * k / 8)) / 2 for k in range(8)]
    assert rates == pytest.approx(expected)
    constant = make(steps=11, warmup=0, decay=False)
    assert [constant.rate(step) for step in range(11)] == [1.0] * 11
    assert make(steps=2, warmup=20).rate(1) < 1


def test_each_group_of_weights_has_its_rate(make: Make) -> None:
    """Adam's first step moves every weight that has a gradient by the learning rate."""
    rates = {"learning_rate": 1e-3, "structure_rate": 0.05}
    trainer = make(warmup=3, **rates)
    before = weights(trainer)
    trainer.step(0)
    after = weights(trainer)
    table = (after["structure.weight"] - before["structure.weight"]).abs()
    words = (after["words.weight"] - before["words.weight"]).abs()
    layer = (after["integrator.means.bias"] - before["integrator.means.bias"]).abs()
    assert float(table.max()) == pytest.approx(0.05 / 4, rel=1e-3)  # the first of 4 warm-up steps
    assert float(words.max()) == pytest.approx(1e-3 / 4, rel=1e-2)
    assert float(layer.max()) == pytest.approx(1e-3 / 4, rel=1e-2)
    batch = trainer.batch(0)
    used = np.union1d(batch.i, batch.j)
    assert table.any(dim=1).nonzero().squeeze(1).tolist() == used.tolist()
    trainer.step(1)  # dense Adam: the momentum moves all rows that were ever used
    moved = (weights(trainer)["structure.weight"] - after["structure.weight"]).any(dim=1)
    assert set(used.tolist()) <= set(moved.nonzero().squeeze(1).tolist())


@pytest.mark.parametrize("shape", SHAPES)
def test_training_raises_the_bound(make: Make, shape: str) -> None:
    """If the bound is all that is optimised."""
    settings = {"steps": 40, "batch_size": 64, "learning_rate": 0.01, "link_weight": 0.0}
    history = run(make(**SHAPES[shape] | settings, validation=0.0), validate_every=5).history
    bounds = [record["bound"] for record in history[1:]]
    assert bounds[-1] > bounds[0] + 0.1 * abs(bounds[0])
    assert np.polyfit(range(len(bounds)), bounds, 1)[0] > 0


def test_training_pulls_linked_codes_together(make: Make) -> None:
    """With λ near 1 the codes of linked vertices get nearer, with λ = 0 they do not."""
    found = []
    for homophily in (0.0, 0.99):
        trainer = make(steps=40, homophily=homophily, structure_rate=0.1)

        def cosine(trainer: PairTrainer = trainer) -> float:
            i, j = trainer.links.T
            codes = training.embedding_of(
                trainer.model,
                trainer.corpus,
                trainer.link_set,
                np.arange(len(trainer.corpus)),
                contexts=2,
                seed=0,
            )
            unit = codes / np.linalg.norm(codes, axis=1, keepdims=True)
            return float((unit[i] * unit[j]).sum(axis=1).mean())

        before = cosine()
        run(trainer)
        found.append(cosine() - before)
    assert found[1] > found[0] + 0.1


def test_buckets_do_not_change_a_step(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = make(), make()
    first = one.step(0)
    monkeypatch.setattr("vhe.pair.model.BUCKET_AREA", 300)
    parts = other.parts(other.batch(0))
    assert len(parts) > 3
    assert sum(len(part.i) for part in parts) == len(other.batch(0))
    second = other.step(0)
    for name in TERMS - {"bound", "reconstruction"}:  # those without noise
        assert first[name] == pytest.approx(second[name], rel=1e-3)


def test_texts_that_do_not_fit_into_memory_are_refused(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "physical_memory", lambda: 1000)
    with pytest.raises(VHEError, match="lower max_words"):
        make()


# --- the share of a process


@pytest.mark.parametrize("pairs", [1, 2, 7, 30])
def test_shares_are_disjoint_and_sum_to_one(monkeypatch: pytest.MonkeyPatch, pairs: int) -> None:
    work = np.random.default_rng(0).integers(1, 99, size=pairs)
    monkeypatch.setattr(process_group, "size", lambda: 3)
    found = []
    for rank in range(3):
        monkeypatch.setattr(process_group, "rank", lambda rank=rank: rank)
        found.append(shared_rows(work))
    assert sum(share for _, share in found) == pytest.approx(1)
    rows = np.concatenate([rows for rows, _ in found])
    if pairs >= 3:
        assert sorted(rows) == list(range(pairs))
    else:
        assert sorted(rows) == sorted(list(range(pairs)) * 3)
    if pairs == 30:
        loads = [work[rows].sum() for rows, _ in found]
        assert max(loads) < 1.3 * min(loads)
