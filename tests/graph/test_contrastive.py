"""The contrastive loss and its gradients against a double loop in float64."""

import pytest
import torch

from vhe.graph.contrastive import contrastive_loss

LINKS = {
    "one": [[0, 1]],
    "disjoint": [[0, 1], [2, 3], [4, 5]],
    "shared ends": [[0, 1], [0, 2], [0, 3], [1, 2], [4, 0]],
    "path": [[0, 1], [1, 2], [2, 3], [3, 4], [4, 5]],
}


def naive_loss(codes: torch.Tensor, links: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """Candidates are the ends of all links, as often as they occur, without the end itself and
    without further occurrences of the partner."""
    unit = codes / codes.norm(dim=1, keepdim=True)
    ends = links.flatten().tolist()
    losses = []
    for i, j in [*links.tolist(), *links.flip(1).tolist()]:
        candidates = [k for k in ends if k not in (i, j)]
        logits = torch.stack([scale * (unit[i] @ unit[k]) for k in [j, *candidates]])
        losses.append(torch.logsumexp(logits, dim=0) - logits[0])
    return torch.stack(losses).mean()


@pytest.mark.parametrize("name", LINKS)
@pytest.mark.parametrize("scale", [1.0, 10.0])
def test_the_loss_and_its_gradients_against_a_double_loop(name, scale):
    generator = torch.Generator().manual_seed(0)
    codes = torch.randn(6, 4, generator=generator, dtype=torch.float64, requires_grad=True)
    links = torch.tensor(LINKS[name])
    factor = torch.tensor(scale, dtype=torch.float64, requires_grad=True)
    found, expected = contrastive_loss(codes, links, factor), naive_loss(codes, links, factor)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)
    for one, other in zip(
        torch.autograd.grad(found, [codes, factor]),
        torch.autograd.grad(expected, [codes, factor]),
        strict=True,
    ):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-9)


def test_the_loss_in_single_precision():
    generator = torch.Generator().manual_seed(1)
    codes = torch.randn(60, 8, generator=generator)
    links = torch.randint(60, (50, 2), generator=generator)
    links = links[links[:, 0] != links[:, 1]]
    scale = torch.tensor(20.0)
    expected = naive_loss(codes.double(), links, scale.double())
    assert float(contrastive_loss(codes, links, scale)) == pytest.approx(float(expected), rel=1e-4)


def test_one_link_alone_has_no_loss():
    loss = contrastive_loss(torch.eye(2), torch.tensor([[0, 1]]), torch.tensor(5.0))
    assert float(loss) == pytest.approx(0, abs=1e-5)


def test_the_loss_is_finite_for_equal_and_for_zero_codes():
    links = torch.tensor(LINKS["shared ends"])
    for codes in (torch.ones(6, 4), torch.zeros(6, 4), 1e20 * torch.ones(6, 4)):
        codes.requires_grad_()
        loss = contrastive_loss(codes, links, torch.tensor(100.0))
        loss.backward()
        assert loss.isfinite()
        assert codes.grad.isfinite().all()


def test_near_partners_have_a_smaller_loss():
    links = torch.tensor(LINKS["disjoint"])
    near = torch.eye(3).repeat_interleave(2, dim=0)
    far = torch.eye(6)
    scale = torch.tensor(10.0)
    assert contrastive_loss(near, links, scale) < contrastive_loss(far, links, scale) - 1
