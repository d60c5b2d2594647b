"""Whenever training is killed, it goes on to the same weights."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def test_killed_at_random_moments(
    run_program: Callable[..., dict[str, Any]],
    times: Callable[[int, int], int],
    figures: dict[str, Any],
    tmp_path: Path,
) -> None:
    runs = times(2, 200)
    figures |= run_program("kill.py", tmp_path, runs, 0)
    assert figures["problems"] == []
    assert (figures["identical"], figures["unreadable"]) == (runs, 0)
