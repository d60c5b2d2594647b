"""The explorer in a browser: mouse, keyboard, search, comparison, new texts, themes."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.web.browser_page import explorer_page
from tests.web.waiting import until

from vhe.estimators import VHE
from vhe.predict.layout import layout
from vhe.web.explorer import Explorer


@pytest.fixture
def page(browser: Any, site: Any) -> Iterator[Any]:
    with explorer_page(browser, site) as opened:
        yield opened


def heading(page: Any) -> str | None:
    page.wait_for_selector("#detail h3")
    return page.locator("#detail h3").text_content()  # type: ignore[no-any-return]


def click_vertex(page: Any, vertex: int) -> None:
    x, y = page.evaluate(f"explorer.map.screen({vertex})")
    box = page.locator("#map").bounding_box()
    page.mouse.click(box["x"] + x, box["y"] + y)


def test_title_size_legend_and_map(page: Any) -> None:
    assert page.locator("h1").text_content() == "topics"
    assert page.locator("header p").text_content() == "60 vertices, 109 links"
    assert page.locator("#loading").text_content() == ""
    assert page.locator("#legend button").count() == 5
    pixels = "new Set(new Uint32Array(c.getImageData(0, 0, 800, 600).data.buffer)).size"
    assert page.evaluate(f"(c => {pixels})(explorer.map.canvas.getContext('2d'))") > 20


def test_a_click_shows_text_links_and_suggestions(page: Any, explorer: Explorer) -> None:
    click_vertex(page, 7)
    shown = heading(page)
    number = explorer.find(str(shown))["number"]
    vertex, suggestions = explorer.vertex(number), explorer.suggestions(number, 10)
    assert page.locator("#detail .words").text_content() == vertex["text"]
    suggested = [link["id"] for link in suggestions["links"]]
    names = page.locator("#detail .name").all_text_contents()
    assert names == suggested + sorted(link["id"] for link in vertex["links"])
    percentages = page.locator("#detail .number").all_text_contents()[: len(suggested)]
    for text, link in zip(percentages, suggestions["links"], strict=True):
        assert float(text.strip("<> %")) == pytest.approx(100 * link["probability"], abs=0.51)
    assert page.url.endswith(f"#id={shown}")


def test_a_suggestion_opens_the_comparison(page: Any, explorer: Explorer) -> None:
    page.goto(page.url.split("#")[0] + "#id=v3")
    heading(page)
    other = explorer.suggestions(3, 10)["links"][1]["number"]
    page.locator("#detail li button").nth(1).click()
    page.wait_for_selector("#pair article")
    pair = explorer.pair(3, other)
    sides = page.locator("#pair article")
    for k, end in enumerate(("source", "target")):
        assert sides.nth(k).locator(".words").text_content() == pair[end]["text"]
        marked = sides.nth(k).locator("mark").all_text_contents()
        assert marked == [text for text, weight in pair[end]["segments"] if weight]
        assert marked
    parts = page.locator("#pair .parts li").all_text_contents()
    visible = {name: part for name, part in pair["parts"].items() if abs(part) >= 0.005}
    assert parts == [f"{k} {v:+.2f}".replace("-", "−") for k, v in visible.items()]
    assert parts[0].startswith("texts ")
    assert page.locator("#pair .parts .against").count() == sum(v < 0 for v in visible.values())
    assert page.evaluate("explorer.map.partner") == other
    sides.nth(1).locator("h3 button").click()
    until(page, f"document.querySelector('#detail h3').textContent === 'v{other}'")
    assert page.locator("#pair").is_hidden()


def test_search_by_words_of_a_text(page: Any, explorer: Explorer) -> None:
    page.locator("#query").fill("t2w4")
    page.wait_for_selector("#matches li")
    found = explorer.search("t2w4", 12)
    assert page.locator("#matches .name").all_text_contents() == [
        v["id"] for v in found["vertices"]
    ]
    mask = page.evaluate("Array.from(explorer.map.highlighted)")
    assert [k for k, on in enumerate(mask) if on] == sorted(found["numbers"])
    page.locator("#query").fill("absent from all texts")
    page.wait_for_selector("#matches .none")


def test_a_new_text_is_embedded_and_shown_on_the_map(page: Any, explorer: Explorer) -> None:
    text = "t4w1 t4w2 t4w3 t4w4"
    page.get_by_role("tab", name="Embed a text").click()
    page.locator("#words").fill(text)
    page.get_by_role("button", name="Locate").click()
    page.wait_for_selector("#nearest li")
    expected = explorer.embed_text(text, 10)
    near = [link["id"] for link in expected["nearest"]]
    assert page.locator("#nearest .name").all_text_contents() == near
    shown = page.evaluate("explorer.map.newText")
    assert (shown["x"], shown["y"]) == pytest.approx((expected["x"], expected["y"]))
    page.locator("#words").fill("qqqq")
    page.locator("#words").press("Control+Enter")
    page.wait_for_selector("#nearest .error")
    assert "no words of the model" in page.locator("#nearest .error").text_content()


def test_keyboard_only(page: Any) -> None:
    press = page.keyboard.press
    press("/")
    page.keyboard.type("v1")
    page.wait_for_selector("#matches li")
    press("ArrowDown")
    marked = page.locator("#matches [aria-selected=true] .name").text_content()
    press("Enter")
    assert heading(page) == marked
    page.locator("#detail li button").first.focus()
    press("ArrowDown")
    press("ArrowDown")
    press("ArrowUp")
    second = page.locator("#detail li button").nth(1)
    assert second.evaluate("e => e === document.activeElement")
    press("Enter")
    page.wait_for_selector("#pair article")
    press("Escape")
    assert page.locator("#pair").is_hidden()
    assert page.locator("#detail h3").count() == 1
    press("Escape")
    assert page.locator("#detail h3").count() == 0
    assert "id=" not in page.url


def test_focus_order(page: Any) -> None:
    page.evaluate("document.activeElement.blur()")
    order = []
    for _ in range(11):
        page.keyboard.press("Tab")
        order.append(page.evaluate("document.activeElement.id || document.activeElement.title"))
    assert order[:4] == ["query", "colour", "", "theme"]
    assert order[4] == "map"
    assert order[8:] == ["edges", "lasso", "tab-review"]
    page.keyboard.press("ArrowRight")
    assert page.locator("#detail").is_visible()
    page.keyboard.press("ArrowRight")
    assert page.locator("#text").is_visible()


def test_colour_by_degree_and_uncertainty(page: Any) -> None:
    page.locator("#colour").select_option("degree")
    colour = page.evaluate("Array.from(explorer.network.colour)")
    degree = page.evaluate("Array.from(explorer.network.degree)")
    most, least = degree.index(max(degree)), degree.index(min(degree))
    assert colour[most] == 8
    assert colour[least] < 8
    assert page.locator("#legend .steps i").count() == 9
    page.locator("#colour").select_option("uncertainty")
    assert page.evaluate("Array.from(explorer.network.colour)") != colour
    page.locator("#colour").select_option("label")
    assert page.locator("#legend button").count() == 5


def test_theme_button(page: Any) -> None:
    page.emulate_media(color_scheme="light")
    page.get_by_role("button", name="Dark colours").click()
    assert page.evaluate("explorer.map.surface") == "#1a1e22"
    page.reload()
    until(page, "window.explorer")
    assert page.evaluate("explorer.map.surface") == "#1a1e22"
    page.get_by_role("button", name="Light colours").click()
    assert page.evaluate("explorer.map.surface") == "#ffffff"


def test_markup_in_names_is_not_interpreted(
    browser: Any, serving: Any, network: Any, hasty: Callable[..., VHE]
) -> None:
    from vhe.data.network import TextNetwork

    hostile = "</title><img src=x onerror=document.title='broken'>"
    ids = [hostile, *network.ids[1:]]
    texts = [f"{hostile} {network.texts[0]}", *network.texts[1:]]
    named = TextNetwork(ids, texts, network.links, [hostile] * 60, name=hostile)
    model = hasty().fit(named)
    with serving(Explorer(model, layout(model.embedding_))) as site:
        page = browser.new_page()
        page.goto(site.url)
        until(page, "window.explorer")
        page.keyboard.press("/")
        page.keyboard.type("img")
        page.wait_for_selector("#matches li")
        page.keyboard.press("Enter")
        assert heading(page) == hostile
        page.locator("#detail li button").first.click()
        page.wait_for_selector("#pair article")
        assert page.locator("img").count() == 0
        assert page.title() == hostile
        page.close()


def test_the_page_asks_for_the_token(browser: Any, serving: Any, explorer: Explorer) -> None:
    with serving(explorer, token="a b&c, 16 letters") as site:
        page = browser.new_page()
        page.goto(f"{site.url}#id=v3")
        for token in ("wrong", "a b&c, 16 letters"):
            page.get_by_label("Access token").fill(token)
            page.keyboard.press("Enter")
            if token == "wrong":
                page.get_by_text("not the access token").wait_for()
        assert heading(page) == "v3"
        assert "token" not in page.url
        page.close()
