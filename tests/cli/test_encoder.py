"""vhe fit and vhe add with vectors: a column, a file, and what is asked of new vertices."""

import json
from pathlib import Path

import numpy as np
import pytest

from vhe.cli import main
from vhe.estimators import load_model

N = 40
SET = ["--set", "latent_dim=8", "max_steps=2", "--seed", "1", "--threads", "1"]


def vectors() -> np.ndarray:
    noise = 0.1 * np.random.default_rng(0).normal(size=(N, 4))
    return np.eye(4)[np.arange(N) % 4] + noise


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Vertices with vectors, with texts, with neither, and edges between those of one topic."""
    folder = tmp_path_factory.mktemp("files")
    rows = [f"v{k}," + " ".join(map(str, row)) for k, row in enumerate(vectors())]
    (folder / "vectors.csv").write_text("id,vector\n" + "\n".join(rows) + "\n")
    (folder / "ids.csv").write_text("id\n" + "".join(f"v{k}\n" for k in range(N)))
    texts = "".join(f"v{k},topic{k % 4} word{k % 3}\n" for k in range(N))
    (folder / "texts.csv").write_text("id,text\n" + texts)
    edges = [f"v{k},v{(k + step) % N},{step}" for k in range(N) for step in (4, 8)]
    (folder / "edges.csv").write_text("source,target,weight\n" + "\n".join(edges) + "\n")
    np.save(folder / "vectors.npy", vectors())
    return folder


def fit(files: Path, name: str, out: Path, *options: str) -> int:
    tokens = ["fit", str(files / name), "--edges", str(files / "edges.csv"), "--out", str(out)]
    return main([*tokens, *SET, *options])


@pytest.fixture(scope="module")
def given(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("model") / "m"
    assert fit(files, "vectors.csv", out) == 0
    return out


def test_a_column_and_a_file_of_vectors_give_the_same_model(
    files: Path, given: Path, tmp_path: Path
) -> None:
    assert fit(files, "ids.csv", tmp_path / "m", "--vectors", str(files / "vectors.npy")) == 0
    column, file = load_model(given), load_model(tmp_path / "m")
    np.testing.assert_array_equal(file.embedding_, column.embedding_)
    assert set(column.network_.edge_weights) == {4.0, 8.0}


def test_the_weight_is_fixed_by_an_option(
    files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--vectors", str(files / "vectors.npy"), "--encoder-weight", "0.3", "--json"]
    assert fit(files, "texts.csv", tmp_path / "m", *options) == 0
    assert json.loads(capsys.readouterr().out)["encoder"]["weight"] == 0.3
    assert load_model(tmp_path / "m").config.encoder_weight == 0.3
    assert fit(files, "texts.csv", tmp_path / "n", "--encoder-weight", "2") == 2
    assert "encoder_weight" in capsys.readouterr().err


def test_new_vertices_of_a_model_of_vectors(
    given: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = tmp_path / "new.csv"
    command = ["add", str(given), "--vertices", str(new), "--out", str(tmp_path / "grown")]
    new.write_text("id,text\nn1,topic1\n")
    assert main(command) == 2
    assert "fitted on given vectors (4 columns); give vectors" in capsys.readouterr().err
    row = " ".join(map(str, vectors()[1]))
    new.write_text(f"id,vector\nn1,{row}\nn2,0 1 nan 0\n")
    assert main(command) == 2
    assert "new.csv:3, column 2 is nan" in capsys.readouterr().err
    new.write_text(f"id,vector\nn1,{row}\n")
    assert main(command) == 0
    by_column = load_model(tmp_path / "grown").embed("n1")
    new.write_text("id\nn1\n")
    np.save(tmp_path / "new.npy", vectors()[1:2])
    assert main([*command, "--vectors", str(tmp_path / "new.npy"), "--overwrite"]) == 0
    np.testing.assert_array_equal(load_model(tmp_path / "grown").embed("n1"), by_column)


def test_vectors_of_new_vertices_that_no_model_asked_for(
    files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fit(files, "texts.csv", tmp_path / "m") == 0
    (tmp_path / "new.csv").write_text("id,text,vector\nn1,topic1 word2,1 2 3\n")
    command = ["add", str(tmp_path / "m"), "--vertices", str(tmp_path / "new.csv")]
    assert main([*command, "--out", str(tmp_path / "grown")]) == 0
    assert "the vectors are not used" in capsys.readouterr().err


def test_the_pair_model_takes_no_vectors(
    files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tokens = ["fit", str(files / "vectors.csv"), "--edges", str(files / "edges.csv")]
    out = ["--out", str(tmp_path / "m"), "--model", "pair", "--epochs", "0"]
    assert main([*tokens, *out]) == 0
    message = "note: the pair model does not use the vectors and the weights of links"
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--encoder-weight", "0.3"], "--encoder-weight: texts has no vectors; add --encoder or"),
        (["--encoder-weight", "0.3", "--model", "pair"], "--encoder-weight: the pair model reads"),
        (["--encoder", "x", "--model", "pair"], "--encoder: the pair model reads words only"),
        (["--vectors", "x.npy", "--scheduler", "local"], "--vectors: a cluster reads words only"),
        (["--encoder", "x", "--encoder-device", "none"], "device 'none' is not available"),
        (["--encoder", "x", "--encoder-batch", "0"], "--encoder-batch"),
    ],
)
def test_wrong_options_are_one_sentence(
    files: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    message: str,
) -> None:
    tokens = ["fit", str(files / "texts.csv"), "--edges", str(files / "edges.csv")]
    assert main([*tokens, "--out", str(tmp_path / "m"), *options]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "m").exists()
