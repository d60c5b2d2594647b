"""The explorer in a real browser: what a person with a mouse, or with keys alone, can do."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.web.waiting import until

from vhe.estimators import VHE
from vhe.predict.layout import layout
from vhe.web.explorer import Explorer


@pytest.fixture
def page(browser: Any, site: Any) -> Iterator[Any]:
    opened = browser.new_page(viewport={"width": 1280, "height": 860}, reduced_motion="reduce")
    opened.set_default_timeout(20_000)
    asked, wrong = [], []
    opened.on("request", lambda request: asked.append(request.url))
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    # That an answer was a refusal the browser says on its console all the same.
    opened.on("console", lambda m: "status of 422" in m.text or wrong.append(m.text))
    opened.goto(site.url)
    until(opened, "window.explorer")
    yield opened
    assert wrong == []
    assert [url for url in asked if not url.startswith((site.url, "data:"))] == []
    opened.close()


def heading(page: Any) -> str | None:
    page.wait_for_selector("#detail h3")
    return page.locator("#detail h3").text_content()  # type: ignore[no-any-return]


def click_vertex(page: Any, vertex: int) -> None:
    x, y = page.evaluate(f"[explorer.map.screenX({vertex}), explorer.map.screenY({vertex})]")
    box = page.locator("#map").bounding_box()
    page.mouse.click(box["x"] + x, box["y"] + y)


def test_the_page_says_what_it_shows(page: Any) -> None:
    assert page.locator("h1").text_content() == "topics"
    assert page.locator("header p").text_content() == "60 vertices · 109 links"
    assert page.locator("#waiting").text_content() == ""
    assert page.locator("#legend button").count() == 5
    pixels = "new Set(new Uint32Array(c.getImageData(0, 0, 800, 600).data.buffer)).size"
    assert page.evaluate(f"(c => {pixels})(explorer.map.canvas.getContext('2d'))") > 20


def test_a_click_shows_text_links_and_suggestions(page: Any, explorer: Explorer) -> None:
    click_vertex(page, 7)
    shown = heading(page)
    number = explorer.find(str(shown))["number"]
    vertex, likely = explorer.vertex(number), explorer.suggestions(number, 10)
    assert page.locator("#detail .words").text_content() == vertex["text"]
    names = page.locator("#detail .name").all_text_contents()
    assert names == [link["id"] for link in likely["links"] + vertex["links"]]
    chances = [link["probability"] for link in likely["links"]]
    shown_chances = page.locator("#detail .number").all_text_contents()[: len(chances)]
    for text, chance in zip(shown_chances, chances, strict=True):
        assert float(text.strip("<> %")) == pytest.approx(100 * chance, abs=0.51)
    assert page.url.endswith(f"#id={shown}")


def test_a_suggestion_shows_both_texts_with_their_words(page: Any, explorer: Explorer) -> None:
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
        assert marked == [piece for piece, weight in pair[end]["pieces"] if weight]
        assert marked
    assert page.evaluate("explorer.map.partner") == other
    sides.nth(1).locator("h3 button").click()
    until(page, f"document.querySelector('#detail h3').textContent === 'v{other}'")
    assert page.locator("#pair").is_hidden()


def test_search_by_words_of_a_text(page: Any, explorer: Explorer) -> None:
    page.locator("#query").fill("t2w4")
    page.wait_for_selector("#found li")
    found = explorer.search("t2w4", 12)
    assert page.locator("#found .name").all_text_contents() == [v["id"] for v in found["vertices"]]
    lit = page.evaluate("Array.from(explorer.map.lit)")
    assert [k for k, on in enumerate(lit) if on] == sorted(found["numbers"])
    page.locator("#query").fill("not there at all")
    page.wait_for_selector("#found .none")


def test_a_pasted_text_lands_on_the_map(page: Any, explorer: Explorer) -> None:
    text = "t4w1 t4w2 t4w3 t4w4"
    page.get_by_role("tab", name="Place a text").click()
    page.locator("#words").fill(text)
    page.get_by_role("button", name="Find its place").click()
    page.wait_for_selector("#placed li")
    wanted = explorer.place(text, 10)
    near = [link["id"] for link in wanted["nearest"]]
    assert page.locator("#placed .name").all_text_contents() == near
    guest = page.evaluate("explorer.map.guest")
    assert (guest["x"], guest["y"]) == pytest.approx((wanted["x"], wanted["y"]))
    page.locator("#words").fill("qqqq")
    page.locator("#words").press("Control+Enter")
    page.wait_for_selector("#placed .wrong")
    assert "none of these words" in page.locator("#placed .wrong").text_content()


def test_keys_alone_are_enough(page: Any) -> None:
    press = page.keyboard.press
    press("/")
    page.keyboard.type("v1")
    page.wait_for_selector("#found li")
    press("ArrowDown")
    marked = page.locator("#found [aria-selected=true] .name").text_content()
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
    assert "#" not in page.url


def test_the_order_of_focus(page: Any) -> None:
    page.evaluate("document.activeElement.blur()")
    order = []
    for _ in range(9):
        page.keyboard.press("Tab")
        order.append(page.evaluate("document.activeElement.id || document.activeElement.title"))
    assert order[:4] == ["query", "colour", "", "theme"]
    assert order[4] == "map"
    assert order[8] == "tab-vertex"
    page.keyboard.press("ArrowRight")
    assert page.locator("#text").is_visible()


def test_colours_by_links_and_by_uncertainty(page: Any) -> None:
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


@pytest.mark.parametrize("width", [1280, 800, 400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_overflows(page: Any, width: int, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 860})
    page.goto(page.url + "#id=v3")
    heading(page)
    page.locator("#detail li button").first.click()
    page.wait_for_selector("#pair article")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == {"light": "rgb(251, 251, 250)", "dark": "rgb(20, 23, 26)"}[scheme]
    size = page.locator("#map").bounding_box()
    assert size["width"] >= 300
    assert size["height"] >= 200


def test_a_button_chooses_light_or_dark(page: Any) -> None:
    page.emulate_media(color_scheme="light")
    page.get_by_role("button", name="Dark colours").click()
    assert page.evaluate("explorer.map.surface") == "#1a1e22"
    page.reload()
    until(page, "window.explorer")
    assert page.evaluate("explorer.map.surface") == "#1a1e22"
    page.get_by_role("button", name="Light colours").click()
    assert page.evaluate("explorer.map.surface") == "#ffffff"


def test_hostile_names_stay_text(
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
        page.wait_for_selector("#found li")
        page.keyboard.press("Enter")
        assert heading(page) == hostile
        page.locator("#detail li button").first.click()
        page.wait_for_selector("#pair article")
        assert page.locator("img").count() == 0
        assert page.title() == hostile
        page.close()


def test_with_a_token_the_page_opens_from_its_address(
    browser: Any, serving: Any, explorer: Explorer
) -> None:
    with serving(explorer, token="a b&c") as site:
        page = browser.new_page()
        page.goto(f"{site.url}?token=a%20b%26c#id=v3")
        assert heading(page) == "v3"
        assert "token" not in page.url
        page.close()
