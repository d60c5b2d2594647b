"""Training is a function of its seed, whatever interrupts it; the validation links only judge."""

import math
import signal
import threading
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from vhe.config import VHEConfig
from vhe.data.network import TextNetwork
from vhe.data.splits import validation_links
from vhe.data.text import Corpus
from vhe.errors import VHEError
from vhe.graph import local_posterior
from vhe.graph import posterior as joint_structure
from vhe.pair import training as trainer_module
from vhe.pair.elbo import ElboTerms
from vhe.pair.model import PairVAE
from vhe.pair.training import Trainer, TrainingState, ranking_auc
from vhe.storage import training_state as kept
from vhe.storage.folder import write_folder

pytestmark = pytest.mark.usefixtures("one_thread")

STEPS, CHECK_EVERY = 12, 4
TERMS = {"bound", *(f.name for f in fields(ElboTerms))}
SHAPES: dict[str, dict[str, Any]] = {
    "default": {},
    "learned": {"structure": "learned"},
    "unshared": {"structure": "none", "shared_posterior": False, "decoder": "multinomial"},
}

Make = Callable[..., Trainer]


@pytest.fixture
def make(network: TextNetwork, corpus: Corpus, config: VHEConfig) -> Make:
    """A new trainer of a new model; the same arguments make the same one."""

    def new(
        seed: int = 1,
        folder: Path | None = None,
        report: Any = None,
        writes: bool = True,
        **changes: Any,
    ):
        settings = {"steps": STEPS, "validate_every": CHECK_EVERY, "batch_size": 32} | changes
        chosen = config.replace(**settings)
        links, validation = validation_links(network.links, chosen.validation, seed, 100)
        model = PairVAE(chosen, len(corpus.vocabulary), len(network), pi0=0.05)
        model.start(corpus, seed)
        options = {"writes": writes} | ({} if report is None else {"report": report})
        return Trainer(model, corpus, links, validation, seed=seed, folder=folder, **options)

    return new


def weights(trainer: Trainer) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in trainer.model.state_dict().items()}


def assert_same_bits(one: dict[str, Tensor], other: dict[str, Tensor]) -> None:
    assert one.keys() == other.keys()
    for name, value in one.items():
        assert torch.equal(value, other[name]), name


def timeless(state: TrainingState) -> list[dict[str, float]]:
    return [{k: v for k, v in record.items() if k != "seconds"} for record in state.history]


def press_ctrl_c(*at: int) -> Callable[[int, str | None], None]:
    """A report that interrupts each of these steps, once."""
    todo = set(at)

    def report(step: int, note: str | None) -> None:
        if step in todo:
            todo.remove(step)
            signal.raise_signal(signal.SIGINT)

    return report


# --- the same bits


@pytest.mark.parametrize("shape", SHAPES)
def test_the_same_seed_gives_the_same_bits(make: Make, shape: str) -> None:
    one, other, different = make(1, **SHAPES[shape]), make(1, **SHAPES[shape]), make(2)
    assert_same_bits(weights(one), weights(other))
    states = [trainer.run() for trainer in (one, other)]
    assert_same_bits(weights(one), weights(other))
    assert timeless(states[0]) == timeless(states[1])
    assert not torch.equal(one.model.words.weight, different.model.words.weight)


@pytest.mark.parametrize(
    ("shape", "stop"),
    [("default", 1), ("default", CHECK_EVERY), ("default", STEPS), ("learned", 6)],
)
def test_a_resumed_training_ends_as_an_undisturbed_one(
    make: Make, tmp_path: Path, shape: str, stop: int
) -> None:
    whole = make(**SHAPES[shape])
    undisturbed = whole.run()

    first = make(folder=tmp_path / "kept", report=press_ctrl_c(stop), **SHAPES[shape])
    stopped = first.run()
    assert stopped.step == stop
    assert stopped.stopped == f"interrupted at step {stop}"

    second = make(folder=tmp_path / "kept", **SHAPES[shape])
    second.resume()
    assert second.state.step == stop
    ended = second.run()
    assert ended.step == STEPS
    assert ended.stopped == ""
    assert_same_bits(weights(second), weights(whole))
    assert timeless(ended) == timeless(undisturbed)
    assert (ended.best_step, ended.best_auc) == (undisturbed.best_step, undisturbed.best_auc)


