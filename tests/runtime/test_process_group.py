"""Two processes under torchrun train like one, also when one of them is killed."""

import importlib.util
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import vhe
from vhe.data.network import TextNetwork
from vhe.data.sampling import LinkSet
from vhe.pair.embedding import global_embedding
from vhe.pair.training import train
from vhe.runtime import device, process_group

PROGRAM = Path(__file__).with_name("two_processes.py")


@pytest.fixture(scope="module")
def program():
    spec = importlib.util.spec_from_file_location("two_processes", PROGRAM)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """The folder with the results of two processes."""
    folder = tmp_path_factory.mktemp("two")
    command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    command += ["--max-restarts=1", str(PROGRAM), str(folder)]
    source = str(Path(vhe.__file__).parent.parent)
    running = subprocess.Popen(
        [sys.executable, *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"PYTHONPATH": source, "OMP_NUM_THREADS": "1"},
    )
    try:
        output, _ = running.communicate(timeout=240)
    except subprocess.TimeoutExpired:
        running.terminate()  # ends its workers, too
        pytest.fail(f"the processes wait for each other: {running.communicate()[0]}")
    assert running.returncode == 0, output
    assert "find_unused_parameters" not in output
    return folder


@pytest.fixture(scope="module")
def results(folder) -> list[dict[str, Any]]:
    """Of each rank."""
    return [pickle.loads((folder / f"rank{rank}.pickle").read_bytes()) for rank in (0, 1)]


@pytest.fixture(scope="module")
def network(program) -> TextNetwork:
    return program.make_network()


@pytest.mark.parametrize("form", ["default", "paper"])
def test_two_processes_have_the_gradients_of_one(results, network, program, form):
    one = program.gradients(network, form)
    nonzero = [name for name, gradient in one.items() if gradient.any()]
    assert {"words.weight", "structure.weight", "alignment.kernels"} <= set(nonzero)
    for name in nonzero:
        if name.startswith("decoder") or name in ("term reconstruction", "term bound"):
            continue  # they depend on the samples
        size = float(one[name].abs().max())
        for rank in results:
            torch.testing.assert_close(rank[form][name], one[name], rtol=1e-3, atol=1e-4 * size)


def test_both_ranks_end_with_the_same_weights_and_the_same_embedding(results):
    first, second = results
    assert set(first["differences"].values()) == {0.0}
    for name, weight in first["weights"].items():
        assert torch.equal(weight, second["weights"][name]), name
    np.testing.assert_array_equal(first["embedding"].mean, second["embedding"].mean)
    np.testing.assert_array_equal(first["embedding"].variance, second["embedding"].variance)


def test_two_processes_learn_about_the_same_as_one(results, network, program):
    trainer = program.trainer_of(network)
    state = train(trainer, validate_every=2)
    one = global_embedding(
        trainer.model, trainer.corpus, LinkSet(trainer.links, len(network)), contexts=4, seed=0
    ).mean
    two = results[0]["embedding"].mean
    assert (one * two).sum() / np.linalg.norm(one) / np.linalg.norm(two) > 0.98
    for ours, theirs in zip(state.history[1:], results[0]["history"][1:], strict=True):
        assert theirs["step"] == ours["step"]
        assert theirs["bound"] == pytest.approx(ours["bound"], rel=0.05)
        assert theirs["kl_linked"] == pytest.approx(ours["kl_linked"], rel=0.05)


def test_values_are_broadcast_from_rank_0(results):
    assert [rank["seed"] for rank in results] == [2**40, 2**40]
    assert [rank["any_rank"] for rank in results] == [[True, False], [True, False]]


def test_a_second_group_of_the_same_processes_works(results):
    assert [rank["second group"] for rank in results] == [[2, 2, 2], [2, 2, 2]]


def test_a_training_with_a_killed_process_ends_as_an_undisturbed_one(folder, results, program):
    steps = [int(line) for line in (folder / "steps.txt").read_text().split()]
    again = next(k for k in range(1, len(steps)) if steps[k] <= steps[k - 1])
    assert steps[:again] == list(range(again))
    assert program.FATAL_STEP <= again <= program.FATAL_STEP + 1
    assert steps[again] > 0, "the restarted processes resumed"
    assert steps[again:] == list(range(steps[again], program.SETTINGS["steps"]))
    resumed = torch.load(folder / "resumed.pt")
    for name, weight in results[0]["weights"].items():
        assert torch.equal(weight, resumed[name]), name


def test_a_lost_peer_is_reported_in_one_sentence(monkeypatch):
    monkeypatch.setattr(process_group.dist, "is_initialized", lambda: True)
    monkeypatch.setattr(process_group.dist, "get_rank", lambda: 3)
    with (
        pytest.raises(process_group.PeerLostError, match=r"rank 3: another process .* --resume"),
        process_group.reporting_lost_peers(),
    ):
        raise RuntimeError("Connection closed by peer")


def test_an_error_without_a_group_is_not_a_lost_peer():
    with (
        pytest.raises(RuntimeError, match="another error") as raised,
        process_group.reporting_lost_peers(),
    ):
        raise RuntimeError("another error")
    assert not isinstance(raised.value, process_group.PeerLostError)


def test_processes_on_one_machine_share_its_cores(monkeypatch):
    monkeypatch.setattr(device, "cores", lambda: 6)
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "x")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    before = torch.get_num_threads()
    with device.using_threads(None):
        assert torch.get_num_threads() == 3
    with device.using_threads(1):
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before


def test_the_variables_of_torchrun(monkeypatch):
    for name, value in {"RANK": "1", "WORLD_SIZE": "4", "LOCAL_RANK": "1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "2")
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)  # another launcher
    assert process_group.is_first()
    assert process_group.world_size() == process_group.local_world_size() == 1
    assert not process_group.restarted()
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "x")
    assert not process_group.is_first()
    assert (process_group.world_size(), process_group.local_rank()) == (4, 1)
    assert process_group.restarted()


def test_a_single_process_needs_no_group(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")  # another launcher
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    with process_group.initialised():
        assert (process_group.size(), process_group.rank()) == (1, 0)
        assert process_group.broadcast(3.5) == 3.5
        assert process_group.any_rank(True)
        assert not process_group.any_rank(False)
        assert process_group.all_reduce(np.arange(3)).tolist() == [0, 1, 2]
