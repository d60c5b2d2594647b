"""No command makes external requests, except to download a named dataset."""

import socket
from pathlib import Path
from typing import Any, NoReturn

import pytest

from vhe.cli import main
from vhe.data.network import TextNetwork
from vhe.data.readers.network_tables import write_tables


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Block connections and name lookups; return the list of attempts."""
    attempts: list[object] = []

    def refuse(*arguments: object, **options: object) -> NoReturn:
        attempts.append(arguments)
        raise OSError(101, "Network is unreachable")

    for name in ("connect", "connect_ex", "sendto", "bind"):
        monkeypatch.setattr(socket.socket, name, refuse)
    for name in ("create_connection", "getaddrinfo", "gethostbyname"):
        monkeypatch.setattr(socket, name, refuse)
    return attempts


def test_fit_embed_and_score_without_a_network(
    network: TextNetwork, tiny: dict[str, Any], tmp_path: Path, no_network: list[object]
) -> None:
    files = tmp_path / "vertices.csv", tmp_path / "edges.csv"
    write_tables(*files, network)
    model = str(tmp_path / "model")
    settings = [f"{name}={value}" for name, value in (tiny | {"max_steps": 2}).items()]
    source = ["--vertices", str(files[0]), "--edges", str(files[1])]
    assert main(["fit", *source, "--out", model, "--seed", "1", "--set", *settings]) == 0
    assert main(["embed", model, "--out", str(tmp_path / "embedding.parquet"), "--std"]) == 0
    assert main(["score", model, "v1", "v2", "--json"]) == 0
    assert main(["doctor"]) == 0
    assert main(["data"]) == 0
    assert no_network == []


def test_downloading_a_dataset_is_attempted_and_fails_with_one_line(
    no_network: list[object], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: Any
) -> None:
    """Shows that the fixture notices requests, too."""
    monkeypatch.setenv("VHE_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("VHE_CACHE", str(tmp_path))
    assert main(["data", "cora"]) == 2
    assert no_network != []
    assert capfd.readouterr().err.startswith("vhe: ")
