"""The matrices of minimal filtering against a plain convolution."""

import numpy as np
import pytest

from vhe.pair.filtering import filtering


def filtered(rows, kernel, matrices):
    """The outputs of one tile for rows (products,) and a kernel (width,): A ((G g) * (B d))."""
    a, g, b = (m.numpy() for m in (matrices.to_outputs, matrices.of_kernels, matrices.of_rows))
    return a @ ((g @ kernel) * (b @ rows))


@pytest.mark.parametrize("width", [1, 3, 5, 7, 9, 13])
def test_filtering_is_convolution(width):
    matrices, rng = filtering(width), np.random.default_rng(width)
    for _ in range(20):
        rows, kernel = rng.normal(size=matrices.products), rng.normal(size=width)
        expected = [rows[k : k + width] @ kernel for k in range(matrices.tile)]
        found = filtered(rows, kernel, matrices)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    assert matrices.products == matrices.tile + width - 1


def test_kernels_of_width_five_take_eight_products_for_four_outputs():
    assert (filtering(5).tile, filtering(5).products) == (4, 8)


def test_float32_is_precise_enough():
    matrices, rng = filtering(5), np.random.default_rng(0)
    errors, outputs = [], []
    for _ in range(200):
        rows, kernel = rng.normal(size=(80, 8)), rng.normal(size=(80, 5))
        found = sum(
            filtered(r.astype(np.float32), k.astype(np.float32), matrices)
            for r, k in zip(rows, kernel, strict=True)
        )
        exact = [sum(r[t : t + 5] @ k for r, k in zip(rows, kernel, strict=True)) for t in range(4)]
        errors.append(found - exact)
        outputs.append(exact)
    assert np.sqrt(np.square(errors).mean() / np.square(outputs).mean()) < 1e-6
