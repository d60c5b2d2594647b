"""Minimal filtering against conv1d."""

import pytest
import torch
from torch.nn.functional import conv1d

from vhe.pair.filtering import Filtering

KERNELS, CHANNELS = 6, 3


def case(width, blocks, dtype=torch.float64, channels=CHANNELS):
    """Rows in their natural order (blocks * tile, C), kernels (K, width, C), and a filtering."""
    generator = torch.Generator().manual_seed(width)
    kernels = torch.randn(KERNELS, width, channels, generator=generator, dtype=dtype)
    filtering = Filtering(width, kernels)
    shape = blocks * filtering.tile, channels
    return torch.randn(shape, generator=generator, dtype=dtype), kernels, filtering


def filtered(rows, kernels, filtering):
    """The outputs in the order of the rows: (outputs, K)."""
    tile = filtering.tile
    turned = rows.view(-1, tile, rows.shape[1]).transpose(0, 1).reshape(rows.shape)
    found = filtering.convolve(turned, filtering.transformed(kernels))
    return found.view(tile, -1, KERNELS).transpose(0, 1).reshape(-1, KERNELS)


def convolved(rows, kernels):
    return conv1d(rows.T.unsqueeze(0), kernels.transpose(1, 2))[0].T


@pytest.mark.parametrize("width", [1, 3, 5, 7, 9, 13])
@pytest.mark.parametrize("more", [1, 2, 7])
def test_filtering_is_convolution(width, more):
    reach = case(width, 1)[2].reach
    rows, kernels, filtering = case(width, reach + more)
    found = filtered(rows, kernels, filtering)
    assert len(found) == more * filtering.tile
    expected = convolved(rows, kernels)[: len(found)]
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


def test_kernels_of_width_five_take_eight_products_for_four_outputs():
    filtering = case(5, 2)[2]
    assert (filtering.tile, filtering.reach) == (4, 1)
    assert filtering.transformed(torch.randn(KERNELS, 5, CHANNELS).double()).shape[0] == 8


def test_32_bits_are_enough():
    rows, kernels, filtering = case(5, 60, torch.float32, 80)
    exact = convolved(rows.double(), kernels.double())
    found = filtered(rows, kernels, filtering)
    error = (found - exact[: len(found)]).square().mean().sqrt() / exact.square().mean().sqrt()
    assert error < 1e-6


def test_a_tile_reads_its_own_blocks_only():
    rows, kernels, filtering = case(5, 4)
    clean = filtered(rows, kernels, filtering)
    rows[-4:] = torch.nan
    spoilt = filtered(rows, kernels, filtering)
    assert torch.equal(clean[:8], spoilt[:8])
    assert spoilt[8:].isnan().all()
