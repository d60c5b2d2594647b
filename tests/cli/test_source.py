"""Networks that are named on the command line."""

import time
from pathlib import Path

import pytest

from vhe.cli.source import read_network
from vhe.data.network import TextNetwork
from vhe.runtime import progress


def test_a_long_reading_reports_progress(
    tmp_path: Path,
    network: TextNetwork,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def read(*_: object, **__: object) -> TextNetwork:
        time.sleep(0.1)
        return network

    monkeypatch.setattr("vhe.data.sources.read", read)
    monkeypatch.setattr(progress, "FIRST_LINE_SECONDS", 0.01)
    assert read_network(str(tmp_path)) is network
    assert "reading" in capsys.readouterr().err
