"""Two processes learn what one learns, also when one of them is killed on the way."""

import importlib.util
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import vhe
from vhe.errors import VHEError
from vhe.graph.posterior import JointStructure
from vhe.runtime import device as machine
from vhe.runtime import process_group as distributed
from vhe.runtime import ranks

PROGRAM = Path(__file__).with_name("two_processes.py")


@pytest.fixture(scope="module")
def program():
    spec = importlib.util.spec_from_file_location("two_processes", PROGRAM)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    folder, rng = tmp_path_factory.mktemp("network"), np.random.default_rng(0)
    texts = [
        " ".join(f"w{k}" for k in rng.integers(40, size=rng.integers(2, 9))) for _ in range(60)
    ]
    pd.DataFrame({"id": range(60), "text": texts}).to_csv(folder / "vertices.csv", index=False)
    ends = rng.integers(60, size=(90, 2))
    pd.DataFrame(ends, columns=["source", "target"]).to_csv(folder / "edges.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def done(files, tmp_path_factory) -> tuple[Path, str]:
    """The folder in which two processes have worked, and what they said."""
    folder = tmp_path_factory.mktemp("together")
    words = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    words += ["--max-restarts=1", str(PROGRAM), str(files), str(folder)]
    source = str(Path(vhe.__file__).parent.parent)
    ran = subprocess.Popen(
        [sys.executable, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"PYTHONPATH": source, "OMP_NUM_THREADS": "1"},
    )
    try:
        said, _ = ran.communicate(timeout=200)
    except subprocess.TimeoutExpired:
        ran.terminate()  # with its workers, which a harder way would leave behind
        pytest.fail(f"they wait for each other: {ran.communicate()[0]}")
    assert ran.returncode == 0, said
    return folder, said


@pytest.mark.parametrize("structure", ["joint", "learned"])
def test_two_processes_have_the_gradients_of_one(done, files, program, structure, monkeypatch):
    monkeypatch.setattr(JointStructure.mean, "__defaults__", JointStructure.mean.__defaults__)
    network = vhe.TextNetwork.from_files(files / "vertices.csv", files / "edges.csv")
    theirs = torch.load(done[0] / "gradients.pt")[structure]
    ours = program.gradients(network, structure)
    touched = [name for name, gradient in ours.items() if gradient.any()]
    assert "words.weight" in touched
    assert ("structure.weight" in touched) == (structure == "learned")
    for name in touched:
        if name.startswith("decoder") or name in ("term reconstruction", "term bound"):
            continue  # the noise of the two is not that of the one
        size = float(ours[name].abs().max())
        torch.testing.assert_close(theirs[name], ours[name], rtol=1e-3, atol=1e-4 * size)


def test_sums_are_the_same_in_shared_memory_and_by_messages(done):
    found = torch.load(done[0] / "gradients.pt")
    assert found["joint"].keys() == found["spoken"].keys()
    for name, gradient in found["joint"].items():
        assert torch.equal(gradient, found["spoken"][name]), name


def test_memory_that_is_not_there_is_not_shared(tmp_path, monkeypatch):
    monkeypatch.setattr(distributed, "SHARED", tmp_path)
    path = Path(distributed._reserved(1000))
    assert path.stat().st_size == 1000
    path.unlink()
    assert distributed._reserved(1 << 60) == ""  # nobody has an exabyte
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr(distributed, "SHARED", tmp_path / "nowhere")
    assert distributed._reserved(1000) == ""


def test_both_end_with_the_same_embedding_as_one_process_nearly_has(done, files, program):
    assert not np.load(done[0] / "apart.npy").any()
    network = vhe.TextNetwork.from_files(files / "vertices.csv", files / "edges.csv")
    theirs = np.load(done[0] / "embedding.npy")
    ours = vhe.VHE(random_state=0, verbose=False, **program.FIT).fit(network).embedding_
    cosine = (theirs * ours).sum() / np.linalg.norm(theirs) / np.linalg.norm(ours)
    assert cosine > 0.99


def test_a_training_whose_worker_was_killed_ends_as_an_undisturbed_one(done, program):
    steps = [int(line) for line in (done[0] / "steps.txt").read_text().split()]
    turns = (k for k in range(1, len(steps)) if steps[k] <= steps[k - 1])
    again = next(turns, program.DEADLY)
    assert steps[:again] == list(range(again)), "the first process may not have come to the step"
    assert program.DEADLY <= again <= program.DEADLY + 1
    assert steps[again:] == list(range(steps[again], program.FIT["steps"]))
    assert steps[again] > 0, "the second start went on"
    model = vhe.VHE.load(done[0] / "model")
    assert np.array_equal(model.embedding_, np.load(done[0] / "embedding.npy"))


def test_one_process_speaks(done):
    assert done[1].count("validation AUC  ") == 1
    assert done[1].count("next  ") == 1


def test_processes_agree_on_a_new_word_whatever_was_left_in_the_store():
    store = torch.distributed.HashStore()
    words = []
    for _ in range(3):  # the second and third time the store is full of old words

        def meet(number):
            time.sleep(0.03 * (number != 1))  # the second comes first
            return distributed._appointment(store, number, 3)

        with ThreadPoolExecutor(3) as pool:
            found = list(pool.map(meet, range(3)))
        assert len(set(found)) == 1
        words.append(found[0])
    assert len(set(words)) == 3


def test_who_comes_alone_does_not_wait_for_ever(monkeypatch):
    monkeypatch.setattr(distributed, "SECONDS_TO_MEET", 0.05)
    store = torch.distributed.HashStore()
    for number in (0, 1):
        with pytest.raises(VHEError, match="did not come"):
            distributed._appointment(store, number, 2)


@pytest.mark.parametrize("pairs", [1, 2, 7, 30])
def test_shares_are_disjoint_and_weigh_one_together(monkeypatch, pairs):
    work = np.random.default_rng(0).integers(1, 99, size=pairs)
    monkeypatch.setattr(distributed, "size", lambda: 3)
    found = []
    for rank in range(3):
        monkeypatch.setattr(distributed, "rank", lambda rank=rank: rank)
        found.append(distributed.share(work))
    assert sum(weight for _, weight in found) == pytest.approx(1)
    rows = np.concatenate([rows for rows, _ in found])
    if pairs >= 3:
        assert sorted(rows) == list(range(pairs))
    else:
        assert sorted(rows) == sorted(list(range(pairs)) * 3)
    if pairs == 30:
        loads = [work[rows].sum() for rows, _ in found]
        assert max(loads) < 1.3 * min(loads)


def test_processes_share_the_cores(monkeypatch):
    monkeypatch.setattr(machine, "cores", lambda: 6)
    monkeypatch.setattr(distributed, "size", lambda: 4)
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "x")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    before = torch.get_num_threads()
    with machine.using_threads(None):
        assert torch.get_num_threads() == 3
    with machine.using_threads(1):
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before


def test_alone_without_torchrun(monkeypatch):
    monkeypatch.setenv("RANK", "1")  # another launcher's, which is no business of ours
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert ranks.first()
    with distributed.together():
        assert distributed.size() == 1
        assert distributed.agreed(3.5) == 3.5
        assert distributed.anyone(True)
        assert not distributed.anyone(False)
