"""A large model folder gives the same answers, although its ids and texts stay on disk."""

from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vhe.data.network import TextNetwork
from vhe.errors import VHEError
from vhe.fitted import open_model
from vhe.storage import model_folder
from vhe.storage.stored_network import StoredNetwork

New = Callable[..., Any]


@pytest.fixture
def partly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders of any size are large, and rows are written in small groups."""
    monkeypatch.setattr(model_folder, "LARGE", 0)
    monkeypatch.setattr(model_folder, "LARGE_TABLE", 0)
    monkeypatch.setattr(model_folder, "ROW_GROUP", 7)


@pytest.fixture
def opened(fitted: Any, tmp_path: Path, partly: None) -> Any:
    fitted.save(tmp_path / "model")
    return open_model(tmp_path / "model")


def test_a_large_model_gives_the_same_answers(fitted: Any, opened: Any) -> None:
    assert isinstance(opened.network_, StoredNetwork)
    ids = fitted.network_.ids
    assert opened.suggest_links(ids[9]) == fitted.suggest_links(ids[9])
    assert opened.explain(ids[0], ids[5]) == fitted.explain(ids[0], ids[5])
    pairs = [(ids[0], ids[5]), (ids[59], ids[3])]
    np.testing.assert_array_equal(opened.predict_proba(pairs), fitted.predict_proba(pairs))
    np.testing.assert_array_equal(opened.embed(ids[4]), fitted.embed(ids[4]))
    for one, other in zip(opened.embed_texts(["t0w1"]), fitted.embed_texts(["t0w1"]), strict=True):
        np.testing.assert_array_equal(one, other)
    opened.add_vertices({"new": "t0w1 t0w2"}, [("new", ids[0])])
    assert opened.network_.ids == (*ids, "new")


def test_a_stored_network_has_the_values_of_one_in_memory(fitted: Any, opened: Any) -> None:
    stored, network = opened.network_, fitted.network_
    assert tuple(stored.ids) == network.ids
    assert tuple(stored.texts) == network.texts
    assert len(stored) == len(network)
    assert stored.ids[-1] == network.ids[-1]
    assert stored.texts[8:15] == list(network.texts[8:15])
    with pytest.raises(IndexError):
        stored.texts[len(network)]
    np.testing.assert_array_equal(stored.links, network.links)
    assert (stored.labels is None) == (network.labels is None)
    assert network.ids[3] in stored
    assert "nobody" not in stored
    part, other = stored.subnetwork([4, 20]), network.subnetwork([4, 20])
    assert (part.ids, part.texts) == (other.ids, other.texts)


def test_every_kind_of_id_is_found(new: New, tmp_path: Path, partly: None) -> None:
    ids: list[Hashable] = ["12", 12, 1.5, True, ("a", 2), b"x", "ä b", "tuple", 7]
    texts = [f"some words {k % 3} of a text" for k in range(len(ids))]
    links = [(k, k + 1) for k in range(len(ids) - 1)]
    labels = [None, "x", *range(len(ids) - 2)]
    new().fit(TextNetwork(ids, texts, links, labels)).save(tmp_path / "model")
    network = open_model(tmp_path / "model").network_  # type: ignore[union-attr]
    assert [network.index(vertex) for vertex in ids] == list(range(len(ids)))
    assert list(network.labels or ()) == labels
    assert network.find("12") == "12"
    assert network.find("7") == 7
    assert network.find("1.5") == 1.5
    assert network.find("True") is True
    assert network.find("('a', 2)") == ("a", 2)
    assert network.find("nobody") is None
    for unknown in ("13", 13, "Tuple", ["a"]):
        with pytest.raises(VHEError, match="has no vertex"):
            network.index(unknown)  # type: ignore[arg-type]


def test_the_folder_can_be_replaced_while_it_is_open(
    fitted: Any, opened: Any, tmp_path: Path
) -> None:
    texts = fitted.network_.texts
    assert opened.network_.texts[0] == texts[0]
    fitted.save(tmp_path / "model")
    assert list(opened.network_.texts) == list(texts)


@pytest.mark.parametrize("rows", ["fewer", "more"])
def test_a_file_with_other_rows_is_refused(
    fitted: Any, tmp_path: Path, partly: None, rows: str
) -> None:
    import pyarrow.parquet as pq

    from vhe.storage.folder import read_folder, write_folder

    fitted.save(tmp_path / "model")
    files = read_folder(tmp_path / "model", "model")
    table = pq.read_table(tmp_path / "model" / "vertices.parquet")
    changed = table[:-1] if rows == "fewer" else table.take([*range(len(table)), 0])
    pq.write_table(changed, tmp_path / "changed.parquet")
    files["vertices.parquet"] = (tmp_path / "changed.parquet").read_bytes()
    write_folder(tmp_path / "model", files, "model")
    with pytest.raises(VHEError, match="rows"):
        open_model(tmp_path / "model")
