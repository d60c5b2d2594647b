"""A saved model is the same after it was loaded; files that do not belong together are refused."""

import json
import os
from collections.abc import Callable, Hashable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vhe.data.network import TextNetwork
from vhe.errors import VHEError
from vhe.estimators import VHE

New = Callable[..., VHE]


@pytest.fixture
def saved(fitted: VHE, tmp_path: Path) -> Path:
    fitted.save(tmp_path / "model")
    return tmp_path / "model"


def test_the_same_seed_gives_the_same_bytes(
    new: New, fitted: VHE, network: TextNetwork, saved: Path, tmp_path: Path
) -> None:
    again = new().fit(network)
    np.testing.assert_array_equal(again.embedding_, fitted.embedding_)
    np.testing.assert_array_equal(again.embedding_std_, fitted.embedding_std_)
    again.save(tmp_path / "again")
    for name in ("weights.safetensors", "vocabulary.txt", "vertices.parquet", "edges.parquet",
                 "config.json"):  # fmt: skip
        assert (saved / name).read_bytes() == (tmp_path / "again" / name).read_bytes(), name


def test_a_loaded_model_answers_as_before(fitted: VHE, network: TextNetwork, saved: Path) -> None:
    loaded = VHE.load(saved)
    for one, other in zip(
        fitted.embed(return_std=True), loaded.embed(return_std=True), strict=True
    ):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    pairs = [("v0", "v5"), ("v1", "v2"), ("v59", "v3")]
    np.testing.assert_array_equal(loaded.predict_proba(pairs), fitted.predict_proba(pairs))
    np.testing.assert_array_equal(loaded.score(pairs), fitted.score(pairs))
    assert loaded.suggest_links("v9") == fitted.suggest_links("v9")
    for contexts in ("all", 6):
        for one, other in zip(
            fitted.embed(contexts=contexts, return_std=True),
            loaded.embed(contexts=contexts, return_std=True),
            strict=True,
        ):
            np.testing.assert_array_equal(one, other)
    assert loaded.history_ == fitted.history_
    assert loaded.result_ == fitted.result_
    assert loaded.config == fitted.config
    assert repr(loaded) == repr(fitted)
    mine, its = network, loaded.network_
    assert (its.ids, its.texts, its.labels) == (mine.ids, mine.texts, mine.labels)
    assert (its.name, its.directed) == (mine.name, mine.directed)
    np.testing.assert_array_equal(its.edges, mine.edges)


def test_a_loaded_model_saves_the_same_bytes(saved: Path, tmp_path: Path) -> None:
    VHE.load(saved).save(tmp_path / "again")
    assert sorted(os.listdir(saved)) == sorted(os.listdir(tmp_path / "again"))
    for file in saved.iterdir():
        assert file.read_bytes() == (tmp_path / "again" / file.name).read_bytes(), file.name


def test_a_model_folder_has_what_its_readers_expect(saved: Path) -> None:
    assert sorted(os.listdir(saved)) == sorted(
        ["config.json", "weights.safetensors", "vocabulary.txt", "vertices.parquet",
         "edges.parquet", "history.jsonl", "result.json", "MANIFEST.json"]
    )  # fmt: skip
    assert json.loads((saved / "result.json").read_text())["seed"] == 3
    assert json.loads((saved / "MANIFEST.json").read_text())["kind"] == "model"
    assert len((saved / "history.jsonl").read_text().splitlines()) == 5
    for file in saved.iterdir():
        assert b"pickle" not in file.read_bytes()


def test_the_changed_settings_of_a_fitted_model_are_not_saved(
    hasty: New, network: TextNetwork, tmp_path: Path
) -> None:
    """What was learned was learned with the settings of that time."""
    model = hasty(homophily=0.5).fit(network)
    model.set_params(homophily=0.75, latent_dim=999)
    model.save(tmp_path / "model")
    assert VHE.load(tmp_path / "model").config.homophily == 0.5


IDS: dict[str, list[Hashable]] = {
    "numbers": [10**20, -1, 0, 7],
    "texts": ["", "naïve 🙂", "a\nb", "null"],
    "tuples": [("a", 1), ("a", (2, "b")), (), ("a", 1.5)],
    "numbers and their texts": [1, "1", 1.5, "1.5"],
    "a mixture": [None, False, b"\xff\x00", ("x", None, True)],
    "texts of undecodable bytes": ["\udc80", "b", "c", "d"],
    "numbers of numpy": list(np.arange(4)),
}


