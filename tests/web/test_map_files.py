"""The map as a file: page, picture and table."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as parquet
import pytest

from vhe.cli import main
from vhe.data.network import TextNetwork
from vhe.data.readers.tables import write_table
from vhe.estimators import VHE
from vhe.predict.layout import layout
from vhe.web.loading import load, map_coordinates
from vhe.web.map_data import grouped_labels
from vhe.web.map_files import write_map
from vhe.web.report import MIN_PROBABILITY
from vhe.web.start import start_service


@pytest.fixture(scope="module")
def coordinates(fitted: VHE) -> np.ndarray:
    return layout(fitted.embedding_, seed=1)


def test_the_table_has_the_columns_of_embedding_atlas(
    fitted: VHE, coordinates: np.ndarray, tmp_path: Path
) -> None:
    write_map(tmp_path / "map.parquet", fitted, coordinates)
    table = parquet.read_table(tmp_path / "map.parquet").to_pydict()
    network = fitted.network_
    assert list(table) == ["id", "text", "label", "x", "y", "degree", "uncertainty"]
    assert table["id"] == list(network.ids)
    assert table["text"] == list(network.texts)
    assert table["label"] == list(network.labels)
    assert table["degree"] == network.degrees.tolist()
    np.testing.assert_allclose(np.column_stack([table["x"], table["y"]]), coordinates)
    np.testing.assert_allclose(table["uncertainty"], fitted.embedding_std_.mean(axis=1))


def test_the_picture_contains_all_label_colours(
    fitted: VHE, coordinates: np.ndarray, tmp_path: Path
) -> None:
    image = pytest.importorskip("matplotlib.image")
    write_map(tmp_path / "map.png", fitted, coordinates)
    pixels = (255 * image.imread(tmp_path / "map.png")[:, :, :3]).round().astype(int)
    assert pixels.shape == (1800, 2560, 3)
    seen = set(np.unique(pixels @ [0x10000, 0x100, 1]).tolist())
    assert {0x7E55BA, 0xD8741A, 0x852B01, 0x638DF0, 0xE4AE1A} < seen


def test_the_page_contains_each_suggested_link_once(
    fitted: VHE, coordinates: np.ndarray, tmp_path: Path
) -> None:
    write_map(tmp_path / "map.html", fitted, coordinates)
    page = (tmp_path / "map.html").read_text("utf-8")
    found = re.search(r'type="application/json">(.*?)</script>', page, re.S)
    assert found is not None
    data = json.loads(found[1])
    network = fitted.network_
    pairs = np.array(data["suggested"], dtype=int).reshape(-1, 2)
    keys = {tuple(pair) for pair in pairs.tolist()}
    assert len(keys) == len(pairs) > 0
    assert not keys & {tuple(link) for link in network.links.tolist()}
    probabilities = fitted.predict_proba(
        [(network.ids[a], network.ids[b]) for a, b in pairs], balanced=False
    )
    assert data["probability"] == pytest.approx(probabilities, abs=1e-3)
    assert min(data["probability"]) >= MIN_PROBABILITY - 1e-3


def test_no_labels_and_odd_ids(hasty: Callable[..., VHE], tmp_path: Path) -> None:
    texts = ["a b c", "b c d", "c d e", "d e f"]
    network = TextNetwork([("x", 1), 2, "$math$", "\ud800"], texts, [[0, 1], [2, 3]], name="$x_1$")
    model = hasty().fit(network)
    for ending in ("html", "png", "parquet"):
        write_map(tmp_path / f"map.{ending}", model, layout(model.embedding_))
        assert (tmp_path / f"map.{ending}").stat().st_size > 1000


def test_the_command_writes_the_map(
    fitted: VHE, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fitted.save(tmp_path / "model")
    out = tmp_path / "deep" / "map.parquet"
    assert main(["map", str(tmp_path / "model"), "--out", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"out": str(out), "vertices": 60}
    assert out.is_file()
    assert main(["map", str(tmp_path / "model"), "--out", str(tmp_path / "map.gif")]) == 2
    assert ".html, .png, .parquet" in capsys.readouterr().err


def test_a_missing_matplotlib_is_reported_with_the_extra(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vhe.cli.map.find_spec", lambda name: None)
    assert main(["map", "no-model", "--out", "map.png"]) == 2
    assert "pip install 'vhe[plot]'" in capsys.readouterr().err


def test_too_many_dotted_labels_are_grouped() -> None:
    tree = [f"{root}.part{k}" for root in "abc" for k in range(9) for _ in range(k + 1)]
    groups = grouped_labels([*tree, "a", None])
    assert groups is not None
    assert len(set(groups) - {None}) == 12
    assert groups[-2:] == ["a", None]
    assert "c.part8" in groups
    few, plain = ["a.b", "a.c"], [f"label {k}." for k in range(40)]
    assert grouped_labels(few) is few
    assert grouped_labels(plain) is plain
    assert grouped_labels(None) is None


def test_one_layout_for_all_commands(
    network: TextNetwork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, vertices, edges = (tmp_path / name for name in ("model", "vertices.csv", "edges.csv"))
    write_table(vertices, {"id": network.ids, "text": network.texts})
    ends = network.links.T.tolist()
    write_table(
        edges, {e: [network.ids[k] for k in ends[i]] for i, e in enumerate(("source", "target"))}
    )
    source = ["--vertices", str(vertices), "--edges", str(edges)]
    settings = ["latent_dim=16", "min_count=1", "max_words=16", "max_steps=0"]
    fit = ["fit", *source, "--out", str(model), "--map", "--seed", "0", "--set", *settings]
    assert main(fit) == 0
    stored = load(model).coordinates
    assert stored is not None
    monkeypatch.setattr("vhe.predict.layout.layout", lambda *_: pytest.fail("computed again"))
    assert main(["map", str(model), "--out", str(tmp_path / "map.parquet")]) == 0
    table = parquet.read_table(tmp_path / "map.parquet").to_pydict()
    assert [table["x"], table["y"]] == stored.T.tolist()
    report = ["report", str(model), "--out", str(tmp_path / "report.html"), "--skip-accuracy"]
    assert main(report) == 0
    service = start_service(model)
    assert service.snapshot.layout == "final"
    np.testing.assert_array_equal(service.snapshot.explorer.coordinates, stored)
    service.close()


def test_another_seed_replaces_the_stored_layout(fitted: VHE, tmp_path: Path) -> None:
    model = tmp_path / "model"
    fitted.save(model)
    found = map_coordinates(model, load(model, 0), 0)
    other = map_coordinates(model, load(model, 5), 5)
    assert np.abs(found - other).max() > 0
    np.testing.assert_array_equal(load(model).coordinates, other)
    assert load(model, 0).coordinates is None
    np.testing.assert_array_equal(map_coordinates(model, load(model)), other)  # of any seed
