"""Commands in poor environments: a user without a home folder, as in a container."""

from pathlib import Path

import pytest

from vhe.cli import main


@pytest.fixture
def homeless(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "VHE_CACHE", "XDG_CACHE_HOME", "VHE_DATA_DIR"):
        monkeypatch.delenv(name, raising=False)

    def unknown(*_: object) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", unknown)


@pytest.mark.parametrize("command", [["data"], ["data", "cora"], ["doctor"]], ids=" ".join)
def test_an_unknown_home_folder_is_one_sentence(
    command: list[str], homeless: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command) == 2
    (sentence,) = capsys.readouterr().err.splitlines()
    assert sentence.startswith("vhe: the home folder of this user is unknown; set VHE_CACHE")
