"""Adam against torch's own."""

import subprocess
import sys

import torch

from vhe.runtime.adam import Adam


def parameters() -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    shapes = ((5, 3), (4,), ())
    return [torch.randn(shape, generator=generator).requires_grad_() for shape in shapes]


def set_gradients(params: list[torch.Tensor], step: int) -> None:
    generator = torch.Generator().manual_seed(step + 1)
    for parameter in params:
        parameter.grad = torch.randn(parameter.shape, generator=generator)


def test_steps_are_those_of_torch() -> None:
    ours, theirs = parameters(), parameters()
    adam = Adam((ours[:1], 0.1), (ours[1:], 0.01))
    groups = [{"params": theirs[:1], "lr": 0.1}, {"params": theirs[1:], "lr": 0.01}]
    reference = torch.optim.Adam(groups, fused=True)
    for step in range(6):
        for optimiser, params in ((adam, ours), (reference, theirs)):
            set_gradients(params, step)
            if step == 2:
                params[1].grad = None  # not part of this step
            for group in optimiser.param_groups:
                group["lr"] *= 0.9
            optimiser.step()
    for own, other in zip(ours, theirs, strict=True):
        assert torch.equal(own, other)


def test_a_restored_state_continues_with_the_same_bits() -> None:
    whole, parts = parameters(), parameters()
    first = Adam((whole, 0.1))
    second = Adam((parts, 0.1))
    for step in range(4):
        if step == 2:
            saved = second.state_dict()
            second = Adam((parts, 0.1))
            second.load_state_dict(saved)
        for optimiser, params in ((first, whole), (second, parts)):
            set_gradients(params, step)
            optimiser.step()
    for own, other in zip(whole, parts, strict=True):
        assert torch.equal(own, other)
    first.zero_grad()
    assert all(parameter.grad is None for parameter in whole)


def test_a_fit_does_not_import_the_compiler_of_torch() -> None:
    script = """
import sys
import vhe
texts = {k: f"word{k % 3} text{k % 2}" for k in range(12)}
network = vhe.TextNetwork.from_edges(texts, [(k, (k + 3) % 12) for k in range(12)])
vhe.VHE(random_state=0, max_steps=2, min_count=1, verbose=False).fit(network)
pair = dict(word_dim=8, latent_dim=8, structure_dim=8, hidden_dim=8, kernels=4, min_count=1)
vhe.PairVHE(random_state=0, steps=2, verbose=False, **pair).fit(network)
assert "torch._dynamo" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
