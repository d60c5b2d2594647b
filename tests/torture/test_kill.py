"""A training run that is killed at any moment can be resumed to the same weights."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def test_killed_at_random_moments(
    run_program: Callable[..., dict[str, Any]],
    part: int,
    count: int,
    figures: dict[str, Any],
    small_settings: dict[str, dict[str, Any]],
    tmp_path: Path,
) -> None:
    figures |= run_program("kill.py", tmp_path, count, part, json.dumps(small_settings))
    assert figures["problems"] == []
    assert (figures["identical"], figures["unreadable"]) == (count, 0)
