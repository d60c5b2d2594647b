"""`vhe fit --scheduler`, and what can be asked of the model that it writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyarrow import parquet

from vhe.cli import main
from vhe.config import VHEConfig
from vhe.data.network import TextNetwork
from vhe.scale import ShardedModel


@pytest.fixture(scope="module")
def fitted(
    cluster: Any,
    dataset: Path,
    scale_config: VHEConfig,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    out = tmp_path_factory.mktemp("command") / "model"
    settings = scale_config.to_dict()
    changed = {k: v for k, v in settings.items() if v != VHEConfig().to_dict()[k]}
    paths = ["--vertices", str(dataset / "vertices"), "--edges", str(dataset / "edges")]
    options = ["--scheduler", cluster.scheduler_address, "--max-memory", "1GB", "--seed", "3"]
    changes = [part for k, v in changed.items() for part in ("--set", f"{k}={v}")]
    assert main(["fit", *paths, "--out", str(out), *options, *changes]) == 0
    return out


def test_suggestions_of_a_vertex(fitted: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert not main(["suggest", str(fitted), "p9", "-k", "3", "--json"])
    found = json.loads(capsys.readouterr().out)
    expected = ShardedModel(fitted).suggest("p9", 3)
    assert [link["id"] for link in found["links"]] == [s.id for s in expected]


def test_suggestions_of_all_vertices(fitted: Path, tmp_path: Path) -> None:
    assert not main(
        ["suggest", str(fitted), "--all", "-k", "2", "--out", str(tmp_path / "s.parquet")]
    )
    table = parquet.read_table(tmp_path / "s.parquet").to_pandas()
    own = table[table["source"] == "p9"]
    assert own["target"].tolist() == [s.id for s in ShardedModel(fitted).suggest("p9", 2)]
    assert len(table) == 600


def test_embedding(fitted: Path, textual: TextNetwork, tmp_path: Path) -> None:
    assert not main(["embed", str(fitted), "--std", "--out", str(tmp_path / "e.parquet")])
    table = parquet.read_table(tmp_path / "e.parquet").to_pandas()
    assert table["id"].tolist() == list(textual.ids)
    mean = table[[f"e{k}" for k in range(16)]].to_numpy()
    assert np.array_equal(mean, ShardedModel(fitted).embed(textual.ids))


def test_new_vertices(fitted: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "v.csv").write_text("id,text\nn1,some new text\nn2,another\n")
    (tmp_path / "e.csv").write_text("source,target\nn1,p9\n")
    files = ["--vertices", str(tmp_path / "v.csv"), "--edges", str(tmp_path / "e.csv")]
    out = tmp_path / "grown"
    assert not main(["add", str(fitted), *files, "--out", str(out), "--json"])
    assert json.loads(capsys.readouterr().out)["added"] == 2
    assert len(ShardedModel(out)) == 302
    assert main(["add", str(fitted), *files, "--out", str(out)]) == 2
    assert "exists" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (["suggest", "MODEL"], "give an ID, or --all"),
        (["embed", "MODEL", "--out", "e.csv"], "give --out FILE.parquet"),
        (["explain", "MODEL", "p1", "p2"], "a model in shards"),
        (["fit", "cora", "--scheduler", "local", "--out", "m"], "give --vertices PATH"),
        (["fit", "cora", "--scheduler", "local", "--model", "pair", "--out", "m"], "graph model"),
        (["fit", "cora", "--max-memory", "much", "--out", "m"], "must be such as 3GB"),
        (["fit", "cora", "--max-memory", "3GB", "--model", "pair", "--out", "m"], "graph model"),
    ],
)
def test_one_sentence(
    fitted: Path, command: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [str(fitted) if word == "MODEL" else word for word in command]
    assert main(given) == 2
    assert sentence in " ".join(capsys.readouterr().err.split())
