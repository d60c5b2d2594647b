"""A walk through the explorer by keyboard alone, at three widths, light and dark.

One page per test: reviewing, filters, export, precision, links, selections, paths, colours,
addresses, new texts. The lasso, which needs a pointer, is drawn by mouse.
"""

import csv
import json
from typing import Any

import pytest
from tests.web.browser_page import explorer_page, focused, in_view, outside
from tests.web.review import ROWS, decided, pairs, shown, suggestions
from tests.web.waiting import until

from vhe.web.explorer import Explorer

MOST_TABS = 120
WRONG_DOTS = """[...document.querySelectorAll(".dot[data-vertex]")].filter((dot) => {
    const colour = explorer.map.colours[explorer.network.colour[dot.dataset.vertex]];
    const rgb = [1, 3, 5].map((k) => parseInt(colour.slice(k, k + 2), 16)).join(", ");
    return getComputedStyle(dot).backgroundColor !== `rgb(${rgb})`;
}).length"""


class Walker:
    """A page, and a person who has a keyboard only."""

    def __init__(self, page: Any) -> None:
        self.page, self.press, self.type = page, page.keyboard.press, page.keyboard.type

    def tab_to(self, selector: str) -> None:
        """Press Tab until an element has the focus, which is then in view."""
        for _ in range(MOST_TABS):
            if self.page.evaluate(f"document.activeElement.matches({json.dumps(selector)})"):
                top = self.page.evaluate("document.activeElement.getBoundingClientRect().top")
                assert -1 <= top < self.page.viewport_size["height"], selector
                return
            self.press("Tab")
        pytest.fail(f"the focus does not reach {selector}")

    def activate(self, selector: str) -> None:
        self.tab_to(selector)
        self.press("Enter")

    def search(self, vertex: str) -> None:
        self.press("/")
        self.type(vertex)
        self.page.locator("#matches [aria-selected=true] .name", has_text=vertex).wait_for()
        assert outside(self.page) == []
        self.press("Enter")
        self.heading(vertex)

    def heading(self, words: str) -> None:
        """Wait for a card; its heading has the focus and is in view."""
        self.page.locator("#detail h3", has_text=words).wait_for()
        until(self.page, "document.activeElement.tagName === 'H3'")
        assert in_view(self.page, "#detail h3")

    def until(self, expression: str) -> None:
        until(self.page, expression)

    def download(self, selector: str) -> str:
        with self.page.expect_download() as download:
            self.activate(selector)
        return download.value.path().read_text("utf-8")  # type: ignore[no-any-return]

    def fits(self, scheme: str) -> None:
        """Check that nothing is wider than the window, and the colours."""
        width = self.page.viewport_size["width"]
        assert self.page.evaluate("document.documentElement.scrollWidth") <= width
        assert outside(self.page) == []
        size = self.page.locator("#map").bounding_box()
        assert size["width"] >= 300
        assert size["height"] >= 200
        ground = self.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert ground == {"light": "rgb(251, 251, 250)", "dark": "rgb(20, 23, 26)"}[scheme]


