"""Every instruction set of the C kernels on random shapes against float64, and wrong arguments.

`make sanitize` runs these tests with kernels that are built with AddressSanitizer and UBSan.
"""

import ctypes
import os
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from torch import Tensor

from vhe.graph.posterior import Posterior
from vhe.pair import native_alignment
from vhe.pair.alignment import PhraseToWordAlignment, align
from vhe.runtime import native
from vhe.runtime.sparse import csr_parts, csr_tensor, multiply

CLOSE = {"rtol": 2e-4, "atol": 2e-5}
EXAMPLES = int(os.environ.get("VHE_EXAMPLES", "10"))  # random shapes per test and instruction set
CPU = torch.device("cpu")


def levels() -> tuple[str, ...]:
    functions = native.library()
    return () if functions is None else native.LEVELS[: functions.vhe_level() + 1]


@pytest.fixture(params=levels() or [pytest.param("", marks=pytest.mark.skip("not built"))])
def level(request: pytest.FixtureRequest) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VHE_NATIVE", request.param)
        assert native.level() == request.param
        yield request.param


@pytest.fixture(params=[1, 2])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def examples(count: int = EXAMPLES):
    """Draw random shapes; the same fixtures serve all of them."""
    return settings(max_examples=count, deadline=None, derandomize=EXAMPLES == 10)


SEEDS, SIZES, DIMS = st.integers(0, 2**32 - 1), st.integers(0, 150), st.integers(0, 75)


def random_matrix(rows: int, columns: int, seed: int) -> sparse.csr_array:
    rng = np.random.default_rng(seed)
    density = rng.choice([0, 0.02, 0.3])
    entries = rng.random((rows, columns)) < density
    return sparse.csr_array(np.where(entries, rng.normal(size=(rows, columns)), 0), dtype="f")


def random_dense(rows: int, dim: int, seed: int) -> Tensor:
    return torch.randn(rows, dim, generator=torch.Generator().manual_seed(seed))


