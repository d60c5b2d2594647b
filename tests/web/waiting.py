"""Waiting for something in a page."""

from typing import Any

import pytest

SECONDS, EACH = 20, 0.02


def until(page: Any, expression: str) -> None:
    """Wait until the expression holds in the page.

    Playwright's own ``wait_for_function`` has the page evaluate text, which our policy forbids it:
    then it fails unless the expression holds at once.
    """
    for _ in range(round(SECONDS / EACH)):
        if page.evaluate(f"Boolean({expression})"):
            return
        page.wait_for_timeout(1000 * EACH)
    pytest.fail(f"it never came to be that {expression}")