@pytest.fixture(params=["light", "dark"])
def scheme(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(params=[1280, 800, 390])
def width(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_review(browser: Any, review_site: Any, width: int, scheme: str) -> None:
    with explorer_page(browser, review_site, width=width, scheme=scheme) as page:
        walker, press = Walker(page), page.keyboard.press
        page.wait_for_selector(ROWS)
        first = pairs(suggestions(review_site)[:4])
        assert shown(page)[:4] == first
        assert in_view(page, ROWS)

        press("j")
        for key, words, k in (("a", "Accepted", 0), ("r", "Rejected", 1), (" ", "Postponed", 2)):
            page.locator("#pair article").first.wait_for()
            assert (page.locator("#suggestions li #pair").count() == 1) == (width < 600)
            press(key)
            decided(page, f"{words}: {first[k][0]} – {first[k][1]}")
            assert in_view(page, "#status")
            walker.until(f"document.querySelectorAll('{ROWS}')[{k + 1}] === document.activeElement")
            assert in_view(page, f"{ROWS}:focus")
        press("u")
        decided(page, f"Undone: {first[2][0]}")
        states = [pairs(suggestions(review_site, s)) for s in ("accepted", "rejected", "postponed")]
        assert states == [[first[0]], [first[1]], []]
        walker.fits(scheme)
        press("Enter")
        walker.until("document.activeElement.id === 'pair'")
        press("Escape")
        walker.until("document.getElementById('pair').hidden")
        assert focused(page).startswith(first[2][0])

        assert page.locator("#precision-share").text_content() == "50 % of 2"
        walker.tab_to("#precision summary")
        press("Enter")
        walker.until("document.getElementById('precision').open")
        assert page.locator("#precision circle").count() >= 1

        saved = [walker.download(f".export a[download$={end}]") for end in ("csv", "json", "md")]
        assert [row["state"] for row in json.loads(saved[1])] == ["accepted", "rejected"]
        assert all(vertex in text for text in saved for vertex in first[0])

        walker.tab_to("[name=state]")
        page.keyboard.type("acc")
        walker.until("location.hash.endsWith('state=accepted')")
        walker.until(f"document.querySelectorAll('{ROWS}').length === 1")
        press("End")  # all
        walker.tab_to("[name=label]")
        page.keyboard.type("topic 2")
        walker.tab_to("[name=p]")
        for _ in range(2):
            press("ArrowRight")
        expected = pairs(suggestions(review_site, "all", label="topic 2", min_probability=0.1))
        walker.until(f"document.querySelectorAll('{ROWS}').length === {len(expected)}")
        assert shown(page) == expected
        assert page.url.endswith("state=all&label=topic%202&p=10")
        page.go_back()
        walker.until("document.querySelector('[name=p]').value === '5'")
        page.wait_for_selector(ROWS)
        press("j")  # with the focus on the slider
        page.wait_for_selector("#pair article")
        walker.fits(scheme)


def test_links_and_selections(
    browser: Any, site: Any, explorer: Explorer, width: int, scheme: str
) -> None:
    with explorer_page(browser, site, width=width, scheme=scheme) as page:
        walker, press = Walker(page), page.keyboard.press
        walker.activate("#edges")
        walker.until("explorer.map.edges && explorer.map.edges.complete")
        assert page.url.endswith("#links=all")

        walker.tab_to("#map")
        press("Shift+Enter")
        page.locator("#detail h3", has_text="1 vertex selected").wait_for()
        walker.search("v17")
        walker.activate("#detail .more:not(#detail ul ~ .more)")  # Add to selection
        walker.heading("2 vertices selected")
        chosen = page.evaluate("explorer.map.group")
        assert 17 in chosen

        walker.activate("[aria-label=Selection] button:first-child")  # Shortest path
        walker.until("document.querySelector('#detail .error') || explorer.map.path.length")
        expected = explorer.path(*chosen)["length"]
        assert len(page.evaluate("explorer.map.path")) == (expected + 1 if expected else 0)
        walker.activate("[aria-label=Selection] button:nth-child(2)")  # Add neighbours
        near = {*chosen, *(int(j) for i in chosen for j in explorer._links[i])}
        walker.until(f"explorer.map.group.length === {len(near)}")
        rows = list(csv.DictReader(walker.download("[aria-label='Save as CSV']").splitlines()))
        assert {row["id"] for row in rows} == {f"v{i}" for i in near}
        walker.fits(scheme)
        press("Escape")
        walker.until("explorer.map.group.length === 0 && document.activeElement.id === 'map'")

        page.keyboard.down("Shift")
        page.locator("#map").scroll_into_view_if_needed()
        box = page.locator("#map").bounding_box()
        corners = [(0.2, 0.1), (0.9, 0.2), (0.9, 0.9), (0.3, 0.8)]
        x, y = (
            [box["x"] + box["width"] * a for a, _ in corners],
            [box["y"] + box["height"] * b for _, b in corners],
        )
        page.mouse.move(x[0], y[0])
        page.mouse.down()
        for k in range(1, 4):
            page.mouse.move(x[k], y[k])
        page.mouse.up()
        page.keyboard.up("Shift")
        walker.heading("vertices selected")
        assert len(page.evaluate("explorer.map.group")) > 3
        assert "lasso=" in page.url


def test_views_and_addresses(browser: Any, review_site: Any, width: int, scheme: str) -> None:
    with explorer_page(browser, review_site, width=width, scheme=scheme) as page:
        walker, press = Walker(page), page.keyboard.press
        walker.tab_to("#colour")
        for key, colouring in (("End", "uncertainty"), ("ArrowUp", "degree")):
            press(key)
            walker.until(f"location.hash === '#colour={colouring}'")
            page.wait_for_selector(ROWS)
            assert page.locator(".dot[data-vertex]").count() > 10
            walker.until(f"{WRONG_DOTS} === 0")

        walker.search("v17")
        walker.tab_to("#detail li > button")
        press("ArrowDown")
        row = focused(page)
        press("Enter")
        page.wait_for_selector("#pair article")
        walker.until("document.activeElement.id === 'pair'")
        in_place = page.locator("#detail li:nth-child(2) > #pair").count() == 1
        assert in_place == (width < 600)
        assert in_view(page, "#pair")
        walker.until(f"{WRONG_DOTS} === 0")
        walker.fits(scheme)
        partner = page.evaluate("explorer.map.partner")
        press("+")
        walker.until("location.hash.includes('view=')")
        place = page.evaluate("explorer.map.place")
        with explorer_page(
            browser, review_site, page.url[len(review_site.url) :], width, scheme
        ) as copy:
            copy.wait_for_selector("#pair article")
            copied = "[explorer.map.selected, explorer.map.partner, explorer.map.place]"
            assert copy.evaluate(copied) == [17, partner, place]
            assert copy.locator("#colour").input_value() == "degree"
        page.go_back()
        walker.until("explorer.map.partner === -1 && document.getElementById('pair').hidden")
        page.go_forward()
        page.wait_for_selector("#pair article")
        assert page.evaluate("explorer.map.place") == place
        press("Escape")
        walker.until("document.activeElement.matches('#detail li > button')")
        assert focused(page) == row
        press("Escape")
        walker.until("document.activeElement.id === 'map'")

        walker.tab_to("#tab-vertex, #tab-review")
        while focused(page) != "tab-text":
            press("ArrowRight")
        walker.tab_to("#words")
        page.keyboard.type("t4w1 t4w2 t4w3 t4w4")
        press("Control+Enter")
        page.wait_for_selector("#nearest li")
        assert in_view(page, "#nearest li")
        assert page.evaluate("Boolean(explorer.map.newText)")
        assert "t4w1" not in page.url
        walker.fits(scheme)
        walker.tab_to("#tab-text")
        press("ArrowLeft")
        press("ArrowLeft")
        page.wait_for_selector(ROWS)
        assert not page.evaluate("Boolean(explorer.map.newText)")

        with explorer_page(
            browser, review_site, "#set=v3,v4&colour=degree", width, scheme
        ) as selection:
            selection.locator("#detail h3", has_text="2 vertices selected").wait_for()
            assert selection.locator("#detail .dot").count() == 2
            assert selection.evaluate(WRONG_DOTS) == 0