class TestSparse:
    def test_products_are_those_of_dense_matrices(self, level: str, threads: int) -> None:
        @examples()
        @given(SIZES, SIZES, DIMS, SEEDS)
        def check(rows: int, columns: int, dim: int, seed: int) -> None:
            matrix = random_matrix(rows, columns, seed)
            exact = torch.from_numpy(matrix.toarray()).double()
            given_matrix = csr_tensor(matrix, CPU)
            dense = random_dense(columns, dim, seed)
            torch.testing.assert_close(
                multiply(given_matrix, dense), (exact @ dense.double()).float(), **CLOSE
            )
            dense = random_dense(rows, dim, seed)
            torch.testing.assert_close(
                multiply(given_matrix, dense, transposed=True),
                (exact.T @ dense.double()).float(),
                **CLOSE,
            )

        check()

    def test_solutions_are_those_of_torch(self, level: str, threads: int) -> None:
        @examples()
        @given(st.integers(1, 300), DIMS, st.integers(0, 6), SEEDS)
        def check(n: int, dim: int, iterations: int, seed: int) -> None:
            half = abs(random_matrix(n, n, seed))
            weights = sparse.csr_array(half + half.T, dtype="f")
            precision = np.random.default_rng(seed).uniform(0.5, 5, n).astype("f")
            parts = (weights.indptr, weights.indices, weights.data)
            posterior = Posterior.from_csr(*parts, precision, device=CPU)
            b = random_dense(n, dim, seed)
            found = posterior.solve(b, iterations)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(native, "is_available", lambda tensor: False)
                expected = posterior.solve(b, iterations)
            torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)

        check()

    @pytest.mark.parametrize(
        "wrong",
        [
            *({"offsets": [0, 2, 1, 3]}, {"offsets": [0, 1, 2]}, {"offsets": [0, 1, 2, 9]}),
            *({"offsets": [-1, 1, 2, 3]}, {"columns": [0, 1, 3]}, {"columns": [0, 1, -1]}),
            *({"columns": [0, 1]}, {"values": [1.0]}, {"rows": 4}, {"rows": -1}, {"dim": 6}),
            {"rows": 2**62, "dim": 4},
        ],
    )
    def test_wrong_sizes_and_indices_are_refused(self, level: str, wrong: dict) -> None:
        right = {
            "rows": 3,
            "dim": 5,
            "offsets": [0, 1, 2, 3],
            "columns": [0, 1, 2],
            "values": [1.0, 2.0, 3.0],
        }
        use = right | wrong
        matrix = (
            torch.tensor(use["offsets"]),
            torch.tensor(use["columns"], dtype=torch.int32),
            torch.tensor(use["values"]),
        )
        dense, out, ones = torch.ones(3, 5), torch.zeros(3, 5), torch.ones(3)
        rows, dim = use["rows"], use["dim"]
        with pytest.raises(ValueError, match="sparse_product: the sizes"):
            native.call("sparse_product", 1, rows, dim, *matrix, dense, out)
        with pytest.raises(ValueError, match="do not agree"):
            native.call("sparse_product_transposed", 1, rows, dim, 3, *matrix, dense, out)
        with pytest.raises(ValueError, match="do not agree"):
            native.call("solve", 1, rows, dim, 2, *matrix, ones, dense, out)
        assert (out == 0).all()

    def test_wrong_types_are_refused(self, level: str) -> None:
        matrix = csr_parts(csr_tensor(random_matrix(3, 3, 0), CPU))
        dense, out = torch.ones(3, 5), torch.zeros(3, 5)
        for wrong in (dense.double(), dense.to_sparse_csr().values()[::2], dense.int()):
            with pytest.raises(TypeError, match="contiguous"):
                native.call("sparse_product", 1, 3, 5, *matrix, wrong, out)
        with pytest.raises(ValueError, match="argument"):
            native.call("sparse_product", 1, 3, 5, *matrix, dense)


def random_pairs(lengths: list[tuple[int, int]], vocabulary: int, seed: int):
    """Parts of at most three pairs; a text is padded to the longest of its part."""
    generator = torch.Generator().manual_seed(seed)

    def padded(some: tuple[int, ...]) -> Tensor:
        tokens = torch.randint(1, vocabulary, (len(some), max(1, *some)), generator=generator)
        return tokens * (torch.arange(tokens.shape[1]) < torch.tensor(some).unsqueeze(1))

    return [
        tuple(padded(side) for side in zip(*lengths[k : k + 3], strict=True))
        for k in range(0, len(lengths), 3)
    ]


def outcome(function, words: Tensor, kernels: Tensor, parts):
    """Texts, weights, and gradients of words and kernels."""
    words, kernels = words.clone().requires_grad_(), kernels.clone().requires_grad_()
    text_i, text_j, weights = function(words, kernels, parts)
    (text_i.square().sum() + text_j.sin().sum()).backward()
    assert words.grad is not None
    return text_i, text_j, *(w for side in weights for w in side), words.grad[1:], kernels.grad


