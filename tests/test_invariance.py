"""What must not change a result: threads, order of vertices, path of the kernels, forks."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from vhe.data.network import TextNetwork
from vhe.estimators import VHE
from vhe.graph.contrastive import contrastive_loss
from vhe.runtime import native
from vhe.runtime.device import using_threads

New = Callable[..., VHE]


@pytest.mark.parametrize("kind", ["graph", "pair"])
def test_the_number_of_threads_does_not_change_a_bit(
    kind: str, network: TextNetwork, hasty: New, new_pair: New
) -> None:
    """Sums are in parts whose limits do not depend on the threads.

    Those of `PairVHE` in torch alone do depend on them (docs/reliability.md).
    """
    source = native.FILE.with_name("alignment.c")
    if native.FILE.exists() and native.FILE.stat().st_mtime < source.stat().st_mtime:
        pytest.skip("the kernels were built from older sources: make setup")
    make = hasty if kind == "graph" else lambda **changes: new_pair(steps=8, **changes)
    one, two = (make(threads=threads).fit(network) for threads in (1, 2))
    exact = kind == "graph" or native.is_available(torch.zeros(1))
    error = {"rtol": 0 if exact else 1e-5, "atol": 0 if exact else 1e-6}
    np.testing.assert_allclose(one.embedding_, two.embedding_, **error)
    np.testing.assert_allclose(one.embedding_std_, two.embedding_std_, **error)


def test_the_number_of_threads_does_not_change_a_gradient() -> None:
    """Of a step with as many links as usual: torch divides the work only of large tensors."""
    draw = torch.Generator().manual_seed(0)
    links = torch.randint(1000, (1024, 2), generator=draw)
    start = torch.randn(1000, 200, generator=draw)
    found = []
    for threads in (1, 2):
        codes, scale = start.clone().requires_grad_(), torch.tensor(10.0, requires_grad=True)
        with using_threads(threads):
            contrastive_loss(codes, links, scale).backward()
        assert codes.grad is not None
        assert scale.grad is not None
        found.append(torch.cat([codes.grad.flatten(), scale.grad[None]]))
    assert torch.equal(*found)


def test_permuted_vertices_give_the_permuted_result(network: TextNetwork, new: New) -> None:
    """The closed-form solution with given strengths, which draws nothing by vertex number.

    The randomised SVD of LSA stops at a tolerance: cosines between vertices agree to 0.02.
    """
    order = np.random.default_rng(0).permutation(len(network))
    position = np.argsort(order)
    permuted = TextNetwork(
        [network.ids[k] for k in order],
        [network.texts[k] for k in order],
        position[network.edges],
    )
    settings: dict[str, Any] = {
        "max_steps": 0,
        "link_strength": 1.0,
        "text_knn_weight": 1.0,
        "validation": 0.0,
    }
    found = []
    for given in (network, permuted):
        model = new(**settings).fit(given)
        rows = model.embed(list(network.ids))
        unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        found.append(unit @ unit.T)
    np.testing.assert_allclose(found[0], found[1], atol=0.02)


@pytest.mark.skipif(native.library() is None, reason="the native kernels are not built")
@pytest.mark.parametrize("kind", ["graph", "pair"])
def test_native_and_torch_paths_agree(
    kind: str, network: TextNetwork, hasty: New, new_pair: New, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Float32 sums in another order: embeddings agree to 1e-3 after four steps."""
    make = hasty if kind == "graph" else lambda **changes: new_pair(steps=4, **changes)
    with_kernels = make().fit(network)
    monkeypatch.setattr(native, "is_available", lambda tensor: False)
    without = make().fit(network)
    np.testing.assert_allclose(with_kernels.embedding_, without.embedding_, atol=1e-3, rtol=1e-3)


FORK = """
import os, signal, sys
import torch
from vhe.estimators import VHE, PairVHE, load_model

torch.set_num_threads(2)
model = load_model(sys.argv[1])
small = {"random_state": 0, "verbose": False, "max_words": 16, "min_count": 1, "latent_dim": 16}
pair = {"word_dim": 16, "structure_dim": 16, "hidden_dim": 16, "kernels": 4, "contexts": 1}

def use():
    for fit in (VHE(threads=2, max_steps=2, **small), PairVHE(threads=2, steps=2, **small, **pair)):
        fit.fit(model.network_)
        yield fit.embedding_.tobytes()
    yield model.predict_proba([("v0", "v5")])[0]
    yield model.embed_texts(["t0w1 t0w2"])[0].sum()

expected = list(use())
child = os.fork()
if child == 0:
    signal.alarm(60)
    os._exit(0 if list(use()) == expected else 3)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_model_can_be_used_after_a_fork(fitted: VHE, tmp_path: Path) -> None:
    """As in a server that forks its workers: fitted and used before with two threads."""
    fitted.save(tmp_path / "model")
    done = subprocess.run(
        [sys.executable, "-c", FORK, str(tmp_path / "model")],
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr
    assert "a forked process uses one thread" in done.stderr
