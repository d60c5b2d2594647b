"""Damaged and malicious model folders are refused."""

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vhe.data.network import TextNetwork
from vhe.errors import VHEError
from vhe.estimators import Estimator, load_model


@pytest.fixture
def saved(
    network: TextNetwork, new_estimator: Callable[..., Estimator], tmp_path: Path
) -> dict[str, Path]:
    """A model folder of each model, by its name."""
    folders = {model: tmp_path / model for model in ("graph", "pair")}
    for model, folder in folders.items():
        new_estimator(model).fit(network).save(folder)
    return folders


def truncated(data: bytes, draw: random.Random) -> bytes:
    return data[: draw.choice((0, len(data) - 1, draw.randrange(len(data))))]


def one_bit_flipped(data: bytes, draw: random.Random) -> bytes:
    damaged = bytearray(data)
    damaged[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    return bytes(damaged)


@pytest.mark.parametrize("damage", [truncated, one_bit_flipped])
def test_damage(
    saved: dict[str, Path],
    damage: Callable[[bytes, random.Random], bytes],
    times: Callable[[int, int], int],
    figures: dict[str, Any],
) -> None:
    """Each file is damaged equally often, whatever its size."""
    draw, count, refused = random.Random(1), times(60, 1000), 0
    paths = [folder / name for folder in saved.values() for name in sorted(os.listdir(folder))]
    for k in range(count):
        path = paths[k % len(paths)]
        data = path.read_bytes()
        path.write_bytes(damage(data, draw))
        with pytest.raises(VHEError, match=str(path.parent)):
            load_model(path.parent)
        refused += 1
        path.write_bytes(data)
    for folder in saved.values():
        load_model(folder)
    figures |= {"damaged": count, "refused": refused}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_attacks(
    saved: dict[str, Path],
    run_program: Callable[..., dict[str, Any]],
    times: Callable[[int, int], int],
    figures: dict[str, Any],
    tmp_path: Path,
) -> None:
    """Each is refused within one second and 200 MB; nothing is executed or written."""
    (tmp_path / "attacks").mkdir()
    figures |= run_program("attacks.py", saved["pair"], tmp_path / "attacks", times(3, 1))
    assert figures["problems"] == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_structural_fuzzing(
    saved: dict[str, Path],
    run_program: Callable[..., dict[str, Any]],
    part: int,
    count: int,
    figures: dict[str, Any],
    tmp_path: Path,
) -> None:
    """Values, tables and rows are changed, with right checksums: refused, or finite answers."""
    (tmp_path / "fuzz").mkdir()
    figures |= run_program("structure.py", tmp_path / "fuzz", count, 1 + part, *saved.values())
    assert figures["problems"] == []
    assert figures["refused"] > 0 < figures["answered"]
