"""The ranked missing links in a browser: decisions by key, filters, export, precision."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.web.browser_page import explorer_page
from tests.web.review import ROWS, decided, pairs, shown, suggestions
from tests.web.waiting import until


@pytest.fixture
def page(browser: Any, review_site: Any) -> Iterator[Any]:
    with explorer_page(browser, review_site) as opened:
        opened.wait_for_selector(ROWS)
        yield opened


def test_the_landing_list_is_the_ranking(page: Any, review_site: Any) -> None:
    ranking = suggestions(review_site)
    assert shown(page) == pairs(ranking[:50])
    total = review_site.get("/api/suggestions")[1]["total"]
    assert page.locator("#reviewed").text_content() == f"{total:,} open · 0 reviewed"
    percentage = page.locator(f"{ROWS} .number").first.text_content()
    assert float(percentage.split(" %")[0]) == pytest.approx(
        100 * ranking[0]["probability"], abs=0.51
    )
    assert page.locator("#pair").is_hidden()
    page.locator("#suggestions").evaluate("list => { list.scrollTop = list.scrollHeight }")
    until(page, f"document.querySelectorAll('{ROWS}').length > 50")
    assert shown(page) == pairs(ranking[: len(shown(page))])


def test_one_key_per_decision(page: Any, review_site: Any) -> None:
    first = pairs(suggestions(review_site)[:4])
    press = page.keyboard.press
    press("j")  # opens the first
    page.wait_for_selector("#pair article")
    for key, words, k in (("a", "Accepted", 0), ("r", "Rejected", 1), (" ", "Postponed", 2)):
        press(key)
        decided(page, f"{words}: {first[k][0]} – {first[k][1]}")
        until(page, f"document.querySelectorAll('{ROWS}')[{k + 1}] === document.activeElement")
    states = [pairs(suggestions(review_site, s)) for s in ("accepted", "rejected", "postponed")]
    assert states == [[first[0]], [first[1]], [first[2]]]
    assert page.evaluate("[explorer.map.selected, explorer.map.partner]") == [
        suggestions(review_site)[0][end]["number"] for end in ("source", "target")
    ]
    press("u")
    decided(page, f"Undone: {first[2][0]}")
    until(page, f"document.querySelectorAll('{ROWS}')[2] === document.activeElement")
    press("u")
    decided(page, f"Undone: {first[1][0]}")
    assert suggestions(review_site, "rejected") == suggestions(review_site, "postponed") == []
    page.reload()
    page.locator("#reviewed", has_text="1 reviewed").wait_for()
    assert first[0] not in shown(page)
    assert page.locator("#status").get_attribute("aria-live") == "polite"


def test_keys_that_follow_each_other_quickly(page: Any, review_site: Any) -> None:
    first = pairs(suggestions(review_site)[:5])
    page.keyboard.press("j")
    page.wait_for_selector("#pair article")
    for _ in range(5):
        page.keyboard.press("a")
    decided(page, f"Accepted: {first[4][0]} – {first[4][1]}")
    assert pairs(suggestions(review_site, "accepted")) == first


def test_buttons_decide_too(page: Any, review_site: Any) -> None:
    page.locator(ROWS).nth(1).click()
    second = pairs(suggestions(review_site))[1]
    page.get_by_role("button", name="Reject").focus()
    page.keyboard.press(" ")  # presses the button, does not postpone
    decided(page, "Rejected")
    assert pairs(suggestions(review_site, "rejected")) == [second]
    assert suggestions(review_site, "postponed") == []


def test_a_suggestion_of_a_vertex_can_be_decided_on(page: Any, review_site: Any) -> None:
    page.goto(review_site.url + "#id=v3")
    page.locator("#detail ul button").first.click()
    page.wait_for_selector("#pair article")
    page.keyboard.press("a")
    decided(page, "Accepted: v3")
    page.wait_for_selector("#detail ul .state.accepted")
    assert page.locator(".decide [aria-pressed=true]").text_content().startswith("Accept")
    assert len(suggestions(review_site, "accepted")) == 1


def test_filters_are_part_of_the_address(page: Any, review_site: Any) -> None:
    source, target = (suggestions(review_site)[0][end]["number"] for end in ("source", "target"))
    review_site.raw(
        "PUT", f"/api/decisions/{source}/{target}", b'{"state": "accepted"}',
        Content_Type="application/json",
    )  # fmt: skip
    page.locator("[name=state]").select_option("all")
    page.locator("[name=label]").select_option("topic 2")
    page.locator("[name=p]").fill("10")
    found = pairs(suggestions(review_site, "all", label="topic 2", min_probability=0.1))
    assert 0 < len(found) < 50
    until(page, f"document.querySelectorAll('{ROWS}').length === {len(found)}")
    assert shown(page) == found
    assert page.url.endswith("#state=all&label=topic%202&p=10")
    page.go_back()
    page.go_back()
    until(page, "document.querySelector('[name=label]').value === ''")
    page.locator("#reviewed", has_text="suggestions").wait_for()
    page.goto(review_site.url + "#state=accepted")
    page.locator("#reviewed", has_text="1 accepted").wait_for()
    page.goto(review_site.url + "#state=rejected")
    page.wait_for_selector("#no-suggestions:visible")


def test_export(page: Any, review_site: Any, tmp_path: Path) -> None:
    pair = pairs(suggestions(review_site))[0]
    page.keyboard.press("j")
    page.wait_for_selector("#pair article")
    page.keyboard.press("a")
    decided(page, "Accepted")
    files = {}
    for name in ("CSV", "JSON", "Markdown"):
        with page.expect_download() as download:
            page.locator(".export").get_by_role("link", name=name).click()
        download.value.save_as(tmp_path / name)
        files[name] = (tmp_path / name).read_text("utf-8")
    (row,) = json.loads(files["JSON"])
    assert [row["source"], row["target"], row["state"]] == [*pair, "accepted"]
    assert all(vertex in files[name] for name in files for vertex in pair)


def test_precision_chart(page: Any, review_site: Any) -> None:
    assert page.locator("#precision").is_hidden()
    page.keyboard.press("j")
    page.wait_for_selector("#pair article")
    for key in "aara":
        page.keyboard.press(key)
    page.locator("#precision-share", has_text="75 % of 4").wait_for()
    page.locator("#precision summary").click()
    bins = [b for b in review_site.get("/api/precision")[1]["bins"] if b["reviewed"]]
    label = page.locator("#precision svg").get_attribute("aria-label")
    for found in bins:
        assert f"{found['accepted']} of {found['reviewed']} accepted" in label
    assert page.locator("#precision circle").count() == len(bins)


def test_a_decision_that_is_not_saved(page: Any, review_site: Any) -> None:
    page.route("**/api/decisions/**", lambda route: route.abort())
    page.keyboard.press("j")
    page.wait_for_selector("#pair article")
    page.keyboard.press("a")
    decided(page, "Not saved: No connection to the server")
    assert page.locator(".state.accepted").count() == 0
    assert suggestions(review_site, "accepted") == []
    page.unroute("**/api/decisions/**")
    page.wait_for_selector("#pair article")
    page.keyboard.press("a")
    decided(page, "Accepted")


def test_the_list_waits_for_the_ranking(browser: Any, review_site: Any) -> None:
    with explorer_page(browser, review_site, "#tab=text") as page:
        waiting = [True]

        def answer(route: Any) -> None:
            if waiting.pop() if waiting else False:
                route.fulfill(json={"ready": False, "total": 0, "reviewed": 0, "items": []})
            else:
                route.continue_()

        page.route("**/api/suggestions?*", answer)
        page.get_by_role("tab", name="Missing links").click()
        page.locator("#reviewed", has_text="Ranking the missing links").wait_for()
        page.wait_for_selector(ROWS)