class TestAlignment:
    def check(self, lengths, dim, kernels, width, longest, vocabulary, seed, shared) -> None:
        module = PhraseToWordAlignment(kernels, width, longest, shared)
        module.reset(torch.Generator().manual_seed(seed))
        kernel = module.kernels.detach() * 4
        words = random_dense(vocabulary, dim, seed)
        words[0] = 0
        parts = random_pairs(lengths, vocabulary, seed)
        assert native_alignment.is_available(words, kernel)
        found = outcome(native_alignment.align, words, kernel, parts)
        expected = outcome(align, words.double(), kernel.double(), parts)
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one, other.float(), rtol=1e-3, atol=2e-4)

    def test_results_and_gradients_are_those_of_torch(self, level: str, threads: int) -> None:
        length = st.one_of(st.integers(0, 3), st.integers(0, 40))

        @examples()
        @given(
            st.lists(st.tuples(length, length), min_size=1, max_size=7),
            *(st.integers(1, 40), st.integers(1, 40), st.sampled_from([1, 3, 5, 7, 9])),
            *(st.integers(2, 50), SEEDS, st.booleans()),
        )
        def check(lengths, dim, kernels, width, vocabulary, seed, shared) -> None:
            self.check(lengths, dim, kernels, width, 40, vocabulary, seed, shared)

        check()

    @pytest.mark.parametrize("lengths", [(1000, 1000), (1000, 1), (1, 1000), (0, 1000), (0, 0)])
    def test_texts_of_1000_words_and_empty_texts(
        self, level: str, threads: int, lengths: tuple[int, int]
    ) -> None:
        self.check([lengths, (3, 2)], 7, 3, 5, 1000, 20, 0, False)

    def batch(self, **changes: object) -> native_alignment.PackedPairs:
        words, kernels = random_dense(9, 5, 0), random_dense(2 * 3 * 5, 20, 0).view(2, 3, 5, 20)
        batch = native_alignment.PackedPairs(words, kernels, random_pairs([(4, 9), (2, 3)], 9, 0))
        for name, value in changes.items():
            (batch.tensors if isinstance(value, Tensor) else batch.numbers)[name] = value
        return batch

    def test_no_pairs(self, level: str) -> None:
        batch = self.batch(pairs=0)
        batch.call("align")
        assert (batch.tensors["texts"] == 0).all()
        to_words, to_kernels = torch.ones(9, 5), torch.zeros(1, 2, 3, 5, 16)
        batch.numbers["threads"] = 1
        batch.call("align_back", torch.zeros(0, 5), to_words, to_kernels)
        assert (to_words == 0).all()

    @pytest.mark.parametrize(
        "wrong",
        [
            *({"pairs": -1}, {"pairs": 1, "longest": 8}, {"longest": 0}, {"longest": 17}),
            *({"positions": 10}, {"area": 10}, {"vocabulary": 2}, {"threads": 0}, {"sides": 3}),
            *({"kernels": 0}, {"width": 0}, {"products": 17}, {"products": 7}, {"tile": 0}),
            *({"first": torch.tensor([-1, 4, 8, 17])}, {"first": torch.tensor([0, 4, 8, 2**62])}),
            *({"length": torch.tensor([-1, 2, 9, 3])}, {"length": torch.tensor([4, 2, 17, 3])}),
            *({"table": torch.tensor([0, 2**62])}, {"table": torch.tensor([-1, 0])}),
        ],
    )
    def test_a_wrong_batch_is_refused(self, level: str, wrong: dict) -> None:
        with pytest.raises(ValueError, match="align: the sizes"):
            self.batch(**wrong).call("align")

    def test_wrong_gradients_and_winners_are_refused(self, level: str) -> None:
        batch = self.batch(threads=1)
        batch.call("align")
        right = (torch.ones(4, 5), torch.ones(9, 5), torch.zeros(1, 2, 3, 5, 16))
        batch.call("align_back", *right)
        for k in range(3):
            wrong = [each[:, :-1].contiguous() if k == n else each for n, each in enumerate(right)]
            with pytest.raises(ValueError, match="align_back"):
                batch.call("align_back", *wrong)
        batch.tensors["winner"][0] = 3
        with pytest.raises(ValueError, match="align_back"):
            batch.call("align_back", *right)

    def test_tensors_of_another_type_are_refused(self, level: str) -> None:
        for name in ("words", "tokens", "winner", "similarity"):
            batch = self.batch()
            batch.tensors[name] = batch.tensors[name].double()
            with pytest.raises(TypeError, match="contiguous"):
                batch.call("align")


def test_the_structure_has_the_size_of_its_fields() -> None:
    assert ctypes.sizeof(native_alignment._Batch) == 8 * len(native_alignment._FIELDS)
