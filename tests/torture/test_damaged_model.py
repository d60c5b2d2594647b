"""A model folder that is not as it was written, or that was written to do harm, is refused."""

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vhe.errors import VHEError
from vhe.estimators import VHE


@pytest.fixture
def saved(fitted: VHE, tmp_path: Path) -> Path:
    fitted.save(tmp_path / "model")
    return tmp_path / "model"


def truncated(data: bytes, draw: random.Random) -> bytes:
    return data[: draw.choice((0, len(data) - 1, draw.randrange(len(data))))]


def one_bit_flipped(data: bytes, draw: random.Random) -> bytes:
    damaged = bytearray(data)
    damaged[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    return bytes(damaged)


@pytest.mark.parametrize("damage", [truncated, one_bit_flipped])
def test_damage(
    saved: Path,
    damage: Callable[[bytes, random.Random], bytes],
    times: Callable[[int, int], int],
    figures: dict[str, Any],
) -> None:
    """A file at random, the small ones as often as the large: none is loaded."""
    draw, count, refused = random.Random(1), times(60, 1000), 0
    names = sorted(os.listdir(saved))
    for k in range(count):
        path = saved / names[k % len(names)]
        data = path.read_bytes()
        path.write_bytes(damage(data, draw))
        with pytest.raises(VHEError, match=str(saved)):
            VHE.load(saved)
        refused += 1
        path.write_bytes(data)
    VHE.load(saved)
    figures |= {"damaged": count, "refused": refused}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_attacks(
    saved: Path,
    run_program: Callable[..., dict[str, Any]],
    times: Callable[[int, int], int],
    figures: dict[str, Any],
    tmp_path: Path,
) -> None:
    """Each is refused within a second and 200 MB; nothing is executed, nothing is written."""
    (tmp_path / "attacks").mkdir()
    figures |= run_program("attacks.py", saved, tmp_path / "attacks", times(3, 1))
    assert figures["problems"] == []