def test_a_resumed_training_of_a_large_network_ends_as_an_undisturbed_one(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where each step solves for a few vertices, what is known of the others is kept too."""
    monkeypatch.setattr(joint_structure, "WHOLE", 0)
    monkeypatch.setattr(local_posterior, "HALO", 5)
    test_a_resumed_training_ends_as_an_undisturbed_one(make, tmp_path, "default", 6)


AGAIN = SHAPES["learned"] | {"validation": 0.0, "steps": 5, "validate_every": 2}


def test_a_training_that_is_interrupted_again_and_again(make: Make, tmp_path: Path) -> None:
    whole = make(**AGAIN)
    whole.run()
    for attempt in range(9):
        trainer = make(folder=tmp_path, report=press_ctrl_c(*range(1, 99)), **AGAIN)
        if attempt:
            trainer.resume()
        if trainer.run().stopped == "":
            break
    assert attempt == 5
    assert_same_bits(weights(trainer), weights(whole))


@pytest.mark.parametrize("shape", ["default", "learned"])
def test_a_training_that_crashed_goes_on_from_what_was_kept_last(
    make: Make, tmp_path: Path, shape: str
) -> None:
    changes = SHAPES[shape] | {"validation": 0.0}  # which ends with the last weights
    whole = make(**changes)
    whole.run()

    def crash(step: int, note: str | None) -> None:
        if step == 7:
            raise MemoryError

    first = make(folder=tmp_path / "kept", report=crash, checkpoint_minutes=1e-9, **changes)
    with pytest.raises(MemoryError):
        first.run()
    second = make(folder=tmp_path / "kept", **changes)
    second.resume()
    assert second.state.step == 6
    second.run()
    assert_same_bits(weights(second), weights(whole))


def test_interrupted_just_when_it_would_have_stopped(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge(monkeypatch, {0: 0.5, 4: 0.6})  # and 0 ever after
    whole = make(patience=1)
    assert whole.run().step == 8
    make(patience=1, folder=tmp_path / "kept", report=press_ctrl_c(8)).run()
    second = make(patience=1, folder=tmp_path / "kept")
    second.resume()
    assert second.run().step == 8
    assert_same_bits(weights(second), weights(whole))


# --- what is kept, and what it may go on as


def test_nothing_is_written_without_a_folder(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    trainer = make(report=press_ctrl_c(3))
    trainer.run()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(VHEError, match="no folder"):
        trainer.resume()


def test_one_of_several_processes_writes(make: Make, tmp_path: Path) -> None:
    writer = make(folder=tmp_path / "kept")
    writer.run()
    before = (tmp_path / "kept" / "MANIFEST.json").read_bytes()
    reader = make(folder=tmp_path / "kept", writes=False)
    reader.resume()
    assert reader.state.step == STEPS
    reader.state = TrainingState()
    reader.run()
    assert (tmp_path / "kept" / "MANIFEST.json").read_bytes() == before


def test_the_seed_is_kept(make: Make, tmp_path: Path) -> None:
    make(41, folder=tmp_path / "kept").keep()
    assert kept.seed_of(tmp_path / "kept") == 41


def test_another_training_is_not_resumed(make: Make, tmp_path: Path) -> None:
    make(1, folder=tmp_path / "kept").keep()
    for other in (make(2, folder=tmp_path / "kept"), make(1, tmp_path / "kept", homophily=0.5)):
        before = weights(other)
        with pytest.raises(VHEError, match="other settings or another seed"):
            other.resume()
        assert_same_bits(weights(other), before)
    with pytest.raises(VHEError, match="no such training folder"):
        make(1, folder=tmp_path / "nothing").resume()
    write_folder(tmp_path / "model", {}, "model")
    with pytest.raises(VHEError, match="model folder"):
        make(1, folder=tmp_path / "model").resume()


@pytest.mark.parametrize("what", ["size", "links", "texts"])
def test_the_training_of_another_network_is_not_resumed(
    make: Make, network: TextNetwork, corpus: Corpus, tmp_path: Path, what: str
) -> None:
    kept = make(1, folder=tmp_path / "kept")
    kept.keep()
    links, other_corpus, n = kept.links, corpus, len(network)
    if what == "size":
        n += 1
        texts = [*network.texts, network.texts[0]]
        other_corpus = Corpus.build(texts, min_count=1, max_words=kept.config.max_words)
    elif what == "links":
        links = np.roll(links, 1, axis=0)
        links = np.column_stack([links[:, 0], np.roll(links[:, 1], 1)])
        links = links[links[:, 0] != links[:, 1]]
    else:
        other_corpus = replace(corpus, tokens=corpus.tokens[::-1].copy())
    model = PairVAE(kept.config, len(corpus.vocabulary), n, pi0=0.05)
    model.start(other_corpus, 1)
    other = Trainer(model, other_corpus, links, kept.validation, seed=1, folder=tmp_path / "kept")
    with pytest.raises(VHEError, match="another network"):
        other.resume()


# --- interruption


def test_ctrl_c_is_as_before_afterwards(make: Make) -> None:
    before = signal.getsignal(signal.SIGINT)
    make(steps=2, report=press_ctrl_c(1)).run()
    assert signal.getsignal(signal.SIGINT) is before


def test_a_second_ctrl_c_ends_at_once(make: Make) -> None:
    def twice(step: int, note: str | None) -> None:
        if step == 2:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        make(report=twice).run()
    assert signal.getsignal(signal.SIGINT) is before


def test_training_in_another_thread(make: Make) -> None:
    here, there = make(), make()
    thread = threading.Thread(target=there.run)
    thread.start()
    thread.join()
    here.run()
    assert_same_bits(weights(here), weights(there))


# --- the validation links


def test_validation_links_are_in_no_batch(make: Make) -> None:
    trainer = make()
    held_out = {tuple(sorted(link)) for link in trainer.validation.tolist()}
    assert len(held_out) >= 5
    for step in range(40):
        batch = trainer.sampler.batch(step)
        linked = np.column_stack([batch.i, batch.j])[batch.links == 1]
        assert not held_out & {tuple(sorted(pair)) for pair in linked.tolist()}
    assert not trainer.link_set.linked(*trainer.validation.T).any()


def test_validation_links_are_in_no_structure(make: Make, network: TextNetwork) -> None:
    """A structure embedding is the same whatever the validation links, and not with them in it."""
    trainer = make(text_knn_weight=1.0, link_strength=2.0)
    parts = {"model": trainer.model, "corpus": trainer.corpus, "seed": 1}

    def structure(links: np.ndarray, validation: np.ndarray) -> np.ndarray:
        Trainer(links=links, validation=validation, **parts)
        return trainer.model.structure.weight.detach().numpy().copy()

    without = structure(trainer.links, trainer.validation)
    np.testing.assert_array_equal(without, structure(trainer.links, trainer.validation[:1]))
    np.testing.assert_array_equal(without, structure(trainer.links, np.array([[0, 1]])))
    assert np.abs(without - structure(network.links, trainer.validation)).max() > 0.01


@pytest.mark.parametrize(
    ("told", "chosen"),
    [
        ({(2, 2): 0.9, (0, 2): 0.8, (2, 8): 0.904}, (2, 2)),  # stronger links are hardly better
        ({(2, 2): 0.9, (4, 2): 0.92, (4, 8): 0.93}, (4, 8)),
        ({(0, 2): 0.6, (0, 8): 0.7, (2, 8): 0.8}, (0, 8)),  # text_knn_weight comes first
    ],
)
def test_weights_of_links_are_those_that_tell_validation_links_best(
    told: dict[tuple[int, int], float],
    chosen: tuple[int, int],
    make: Make,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    used: list[tuple[float, float]] = []
    use = joint_structure.JointStructure.use

    def watched(self: Any, links: np.ndarray, text_knn_weight: float, link_strength: float) -> None:
        used.append((text_knn_weight, link_strength))
        use(self, links, text_knn_weight, link_strength)

    monkeypatch.setattr(joint_structure.JointStructure, "use", watched)
    monkeypatch.setattr(trainer_module, "ranking_auc", lambda *_: told.get(used[-1], 0.5))
    trainer = make()
    assert (trainer.state.text_knn_weight, trainer.state.link_strength) == chosen == used[-1]
    assert make(text_knn_weight=1.0, link_strength=3.0).state.link_strength == 3


def test_what_is_learned_does_not_depend_on_the_validation_links(make: Make) -> None:
    one, other, none = make(), make(), make()
    other.validation = np.array([[0, 1], [2, 3]])
    none.validation = np.zeros((0, 2), dtype=np.int64)
    states = [trainer.run() for trainer in (one, other, none)]
    terms = [[{k: r[k] for k in TERMS} for r in state.history[1:]] for state in states]
    assert terms[0] == terms[1] == terms[2]
    aucs = [[r.get("validation_auc") for r in state.history] for state in states]
    assert aucs[0] != aucs[1]
    assert aucs[2] == [None] * len(aucs[2])


def test_without_validation_links_the_last_weights_stay(make: Make) -> None:
    seen: dict[int, dict[str, Tensor]] = {}
    trainer = make(
        validation=0.0, patience=1, report=lambda step, note: seen.update({step: weights(trainer)})
    )
    state = trainer.run()
    assert (state.step, state.best_step, state.best_auc) == (STEPS, STEPS, None)
    assert_same_bits(weights(trainer), seen[STEPS])


def judge(monkeypatch: pytest.MonkeyPatch, verdicts: dict[int, float]) -> None:
    """Give the validation AUC of each step, 0 where nothing is said."""
    monkeypatch.setattr(
        Trainer, "validation_auc", lambda trainer: verdicts.get(trainer.state.step, 0.0)
    )


@pytest.mark.parametrize("patience", [1, 2])
def test_it_stops_when_it_gets_no_better(
    make: Make, patience: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge(
        monkeypatch,
        {0: 0.5, 2: 0.4, 4: 0.7, 6: 0.7, 8: 0.6, 10: 0.9} if patience == 2 else {0: 0.9},
    )
    seen: dict[int, dict[str, Tensor]] = {}
    trainer = make(
        steps=40,
        validate_every=2,
        patience=patience,
        report=lambda step, note: seen.update({step: weights(trainer)}),
    )
    state = trainer.run()
    best = {1: 0, 2: 4}[patience]  # an equal AUC is no better
    assert (state.best_step, state.step) == (best, best + 2 * patience)
    assert state.stopped == f"no better since step {best}"
    assert_same_bits(weights(trainer), seen[best])
    assert not torch.equal(weights(trainer)["words.weight"], seen[state.step]["words.weight"])


def test_the_best_weights_are_restored(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    judge(monkeypatch, {0: 0.5, 4: 0.8, 8: 0.7, 12: 0.6})
    seen: dict[int, dict[str, Tensor]] = {}
    trainer = make(report=lambda step, note: seen.update({step: weights(trainer)}))
    state = trainer.run()
    assert (state.step, state.best_step, state.best_auc, state.stopped) == (STEPS, 4, 0.8, "")
    assert_same_bits(weights(trainer), seen[4])


# --- numbers that are not finite


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_loss_that_is_not_finite(make: Make, bad: float) -> None:
    undisturbed = make(steps=8, validation=0.0)
    undisturbed.run()

    trainer = make(validation=0.0)
    honest = trainer.model.loss

    def loss(*arguments: Any) -> ElboTerms:
        terms = honest(*arguments)
        broken = replace(terms, reconstruction=terms.reconstruction * bad)
        return broken if trainer.state.step == 9 else terms

    trainer.model.loss = loss
    state = trainer.run()
    assert state.stopped == "the loss was not finite at step 10"
    assert (state.step, state.best_step) == (9, 8)
    assert [r["step"] for r in state.history] == [0, 4, 8]
    assert_same_bits(weights(trainer), weights(undisturbed))


@pytest.mark.parametrize("validation", [0.0, 0.1])
@pytest.mark.parametrize("step", [6, 7])  # the 8th step is followed by a look
def test_a_gradient_that_is_not_finite(make: Make, step: int, validation: float) -> None:
    trainer = make(validation=validation)
    trainer.model.words.weight.register_hook(
        lambda gradient: gradient * math.nan if trainer.state.step == step else gradient
    )
    state = trainer.run()
    assert "not finite" in state.stopped
    assert state.step <= step + 1
    assert all(value.isfinite().all() for value in weights(trainer).values())
    assert state.best_step <= step


# --- what is told


@pytest.mark.parametrize("shape", SHAPES)
def test_the_history_has_every_term(make: Make, shape: str) -> None:
    state = make(steps=10, **SHAPES[shape]).run()
    assert [record["step"] for record in state.history] == [0, 4, 8, 10]
    assert state.history[0].keys() == {"step", "seconds", "validation_auc"}
    for record in state.history[1:]:
        assert record.keys() == TERMS | {"step", "seconds", "validation_auc"}
        assert all(math.isfinite(value) for value in record.values())
        parts = record["kl_linked"] + record["kl_unlinked"] + record["kl_edge"]
        assert record["bound"] == pytest.approx(record["reconstruction"] - parts, rel=1e-4)
        assert min(record["kl_linked"], record["kl_unlinked"], record["kl_edge"]) >= 0
        assert record["link"] <= 0
    seconds = [record["seconds"] for record in state.history]
    assert seconds == sorted(seconds)


def test_a_record_is_the_mean_since_the_last_one(make: Make, monkeypatch) -> None:
    told: list[dict[str, float]] = []
    honest = Trainer._step
    monkeypatch.setattr(
        Trainer, "_step", lambda *arguments: told.append(honest(*arguments)) or told[-1]
    )
    state = make(steps=10).run()
    for record, part in zip(state.history[1:], (told[:4], told[4:8], told[8:]), strict=True):
        for name in TERMS:
            assert record[name] == pytest.approx(np.mean([terms[name] for terms in part]))


def test_every_step_is_reported(make: Make) -> None:
    told: list[tuple[int, str | None]] = []
    make(steps=5, report=lambda step, note: told.append((step, note))).run()
    assert list(dict.fromkeys(step for step, _ in told)) == [0, 1, 2, 3, 4, 5]
    looks = [(step, note) for step, note in told if note is not None]
    assert [step for step, _ in looks] == [0, 4, 5]
    assert all(note.startswith("validation AUC ") for _, note in looks)


def test_epochs_and_steps_are_both_lower_bounds(make: Make) -> None:
    links = len(make().links)
    for epochs, steps in ((0.0, 3), (2.0, 3), (2.0, 500)):
        trainer = make(epochs=epochs, steps=steps, batch_size=32, negatives=1)
        assert trainer.steps == max(steps, math.ceil(epochs * links / trainer.sampler.step_links))


@pytest.mark.parametrize("shape", SHAPES)
def test_training_raises_the_bound(make: Make, shape: str) -> None:
    """Where nothing but the bound is raised."""
    settings = {"steps": 40, "batch_size": 64, "learning_rate": 0.01, "link_weight": 0.0}
    history = make(**settings, validate_every=5, validation=0.0, **SHAPES[shape]).run().history
    bounds = [record["bound"] for record in history[1:]]
    assert bounds[-1] > bounds[0] + 0.1 * abs(bounds[0])
    assert np.polyfit(range(len(bounds)), bounds, 1)[0] > 0


def test_a_batch_in_pieces_gives_the_same_step(make: Make, monkeypatch) -> None:
    one, other = make(steps=1), make(steps=1)
    first = one.run().history[-1]
    monkeypatch.setattr(trainer_module, "AREA", 300)
    sizes: list[int] = []
    honest = other.model.infer
    other.model.infer = lambda batch, *rest: (
        sizes.extend(len(pairs.i) for pairs in batch) or honest(batch, *rest)
    )
    second = other._step(0)
    assert len(sizes) > 3
    assert sum(sizes) == len(other.sampler.batch(0))
    for name in TERMS - {"bound", "reconstruction"}:  # those without noise
        assert first[name] == pytest.approx(second[name], rel=1e-3)


# --- the validation AUC


def brute_force_auc(codes: np.ndarray, links: np.ndarray) -> float | None:
    unit = codes / np.maximum(np.linalg.norm(codes, axis=1, keepdims=True), 1e-12)
    cosines = unit @ unit.T
    partners = {(i, j) for i, j in links.tolist()} | {(j, i) for i, j in links.tolist()}
    points = []
    for i, j in [*links.tolist(), *links[:, ::-1].tolist()]:
        for other in range(len(codes)):
            if other != i and (i, other) not in partners:
                won, tied = cosines[i, j] > cosines[i, other], cosines[i, j] == cosines[i, other]
                points.append(1.0 if won else 0.5 if tied else 0.0)
    return float(np.mean(points)) if points else None


@given(st.integers(0, 10**6), st.integers(2, 12), st.integers(1, 15), st.booleans())
def test_the_ranking_auc_is_that_of_a_loop(seed: int, n: int, m: int, ties: bool) -> None:
    rng = np.random.default_rng(seed)
    codes = np.eye(3)[rng.integers(3, size=n)] if ties else rng.normal(size=(n, 4))
    if ties:
        codes[0] = 0  # a code of zeros has cosine 0 with everything
    i = rng.integers(n, size=m)
    links = np.column_stack([i, (i + rng.integers(1, n, size=m)) % n])
    found, wanted = ranking_auc(codes.astype(np.float32), links), None
    wanted = brute_force_auc(codes.astype(np.float32), links)
    assert found == (None if wanted is None else pytest.approx(wanted))


def test_the_ranking_auc_at_its_ends() -> None:
    codes = np.array([[1, 0], [1, 0.1], [-1, 0], [-1, 0.1]], dtype=np.float32)
    assert ranking_auc(codes, np.array([[0, 1], [2, 3]])) == 1.0
    assert ranking_auc(codes, np.array([[0, 2], [1, 3]])) < 0.5
    assert ranking_auc(np.ones((4, 2), np.float32), np.array([[0, 1], [2, 3]])) == 0.5
    assert ranking_auc(codes[:2], np.array([[0, 1]])) is None
