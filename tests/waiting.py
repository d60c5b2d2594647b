"""Wait for a condition."""

import time
from collections.abc import Callable


def until(condition: Callable[[], object], seconds: float = 120) -> None:
    """Wait until the condition is true; fail after some seconds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"still false after {seconds} s"
        time.sleep(0.01)
