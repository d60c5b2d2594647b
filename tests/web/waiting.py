"""Wait for a condition in a page."""

from typing import Any

import pytest

TIMEOUT, INTERVAL = 20, 0.02  # seconds


def until(page: Any, expression: str) -> None:
    """Wait until a JavaScript expression is true in the page.

    Playwright's ``wait_for_function`` uses eval, which the Content-Security-Policy forbids.
    """
    for _ in range(round(TIMEOUT / INTERVAL)):
        if page.evaluate(f"Boolean({expression})"):
            return
        page.wait_for_timeout(1000 * INTERVAL)
    pytest.fail(f"after {TIMEOUT} s still false: {expression}")
