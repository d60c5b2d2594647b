"""The explorer in a browser with unusual ids, texts and maps, and with a network that changes."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.web.browser_page import explorer_page, outside
from tests.web.review import ROWS
from tests.web.waiting import until

from vhe.data.network import TextNetwork
from vhe.estimators import VHE
from vhe.predict.layout import layout
from vhe.web.explorer import Explorer
from vhe.web.service import Service
from vhe.web.snapshot import Snapshot
from vhe.web.start import start_service

ARABIC = "ملاحظة عن الشبكات"
LONG = "a.very.long.id." * 12
LABEL = "a label that never ends " * 12
TOKEN = "a-long-random-token"


@pytest.fixture(scope="module")
def unusual(network: TextNetwork, hasty: Callable[..., VHE]) -> VHE:
    ids = [ARABIC, LONG, "x" * 150, "", "日本語", "a,b", "@9", "%41", *network.ids[8:]]
    texts = [f"{ARABIC} {network.texts[0]}", *network.texts[1:7], "", *network.texts[8:]]
    labels = [LABEL, None, *network.labels[2:]]
    return hasty().fit(TextNetwork(ids, texts, network.links, labels, name=LONG))


@pytest.fixture(scope="module")
def unusual_site(unusual: VHE, serving: Any) -> Iterator[Any]:
    explorer = Explorer(unusual, layout(unusual.embedding_))
    with serving(Service(Snapshot(explorer))) as site:
        yield site


@pytest.mark.parametrize("width", [1280, 800, 390])
def test_ids_and_texts_of_any_kind(
    browser: Any, unusual_site: Any, unusual: VHE, width: int
) -> None:
    with explorer_page(browser, unusual_site, width=width) as page:
        page.wait_for_selector(ROWS)
        assert outside(page) == []
        for number, name in enumerate(unusual.network_.ids[:8]):
            page.evaluate(f"explorer.map.onSelect({number})")
            until(page, f"document.querySelector('#detail h3')?.textContent === {json.dumps(name)}")
            assert outside(page) == []
            page.locator("#detail ul button").first.click()
            page.wait_for_selector("#pair article")
            assert outside(page) == []
            page.reload()
            until(page, f"window.explorer && explorer.map.selected === {number}")


def test_arabic_texts_begin_at_the_right(browser: Any, unusual_site: Any) -> None:
    with explorer_page(browser, unusual_site, "#id=@0") as page:
        page.wait_for_selector("#detail .words")
        first, right = page.evaluate(
            """(() => { const words = document.querySelector("#detail .words"), range = new Range();
                range.setStart(words.firstChild, 0);
                range.setEnd(words.firstChild, 1);
                return [range, words].map((e) => e.getBoundingClientRect().right); })()"""
        )
        assert first == pytest.approx(right, abs=3)


def test_names_on_the_map_do_not_lie_under_the_buttons(
    browser: Any, unusual: VHE, serving: Any
) -> None:
    with (
        serving(Explorer(unusual, layout(unusual.embedding_))) as site,
        explorer_page(browser, site, width=390) as page,
    ):
        drawn, buttons = page.evaluate(
            """(() => { const { map } = explorer, names = [], draw = map.drawText;
                map.network.regions = [0, 0.2, 0.4, 0.6].map((y) =>
                  ({ name: "name of a region", x: 0, y: y * map.height }));
                map.drawText = (...given) => {
                  const done = draw.apply(map, given);
                  if (done) names.push([given[2], given[3] - 7, given[2] + given[4], given[3] + 7]);
                  return done;
                };
                map.draw();
                const box = document.querySelector(".zoom").getBoundingClientRect();
                const { left, top } = map.canvas.getBoundingClientRect();
                return [names, [box.left, box.top, box.right, box.bottom].map(
                  (edge, k) => edge - (k % 2 ? top : left))];
            })()"""
        )
        assert len(drawn) == 4
        for a in drawn:
            apart = a[2] <= buttons[0] or a[0] >= buttons[2]
            assert apart or a[3] <= buttons[1] or a[1] >= buttons[3], (a, buttons)


def test_vertices_at_one_place_are_in_the_middle(browser: Any, fitted: VHE, serving: Any) -> None:
    with (
        serving(Explorer(fitted, np.zeros((60, 2)))) as site,
        explorer_page(browser, site) as page,
    ):
        x, y, width, height = page.evaluate(
            "[...explorer.map.screen(3), explorer.map.w, explorer.map.h]"
        )
        assert (x, y) == pytest.approx((width / 2, height / 2))


@pytest.fixture
def changing(
    fitted: VHE, serving: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Any]:
    """A server whose network can be changed."""
    monkeypatch.setattr(Service, "_start_missing", lambda self: None)
    fitted.save(tmp_path / "model")
    service = start_service(tmp_path / "model", writable=True)
    service._run("ranking")
    with serving(service) as site:
        yield site


def test_a_page_notices_that_vertices_were_removed(browser: Any, changing: Any) -> None:
    with explorer_page(browser, changing, "#id=v7") as page:
        page.locator("#detail h3", has_text="v7").wait_for()
        assert page.locator("#changed").is_hidden()
        assert changing.raw("DELETE", "/api/vertices/3")[0] == 200
        page.evaluate("location.hash = 'id=v9'")
        page.locator("#detail .error", has_text="network has changed; reload the page").wait_for()
        assert page.locator("#detail .words").count() == 0  # not the text of another vertex
        page.get_by_role("button", name="Reload").click()
        page.locator("#detail h3", has_text="v9").wait_for()
        text = json.loads(changing.raw("GET", "/api/vertices?id=v9")[2])["text"]
        assert page.locator("#detail .words").text_content() == text
        assert page.locator("#changed").is_hidden()


def test_a_page_goes_on_when_vertices_are_added(browser: Any, changing: Any, fitted: VHE) -> None:
    with explorer_page(browser, changing) as page:
        page.wait_for_selector(ROWS)
        text = fitted.network_.texts[7]
        body = {"vertices": [{"id": "new", "text": text}]}
        assert changing.post("/api/vertices", json.dumps(body).encode())[0] == 200
        likely = [link["id"] for link in changing.get("/api/vertices/7/suggestions")[1]["links"]]
        assert "new" in likely
        page.evaluate("location.hash = 'id=v7'")
        page.locator("#detail h3", has_text="v7").wait_for()
        assert page.locator("#changed").is_visible()
        names = page.locator("#detail .name").all_text_contents()
        assert names[: len(likely) - 1] == [name for name in likely if name != "new"]
        page.locator("#query").fill("t")
        page.wait_for_selector("#matches li")
        page.keyboard.press("Escape")
        page.get_by_role("tab", name="Embed a text").click()
        page.locator("#words").fill(text)
        page.keyboard.press("Control+Enter")
        page.wait_for_selector("#nearest li")
        page.get_by_role("tab", name="Missing links").click()
        page.wait_for_selector(ROWS)
        page.locator("[name=state]").select_option("all")
        page.locator("#reviewed", has_text="suggestions").wait_for()
        page.wait_for_selector(ROWS)
        assert "new" not in page.locator("#suggestions .name").all_text_contents()
