"""Pages in a browser that must neither log an error nor send a request to another host."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.web.waiting import until

EXPECTED = (
    "status of 422",
    "Failed to load resource: net::ERR_FAILED",
    "willReadFrequently",  # advice for a test that reads the canvas
)


@contextmanager
def explorer_page(
    browser: Any, site: Any, fragment: str = "", width: int = 1280, scheme: str = "light"
) -> Iterator[Any]:
    """The explorer at an address; checked when it is closed."""
    height = 844 if width < 600 else 860
    page = browser.new_page(
        viewport={"width": width, "height": height},
        reduced_motion="reduce",
        color_scheme=scheme,
        has_touch=width < 600,
    )
    page.set_default_timeout(20_000)
    requested, errors = [], []
    page.on("request", lambda request: requested.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    # The browser logs error responses, also expected ones.
    page.on("console", lambda m: any(e in m.text for e in EXPECTED) or errors.append(m.text))
    page.goto(site.url + fragment)
    until(page, "window.explorer")
    yield page
    assert errors == []
    own = (site.url, "data:", f"blob:{site.url}")
    assert [url for url in requested if not url.startswith(own)] == []
    page.close()


def focused(page: Any) -> str:
    """The id, or else the text, of the element that has the focus."""
    return str(page.evaluate("document.activeElement.id || document.activeElement.innerText"))


def in_view(page: Any, selector: str) -> bool:
    """Whether the top of an element is inside the window."""
    box = page.locator(selector).first.bounding_box()
    return bool(box and -1 <= box["y"] < page.viewport_size["height"] - 20)


def outside(page: Any) -> list[str]:
    """Elements that stick out of the window, except those that a list scrolls to."""
    return page.evaluate(  # type: ignore[no-any-return]
        """[...document.querySelectorAll("body *")].filter((e) => {
            const { left, right, width, height } = e.getBoundingClientRect();
            const inside = left >= -1 && right <= innerWidth + 1;
            return width > 1 && height > 1 && !e.closest(".legend") && !inside;
        }).map((e) => `${e.tagName} ${e.id} ${e.className}`)"""
    )
