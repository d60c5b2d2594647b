"""`vhe doctor MODEL` verifies a model folder and explains what is beside it."""

import json
from pathlib import Path
from typing import Any

from vhe.cli import main
from vhe.estimators import VHE
from vhe.storage.folder import write_folder


def test_a_sound_model(fitted: VHE, tmp_path: Path, capfd: Any) -> None:
    fitted.save(tmp_path / "m")
    assert main(["doctor", str(tmp_path / "m")]) == 0
    printed = " ".join(capfd.readouterr().out.split())
    assert "sound: graph model, 60 vertices" in printed
    assert "left-over files none" in printed


def test_a_damaged_model_and_left_over_files(fitted: VHE, tmp_path: Path, capfd: Any) -> None:
    model = tmp_path / "m"
    fitted.save(model)
    (model / "result.json").write_text("{}")
    write_folder(tmp_path / "m.training", {"training.json": b"{}"}, "training")
    for name in (".m.12345678.part", ".m.b.12345678.part", ".m.previous"):
        (tmp_path / name).mkdir()
    (tmp_path / ".map.html.12345678.part").write_text("half")
    before = sorted(path.name for path in tmp_path.iterdir())
    assert main(["doctor", str(model), "--json"]) == 1
    captured = capfd.readouterr()
    report = json.loads(captured.out)
    assert not report["sound"]
    assert "result.json: the file has changed" in report["problem"]
    beside = {Path(entry["path"]).name: entry["explanation"] for entry in report["beside"]}
    assert set(beside) == {
        ".m.12345678.part", ".m.previous", "m.training", ".map.html.12345678.part",
    }  # fmt: skip
    assert "unfinished model" in beside[".m.12345678.part"]
    assert "--resume" in beside["m.training"]
    assert sorted(path.name for path in tmp_path.iterdir()) == before  # nothing was changed


def test_no_model(tmp_path: Path, capfd: Any) -> None:
    assert main(["doctor", str(tmp_path / "nothing")]) == 2
    assert "no such model folder" in capfd.readouterr().err
