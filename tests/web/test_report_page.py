"""The report in a browser: click, search, keyboard, URL fragment."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.web.waiting import until

from vhe.data.network import TextNetwork
from vhe.web.report import write_report

HOSTILE = "</script><img src=x onerror=document.title='broken'>"
IDS = ["a.first", "a.second", "b.third", "a+b c&d", HOSTILE, "isolated"]


@pytest.fixture
def page(browser: Any, tmp_path: Path) -> Iterator[Any]:
    path = write_report(
        tmp_path / "report.html",
        TextNetwork(IDS, [""] * 6, [[0, 1], [1, 2]]),
        np.array([[0, 0], [1, 0], [2, 1], [3, 2], [4, 0], [5, 1]]),
        title="six vertices",
        lede="",
        texts=[f"text of {vertex}" for vertex in IDS],
        labels=["x", "x", "y", "y", None, "z"],
        suggestions=np.array([[0, 4]]),
        probabilities=np.array([0.87]),
    )
    opened = browser.new_page(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    opened.requested, opened.errors = [], []
    opened.on("request", lambda request: opened.requested.append(request.url))
    opened.on("pageerror", lambda error: opened.errors.append(str(error)))
    opened.on("console", lambda message: opened.errors.append(message.text))
    opened.goto(path.as_uri())
    yield opened
    assert opened.errors == []
    assert opened.title() == "six vertices"
    assert [url for url in opened.requested if not url.startswith(path.as_uri())] == []
    opened.close()


def position(page: Any, vertex: int) -> tuple[float, float]:
    x, y = page.evaluate(f"map.screen({vertex})")
    box = page.locator("#map").bounding_box()
    return box["x"] + x, box["y"] + y


def test_a_click_selects_and_lists_links(page: Any) -> None:
    page.mouse.click(*position(page, 1))
    page.wait_for_selector("#detail h3")
    assert page.locator("#detail h3").text_content() == "a.second"
    assert page.locator("#detail .name").all_text_contents() == ["a.first", "b.third"]
    assert page.url.endswith("#id=a.second")


def test_a_suggested_link_has_its_probability(page: Any) -> None:
    page.mouse.click(*position(page, 0))
    page.wait_for_selector("#detail h3")
    first = page.locator("#detail li").first
    assert first.locator(".name").text_content() == HOSTILE
    assert first.locator(".number").text_content() == "87 %"


def test_tooltip(page: Any) -> None:
    page.mouse.move(*position(page, 4))
    page.wait_for_selector("#tip p")
    assert page.locator("#tip .id").text_content() == HOSTILE
    assert page.locator("#tip p").text_content() == f"text of {HOSTILE}"
    page.mouse.move(*position(page, 5))
    page.locator("#tip .id", has_text="isolated").wait_for()


@pytest.mark.parametrize("vertex", IDS)
def test_the_url_fragment_selects(page: Any, vertex: str) -> None:
    from urllib.parse import quote

    page.goto(f"{page.url}#id={quote(vertex, safe='')}")
    assert page.locator("#detail h3").text_content() == vertex
    page.reload()
    assert page.locator("#detail h3").text_content() == vertex


def test_search_by_keyboard(page: Any) -> None:
    page.keyboard.press("/")
    page.keyboard.type("A.")
    page.wait_for_selector("#matches li")
    assert page.locator("#matches li").all_text_contents() == ["a.second", "a.first"]
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert page.locator("#detail h3").text_content() == "a.first"
    page.keyboard.press("Escape")
    assert page.locator("#detail h3").count() == 0
    assert "id=" not in page.url


def test_keys_on_the_map(page: Any) -> None:
    page.locator("#map").focus()
    for key in ("+", "+", "ArrowLeft", "ArrowUp", "-"):
        page.keyboard.press(key)
    assert page.evaluate("map.scale / map.fitScale") == pytest.approx(1.4)
    page.keyboard.press("Enter")
    assert page.locator("#detail h3").count() == 1
    page.keyboard.press("0")
    assert page.evaluate("map.scale === map.fitScale")


def test_the_wheel_zooms_at_the_pointer(page: Any) -> None:
    x, y = position(page, 2)
    page.mouse.move(x, y)
    page.mouse.wheel(0, -300)
    until(page, "map.scale > map.fitScale * 1.5")
    assert position(page, 2) == pytest.approx((x, y), abs=1.5)


def test_the_legend_highlights_a_label(page: Any) -> None:
    entries = page.locator("#legend button")
    assert [text.strip() for text in entries.all_text_contents()] == ["x2", "y2", "z1", "no label1"]
    entries.nth(1).click()
    assert page.evaluate("Array.from(map.highlighted)") == [0, 0, 1, 1, 0, 0]
    entries.nth(1).click()
    page.mouse.move(5, 5)
    assert page.evaluate("map.highlighted") is None


def test_theme_button(page: Any) -> None:
    def background() -> str:
        return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))

    page.emulate_media(color_scheme="light")
    light = background()
    page.get_by_role("button", name="Dark colours").click()
    dark = background()
    assert dark != light
    assert page.evaluate("map.surface") == "#1a1e22"
    page.reload()
    assert background() == dark
    page.emulate_media(color_scheme="dark")
    page.get_by_role("button", name="Light colours").click()
    assert background() == light


@pytest.mark.parametrize("width", [1280, 800, 400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_horizontal_overflow(page: Any, width: int, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("#map").bounding_box()["width"] > 300
