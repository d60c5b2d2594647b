"""A server that is killed at any moment has lost nothing that it acknowledged."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def test_killed_while_writing(
    run_program: Callable[..., dict[str, Any]],
    times: Callable[[int, int], int],
    figures: dict[str, Any],
    tmp_path: Path,
) -> None:
    kills = times(2, 100)
    figures |= run_program("kill_server.py", tmp_path, kills, 0)
    assert figures["problems"] == []
    assert (figures["kills"], figures["lost"], figures["unreadable"]) == (kills, 0, 0)
    assert figures["acknowledged"] > kills