@pytest.mark.parametrize("kind", IDS)
def test_any_ids_survive(hasty: New, kind: str, tmp_path: Path) -> None:
    ids = IDS[kind]
    texts = ["x y", "y z", "z w", "w x"]
    network = TextNetwork(ids, texts, [[0, 1], [1, 2], [2, 3]], labels=[None, *ids[1:]])
    model = hasty().fit(network)
    model.save(tmp_path / "model")
    loaded = VHE.load(tmp_path / "model")
    assert loaded.network_.ids == network.ids
    assert loaded.network_.labels == network.labels
    assert [type(i) for i in loaded.network_.ids] == [type(i) for i in network.ids]
    for place, name in enumerate(network.ids):
        np.testing.assert_array_equal(loaded.embed([name])[0], model.embedding_[place])
    pair = [(ids[0], ids[3])]
    np.testing.assert_array_equal(loaded.predict_proba(pair), model.predict_proba(pair))


@pytest.mark.parametrize("text", ["", "nul \0 in it", "lines\r\n\u2028\x85", "🙂", "bad \udc80"])
def test_any_text_survives(hasty: New, text: str, tmp_path: Path) -> None:
    network = TextNetwork("abc", [text, "x y", "y"], [[0, 1], [1, 2]], name=f"named {text}")
    model = hasty().fit(network)
    model.save(tmp_path / "model")
    loaded = VHE.load(tmp_path / "model")
    assert loaded.network_.name == network.name
    # half a surrogate pair, which UTF-8 cannot hold, belongs to no word and may be replaced
    assert loaded.network_.texts in (network.texts, (text.replace("\udc80", "?"), "x y", "y"))
    np.testing.assert_array_equal(loaded.embed(contexts="all"), model.embed(contexts="all"))


def test_an_id_that_cannot_be_saved(hasty: New, tmp_path: Path) -> None:
    ids = [date(2019, 12, 8), date(2019, 12, 9), "c"]
    model = hasty().fit(TextNetwork(ids, ["x y", "y", "x"], [[0, 1], [1, 2]]))
    assert model.embed([ids[0]]).shape == (1, 16)
    with pytest.raises(VHEError, match="cannot be saved"):
        model.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_a_directed_network_stays_one(hasty: New, tmp_path: Path) -> None:
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
        VHE.load(saved)


def test_there_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(VHEError, match="no such model folder"):
        VHE.load(tmp_path / "nothing")


def test_saving_replaces_an_older_model_and_nothing_else(
    fitted: VHE, hasty: New, saved: Path, tmp_path: Path
) -> None:
    small = hasty().fit(fitted.network_.subnetwork(np.arange(30)))
    small.save(saved)
    assert len(VHE.load(saved).network_) == 30
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "thesis.tex").write_text("years")
    with pytest.raises(VHEError, match="work"):
        small.save(tmp_path / "work")
    assert (tmp_path / "work" / "thesis.tex").read_text() == "years"


# --- a folder whose files are sound but do not belong together


def rewritten(saved: Path, name: str, change: Callable[[bytes], bytes]) -> None:
    from vhe.storage.folder import read_folder, write_folder

    files = read_folder(saved, "model")
    files[name] = change(files[name])
    write_folder(saved, files, "model")


def edited(**changes: Any) -> Callable[[bytes], bytes]:
    return lambda data: json.dumps({**json.loads(data), **changes}).encode()


def without_a_word(data: bytes) -> bytes:
    return data.split(b"\n", 1)[1]


def other_weights(data: bytes) -> bytes:
    import torch

    from vhe.storage.folder import read_tensors, tensor_bytes

    tensors = read_tensors(data, "")
    return tensor_bytes({**tensors, "embedding.mean": torch.zeros(3, 16)})


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("config.json", lambda data: b"{}"),
        ("config.json", lambda data: b"[]"),
        ("config.json", lambda data: b"\xff"),
        ("config.json", edited(calibration=[1.0])),
        ("config.json", edited(calibration=["a", "b"])),
        ("config.json", edited(pi0="none")),
        ("config.json", edited(config={"homophily": 2.0})),
        ("config.json", edited(config={"unheard_of": 2.0})),
        ("vocabulary.txt", without_a_word),
        ("vocabulary.txt", lambda data: b"\xff\n"),
        ("weights.safetensors", lambda data: b""),
        ("weights.safetensors", other_weights),
        ("vertices.parquet", lambda data: b"PAR1"),
        ("edges.parquet", lambda data: b""),
        ("result.json", lambda data: b"{}"),
        ("result.json", edited(seed="seven")),
        ("history.jsonl", lambda data: b"{\n"),
    ],
)
def test_files_that_do_not_belong_together(
    saved: Path, name: str, change: Callable[[bytes], bytes]
) -> None:
    rewritten(saved, name, change)
    with pytest.raises(VHEError) as refused:
        VHE.load(saved)
    assert "\n" not in str(refused.value)
