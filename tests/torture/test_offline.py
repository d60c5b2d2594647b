"""Nothing asks the network for anything, unless a dataset is asked for by its name."""

import socket
from pathlib import Path
from typing import Any, NoReturn

import pytest

from vhe.cli import main
from vhe.data.network import TextNetwork
from vhe.data.readers.files import write_files


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """No socket can be connected nor a name looked up; what was asked for is listed."""
    asked: list[object] = []

    def refuse(*arguments: object, **options: object) -> NoReturn:
        asked.append(arguments)
        raise OSError(101, "Network is unreachable")

    for name in ("connect", "connect_ex", "sendto", "bind"):
        monkeypatch.setattr(socket.socket, name, refuse)
    for name in ("create_connection", "getaddrinfo", "gethostbyname"):
        monkeypatch.setattr(socket, name, refuse)
    return asked


def test_fit_embed_and_score_without_a_network(
    network: TextNetwork, tiny: dict[str, Any], tmp_path: Path, no_network: list[object]
) -> None:
    files = tmp_path / "vertices.csv", tmp_path / "edges.csv"
    write_files(*files, network)
    model = str(tmp_path / "model")
    settings = [f"{name}={value}" for name, value in (tiny | {"steps": 2}).items()]
    source = ["--vertices", str(files[0]), "--edges", str(files[1])]
    assert main(["fit", *source, "--out", model, "--seed", "1", "--set", *settings]) == 0
    assert main(["embed", model, "--out", str(tmp_path / "embedding.parquet"), "--std"]) == 0
    assert main(["score", model, "v1", "v2", "--json"]) == 0
    assert main(["doctor"]) == 0
    assert main(["data"]) == 0
    assert no_network == []


def test_the_guard_would_notice(
    no_network: list[object], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: Any
) -> None:
    """A dataset that is asked for is the one thing that is fetched; without a network, one line."""
    monkeypatch.setenv("VHE_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("VHE_CACHE", str(tmp_path))
    assert main(["data", "cora"]) == 2
    assert no_network != []
    assert capfd.readouterr().err.startswith("vhe: ")
