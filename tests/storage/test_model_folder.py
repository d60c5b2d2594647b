"""A loaded model is the same as the saved one; inconsistent folders are refused."""

import json
import os
from collections.abc import Callable, Hashable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load, save

from vhe.data.network import TextNetwork
from vhe.errors import VHEError
from vhe.estimators import VHE, Estimator, PairVHE, load_model
from vhe.storage.folder import read_folder, write_folder

New = Callable[..., Any]


@pytest.fixture(params=["graph", "pair"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def model(kind: str, request: pytest.FixtureRequest) -> Any:
    """A fitted estimator; tests must not change it."""
    return request.getfixturevalue("fitted" if kind == "graph" else "fitted_pair")


@pytest.fixture
def make(kind: str, new: New, new_pair: New) -> New:
    """Makes an estimator with tiny settings, not fitted."""
    return new if kind == "graph" else new_pair


@pytest.fixture
def saved(model: Any, tmp_path: Path) -> Path:
    model.save(tmp_path / "model")
    return tmp_path / "model"


def test_the_same_seed_gives_the_same_bytes(
    make: New, model: Any, network: TextNetwork, saved: Path, tmp_path: Path
) -> None:
    again = make().fit(network)
    np.testing.assert_array_equal(again.embedding_, model.embedding_)
    np.testing.assert_array_equal(again.embedding_std_, model.embedding_std_)
    again.save(tmp_path / "again")
    for name in ("weights.safetensors", "vocabulary.txt", "vertices.parquet", "edges.parquet",
                 "config.json"):  # fmt: skip
        assert (saved / name).read_bytes() == (tmp_path / "again" / name).read_bytes(), name


def test_a_loaded_model_has_the_same_predictions(
    model: Any, network: TextNetwork, saved: Path
) -> None:
    loaded = load_model(saved)
    assert type(loaded) is type(model)
    for one, other in zip(model.embed(return_std=True), loaded.embed(return_std=True), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    pairs = [("v0", "v5"), ("v1", "v2"), ("v59", "v3")]
    np.testing.assert_array_equal(loaded.predict_proba(pairs), model.predict_proba(pairs))
    np.testing.assert_array_equal(loaded.score(pairs), model.score(pairs))
    everyone = np.arange(len(network))
    np.testing.assert_array_equal(
        loaded.score_matrix(everyone, everyone), model.score_matrix(everyone, everyone)
    )
    assert loaded._link_posterior == model._link_posterior
    assert loaded.suggest_links("v9") == model.suggest_links("v9")
    assert loaded.explain("v0", "v5") == model.explain("v0", "v5")
    texts, links = ["t0w1 t0w2", "", "t3w3 common1"], [(0, "v7"), (2, "v3")]
    for one, other in zip(
        model.embed_texts(texts, links), loaded.embed_texts(texts, links), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(loaded.score_texts(texts, links), model.score_texts(texts, links))
    assert loaded.history_ == model.history_
    assert loaded.result_ == model.result_
    assert loaded.config == model.config
    assert loaded.vocabulary_ == model.vocabulary_
    assert repr(loaded) == repr(model)
    found = loaded.network_
    assert (found.ids, found.texts, found.labels) == (network.ids, network.texts, network.labels)
    assert (found.name, found.directed) == (network.name, network.directed)
    np.testing.assert_array_equal(found.edges, network.edges)


def test_a_loaded_model_saves_the_same_bytes(saved: Path, tmp_path: Path) -> None:
    load_model(saved).save(tmp_path / "again")
    assert sorted(os.listdir(saved)) == sorted(os.listdir(tmp_path / "again"))
    for file in saved.iterdir():
        assert file.read_bytes() == (tmp_path / "again" / file.name).read_bytes(), file.name


def test_the_files_of_a_model_folder(saved: Path, kind: str, model: Any) -> None:
    assert sorted(os.listdir(saved)) == sorted(
        ["config.json", "weights.safetensors", "vocabulary.txt", "vertices.parquet",
         "edges.parquet", "history.jsonl", "result.json", "MANIFEST.json"]
    )  # fmt: skip
    assert json.loads((saved / "config.json").read_text())["model"] == kind
    assert json.loads((saved / "result.json").read_text())["seed"] == 3
    assert json.loads((saved / "MANIFEST.json").read_text())["kind"] == "model"
    assert len((saved / "history.jsonl").read_text().splitlines()) == len(model.history_)
    for file in saved.iterdir():
        assert b"pickle" not in file.read_bytes()


def test_the_saved_settings_are_those_of_the_fit(
    make: New, kind: str, network: TextNetwork, tmp_path: Path
) -> None:
    """Parameters that were set after the fit do not belong to the model."""
    steps = {"max_steps": 2} if kind == "graph" else {"steps": 2}
    model = make(min_count=2, **steps).fit(network)
    model.set_params(min_count=5, latent_dim=999)
    model.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert (loaded.config.min_count, loaded.config.latent_dim) == (2, 16)


IDS: dict[str, list[Hashable]] = {
    "numbers": [10**20, -1, 0, 7],
    "texts": ["", "naïve 🙂", "a\nb", "null"],
    "tuples": [("a", 1), ("a", (2, "b")), (), ("a", 1.5)],
    "numbers and their texts": [1, "1", 1.5, "1.5"],
    "a mixture": [None, False, b"\xff\x00", ("x", None, True)],
    "texts of undecodable bytes": ["\udc80", "b", "c", "d"],
    "numbers of numpy": list(np.arange(4)),
}


@pytest.mark.parametrize("ids", IDS.values(), ids=IDS)
def test_any_ids_survive(hasty: New, ids: list[Hashable], tmp_path: Path) -> None:
    texts = ["x y", "y z", "z w", "w x"]
    network = TextNetwork(ids, texts, [[0, 1], [1, 2], [2, 3]], labels=[None, *ids[1:]])
    model = hasty().fit(network)
    model.save(tmp_path / "model")
    loaded = VHE.load(tmp_path / "model")
    assert loaded.network_.ids == network.ids
    assert loaded.network_.labels == network.labels
    assert [type(i) for i in loaded.network_.ids] == [type(i) for i in network.ids]
    for row, name in enumerate(network.ids):
        np.testing.assert_array_equal(loaded.embed([name])[0], model.embedding_[row])
    pair = [(ids[0], ids[3])]
    np.testing.assert_array_equal(loaded.predict_proba(pair), model.predict_proba(pair))


@pytest.mark.parametrize("text", ["", "nul \0 in it", "lines\r\n\u2028\x85", "🙂", "bad \udc80"])
def test_any_text_survives(hasty: New, text: str, tmp_path: Path) -> None:
    network = TextNetwork("abc", [text, "x y", "y"], [[0, 1], [1, 2]], name=f"named {text}")
    model = hasty().fit(network)
    model.save(tmp_path / "model")
    loaded = VHE.load(tmp_path / "model")
    assert loaded.network_.name == network.name
    # an unpaired surrogate, which UTF-8 cannot encode, is part of no word and may be replaced
    assert loaded.network_.texts in (network.texts, (text.replace("\udc80", "?"), "x y", "y"))
    np.testing.assert_array_equal(loaded.embedding_, model.embedding_)
    assert loaded.explain("a", "b").text_score == model.explain("a", "b").text_score


def test_an_id_that_cannot_be_saved(hasty: New, tmp_path: Path) -> None:
    ids = [date(2019, 12, 8), date(2019, 12, 9), "c"]
    model = hasty().fit(TextNetwork(ids, ["x y", "y", "x"], [[0, 1], [1, 2]]))
    assert model.embed([ids[0]]).shape == (1, 16)
    with pytest.raises(VHEError, match="cannot be saved"):
        model.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_a_directed_network_stays_directed(hasty: New, tmp_path: Path) -> None:
    network = TextNetwork("abc", ["x", "y", "x y"], [[1, 0], [2, 1], [1, 1]], directed=True)
    hasty().fit(network).save(tmp_path / "model")
    loaded = VHE.load(tmp_path / "model").network_
    assert loaded.directed
    assert loaded.edges.tolist() == [[1, 0], [2, 1], [1, 1]]


@pytest.mark.parametrize("name", ["weights.safetensors", "vertices.parquet", "config.json"])
def test_a_damaged_model_is_not_loaded(saved: Path, name: str) -> None:
    data = bytearray((saved / name).read_bytes())
    data[len(data) // 2] ^= 1
    (saved / name).write_bytes(data)
    with pytest.raises(VHEError, match=name):
        load_model(saved)


@pytest.mark.parametrize("cls", [VHE, PairVHE])
def test_a_folder_that_does_not_exist(cls: type[Estimator], tmp_path: Path) -> None:
    with pytest.raises(VHEError, match="no such model folder"):
        cls.load(tmp_path / "nothing")


def test_saving_replaces_a_model_and_nothing_else(
    fitted: VHE, fitted_pair: PairVHE, hasty: New, tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    fitted_pair.save(folder)
    small = hasty().fit(fitted.network_.subnetwork(np.arange(30)))
    small.save(folder)
    assert len(VHE.load(folder).network_) == 30
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "thesis.tex").write_text("years")
    with pytest.raises(VHEError, match="work"):
        small.save(tmp_path / "work")
    assert (tmp_path / "work" / "thesis.tex").read_text() == "years"


# --- a folder whose checksums are right, but whose files are inconsistent


def rewrite(saved: Path, name: str, change: Callable[[bytes], bytes]) -> None:
    files = read_folder(saved, "model")
    files[name] = change(files[name])
    write_folder(saved, files, "model")


def edited(**changes: Any) -> Callable[[bytes], bytes]:
    return lambda data: json.dumps({**json.loads(data), **changes}).encode()


def with_setting(name: str, value: Any) -> Callable[[bytes], bytes]:
    def change(data: bytes) -> bytes:
        about = json.loads(data)
        about["config"][name] = value
        return json.dumps(about).encode()

    return change


def with_number(name: str, value: Any) -> Callable[[bytes], bytes]:
    def change(data: bytes) -> bytes:
        about = json.loads(data)
        about["numbers"][name] = value
        return json.dumps(about).encode()

    return change


def without_number(name: str) -> Callable[[bytes], bytes]:
    def change(data: bytes) -> bytes:
        about = json.loads(data)
        del about["numbers"][name]
        return json.dumps(about).encode()

    return change


def without_a_word(data: bytes) -> bytes:
    return data.split(b"\n", 1)[1]


def with_tensor(name: str, tensor: torch.Tensor | None) -> Callable[[bytes], bytes]:
    def change(data: bytes) -> bytes:
        tensors = load(data)
        tensors.pop(name, None)
        return save(tensors if tensor is None else {**tensors, name: tensor})

    return change


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("config.json", lambda data: b"{}"),
        ("config.json", lambda data: b"[]"),
        ("config.json", lambda data: b"\xff"),
        ("config.json", edited(model="neither")),
        ("config.json", edited(model=["graph"])),
        ("config.json", edited(numbers=[1.0])),
        ("config.json", edited(numbers={})),
        ("config.json", with_number("link.offset", "steep")),
        ("config.json", with_number("link.offset", float("nan"))),
        ("config.json", with_number("link.embedding", float("inf"))),
        ("config.json", with_number("link.unheard_of", 1.0)),
        ("config.json", with_number("unheard_of", 1.0)),
        ("config.json", without_number("link.offset")),
        ("config.json", without_number("link.embedding")),
        ("config.json", edited(config={"latent_dim": -2})),
        ("config.json", edited(config={"unheard_of": 2.0})),
        ("config.json", with_setting("latent_dim", 24)),
        ("vocabulary.txt", without_a_word),
        ("vocabulary.txt", lambda data: b"\xff\n"),
        ("weights.safetensors", lambda data: b""),
        ("weights.safetensors", with_tensor("mean", torch.zeros(3, 16))),
        ("weights.safetensors", with_tensor("mean", torch.full((60, 16), torch.nan))),
        ("weights.safetensors", with_tensor("mean", None)),
        ("weights.safetensors", with_tensor("idf", torch.zeros(3))),
        ("weights.safetensors", with_tensor("idf", None)),
        ("weights.safetensors", with_tensor("structure", torch.zeros(3, 0))),
        ("weights.safetensors", with_tensor("structure", torch.zeros(60))),
        ("weights.safetensors", with_tensor("structure", None)),
        ("weights.safetensors", with_tensor("structure_signs", torch.zeros(60))),
        ("weights.safetensors", with_tensor("structure_signs", None)),
        ("weights.safetensors", with_tensor("scale.unheard of", torch.zeros(60, 16))),
        ("weights.safetensors", with_tensor("additional", torch.zeros(3))),
        ("vertices.parquet", lambda data: b"PAR1"),
        ("edges.parquet", lambda data: b""),
        ("result.json", lambda data: b"{}"),
        ("result.json", edited(seed="seven")),
        ("history.jsonl", lambda data: b"{\n"),
    ],
)
def test_inconsistent_files_are_refused_in_one_sentence(
    saved: Path, name: str, change: Callable[[bytes], bytes]
) -> None:
    rewrite(saved, name, change)
    with pytest.raises(VHEError, match=str(saved)) as refused:
        load_model(saved)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "name", ["words", "centre", "variance", "precision", "diagonal", "neighbours.pairs"]
)
def test_a_missing_or_wrong_table_of_the_graph_model(
    fitted: VHE, tmp_path: Path, name: str
) -> None:
    for tensor in (None, torch.zeros(3, 3)):
        fitted.save(tmp_path / "model")
        rewrite(tmp_path / "model", "weights.safetensors", with_tensor(name, tensor))
        with pytest.raises(VHEError, match="incomplete or inconsistent") as refused:
            VHE.load(tmp_path / "model")
        assert "\n" not in str(refused.value)


def test_the_numbers_of_the_other_model_are_refused(
    fitted: VHE, fitted_pair: PairVHE, tmp_path: Path
) -> None:
    for name, model, other in (("a", fitted, "pair"), ("b", fitted_pair, "graph")):
        model.save(tmp_path / name)
        rewrite(tmp_path / name, "config.json", edited(model=other))
        with pytest.raises(VHEError) as refused:
            load_model(tmp_path / name)
        assert "\n" not in str(refused.value)
