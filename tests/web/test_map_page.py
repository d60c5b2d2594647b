"""The map in a browser: all links, lasso, paths, addresses, colours, focus, narrow screens."""

import csv
import gzip
import json
from collections.abc import Iterator
from typing import Any

import networkx
import numpy as np
import pytest
from matplotlib.path import Path as Polygon
from tests.web.browser_page import explorer_page, focused, in_view
from tests.web.waiting import until

from vhe.web.explorer import Explorer

CORNERS = [(0.25, 0.1), (0.75, 0.2), (0.8, 0.75), (0.4, 0.6)]  # of a lasso, as shares of the map


@pytest.fixture
def page(browser: Any, site: Any) -> Iterator[Any]:
    with explorer_page(browser, site) as opened:
        yield opened


def heading(page: Any, words: str) -> None:
    page.locator("#detail h3", has_text=words).wait_for()


def draw_lasso(page: Any) -> list[tuple[float, float]]:
    box = page.locator("#map").bounding_box()
    corners = [(box["width"] * x, box["height"] * y) for x, y in CORNERS]
    page.mouse.move(box["x"] + corners[0][0], box["y"] + corners[0][1])
    page.mouse.down()
    for x, y in corners[1:]:
        page.mouse.move(box["x"] + x, box["y"] + y)
    page.mouse.up()
    return corners


def test_all_links_are_shown_on_demand(page: Any, explorer: Explorer) -> None:
    dark = """(() => { const { canvas } = explorer.map;
        const p = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
        let grey = 0;
        for (let k = 0; k < p.length; k += 4)
          grey += Math.abs(p[k] - p[k + 2]) < 24 && p[k] < 235 && p[k] > 60;
        return grey; })()"""
    before = page.evaluate(dark)
    page.get_by_role("button", name="All links").click()
    until(page, "explorer.map.edges && explorer.map.edges.complete")
    until(page, f"{dark} > {before} + 3000")
    assert page.url.endswith("#links=all")
    assert page.locator("#edges").get_attribute("aria-pressed") == "true"
    page.reload()
    until(page, "window.explorer && explorer.map.edges")
    page.get_by_role("button", name="All links").click()
    until(page, "!explorer.map.edges")
    assert "links" not in page.url


def test_lines_cover_the_pixels_that_they_cross(page: Any) -> None:
    rng = np.random.default_rng(0)
    ends = rng.uniform(-150, 450, (40, 4))  # many leave the raster of 300 x 200 pixels
    covered = page.evaluate(
        """(ends) => ends.map(([ax, ay, bx, by]) => {
            const layer = new EdgeLayer({ x: [ax, bx], y: [ay, by], links: [0, 1] });
            layer.restart(300 * 200);
            layer.add(300, 200, 1, 0, 0, Infinity);
            const found = [];
            layer.cover.forEach((count, k) => {
              if (count) found.push([k % 300, Math.floor(k / 300), count]);
            });
            return found;
        })""",
        ends.tolist(),
    )
    for (ax, ay, bx, by), pixels in zip(ends, covered, strict=True):
        along = np.linspace(0, 1, 20_001)
        x, y = ax + along * (bx - ax), ay + along * (by - ay)
        inside = (x >= 0) & (x <= 298) & (y >= 0) & (y <= 198)
        steps = max(np.ptp(x[inside]), np.ptp(y[inside])) if inside.any() else 0
        total = sum(count for _, _, count in pixels) / 16
        assert total == pytest.approx(steps, abs=2)
        if not pixels:
            continue
        u, v = np.array([bx - ax, by - ay]) / np.hypot(bx - ax, by - ay)
        for px, py, _ in pixels:  # no pixel is farther from the line than its neighbour is
            assert abs((px - ax) * v - (py - ay) * u) <= 1.0


@pytest.mark.parametrize("by", ["Shift", "button"])
def test_lasso(page: Any, explorer: Explorer, by: str) -> None:
    before = page.evaluate("Array.from(explorer.network.ids, (_, i) => explorer.map.screen(i))")
    if by == "Shift":
        page.keyboard.down("Shift")
        corners = draw_lasso(page)
        page.keyboard.up("Shift")
    else:
        page.get_by_role("button", name="Lasso").click()
        corners = draw_lasso(page)
    expected = np.flatnonzero(Polygon(corners).contains_points(before)).tolist()
    assert 3 < len(expected) < 57
    heading(page, f"{len(expected)} vertices selected")
    assert page.evaluate("explorer.map.group") == expected
    inside = set(expected)
    links = sum(i in inside and j in inside for i, j in explorer.network.links.tolist())
    assert page.locator("#detail .facts").text_content() == f"{links} links inside"

    ids = [explorer.network.ids[i] for i in expected]
    with page.expect_download() as download:
        page.get_by_role("button", name="Save as CSV").click()
    with download.value.path().open(encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    assert [row["id"] for row in table] == ids
    assert [int(row["degree"]) for row in table] == explorer.network.degrees[expected].tolist()
    with page.expect_download() as download:
        page.get_by_role("button", name="Save as JSON").click()
    records = json.loads(download.value.path().read_text("utf-8"))
    assert [record["label"] for record in records] == [row["label"] for row in table]

    page.get_by_role("button", name="Add neighbours").click()
    near = inside | {int(j) for i in expected for j in explorer._links[i]}
    heading(page, f"{len(near)} vertices selected")
    page.reload()
    heading(page, f"{len(near)} vertices selected")
    page.go_back()
    heading(page, f"{len(expected)} vertices selected")
    assert page.evaluate("explorer.map.group") == expected
    page.get_by_role("button", name="Clear selection").click()
    until(page, "explorer.map.group.length === 0")


def test_shortest_path(page: Any, explorer: Explorer, site: Any) -> None:
    graph = networkx.Graph(explorer.network.links.tolist())
    graph.add_nodes_from(range(len(explorer)))
    lengths = dict(networkx.all_pairs_shortest_path_length(graph))
    for i, j in ((0, 2), (3, 58), (10, 55)):
        page.goto(f"{site.url}#set=v{i},v{j}")
        heading(page, "2 vertices selected")
        page.get_by_role("button", name="Shortest path").click()
        if j not in lengths[i]:
            page.wait_for_selector("#detail .error")
            continue
        heading(page, "Shortest path")
        path = page.evaluate("explorer.map.path")
        assert (path[0], path[-1]) == (i, j)
        assert networkx.is_path(graph, path)
        assert len(path) - 1 == lengths[i][j]
        names = page.locator("#detail .name").all_text_contents()
        assert names == [f"v{k}" for k in path]
    page.goto(site.url + "#id=v3&with=v40")
    page.locator("#pair").get_by_role("button", name="Shortest path").click()
    until(page, "document.querySelector('#detail h3, #detail .error')")
    assert "set=v3%2Cv40&path=shortest" in page.url


def test_vertices_are_added_by_key_and_by_click(page: Any, site: Any) -> None:
    page.goto(site.url + "#id=v5")
    heading(page, "v5")
    page.get_by_role("button", name="Add to selection").click()
    heading(page, "1 vertex selected")
    page.locator("#map").focus()
    for key in ("0", "ArrowLeft", "ArrowLeft", "ArrowLeft", "Shift+Enter"):
        page.keyboard.press(key)
    heading(page, "2 vertices selected")
    x, y = page.evaluate("(explorer.map.fit(), explorer.map.draw(), explorer.map.screen(9))")
    box = page.locator("#map").bounding_box()
    page.keyboard.down("Shift")
    page.mouse.click(box["x"] + x, box["y"] + y)
    page.keyboard.up("Shift")
    heading(page, "3 vertices selected")


def test_names_of_a_selection_are_written_once(page: Any, site: Any) -> None:
    page.goto(site.url + "#set=v3,v4")
    heading(page, "2 vertices selected")
    written = page.evaluate(
        """(() => { const { map } = explorer, draw = map.drawName, found = [];
            map.zoom(20, ...map.screen(3));
            map.drawName = (...given) => { found.push(given[1]); return draw.apply(map, given); };
            map.draw();
            return found; })()"""
    )
    assert sorted(written) == [3, 4]


def test_every_view_has_an_address(page: Any, site: Any, browser: Any) -> None:
    page.locator("#colour").select_option("degree")
    page.keyboard.press("/")
    page.keyboard.type("v17")
    page.wait_for_selector("#matches li")
    page.keyboard.press("Enter")
    heading(page, "v17")
    page.locator("#detail ul button").first.click()
    page.wait_for_selector("#pair article")
    partner = page.evaluate("explorer.map.partner")
    page.locator("#map").focus()
    page.keyboard.press("+")
    page.keyboard.press("ArrowUp")
    until(page, "location.hash.includes('view=')")
    place = page.evaluate("explorer.map.place")
    address = page.url[len(site.url) :]
    with explorer_page(browser, site, address) as copy:
        copy.wait_for_selector("#pair article")
        heading(copy, "v17")
        assert copy.evaluate("[explorer.map.selected, explorer.map.partner]") == [17, partner]
        assert copy.locator("#colour").input_value() == "degree"
        assert copy.evaluate("explorer.map.place") == place
    page.go_back()
    until(page, "explorer.map.partner === -1")
    assert page.locator("#pair").is_hidden()
    heading(page, "v17")
    page.go_back()
    until(page, "explorer.map.selected === -1")
    assert page.locator("#review").is_visible()
    assert page.locator("#colour").input_value() == "degree"
    page.go_back()
    until(page, "document.getElementById('colour').value === 'label'")
    for _ in range(3):
        page.go_forward()
    until(page, f"explorer.map.partner === {partner}")
    page.wait_for_selector("#pair article")
    assert page.evaluate("explorer.map.place") == place


@pytest.mark.parametrize("width", [1280, 800, 390])
def test_both_ends_of_a_pair_are_in_view(
    browser: Any, site: Any, explorer: Explorer, width: int
) -> None:
    y = explorer.coordinates[:, 1]
    distance = np.abs(y[:, None] - y) / np.ptp(y)
    i, j = np.unravel_index(np.argmin(np.abs(distance - 0.6)), distance.shape)
    outside = f"""[{i}, {j}].filter((k) => {{
        const [x, y] = explorer.map.screen(k);
        return x < 0 || y < 0 || x > explorer.map.w || y > explorer.map.h;
    }}).length"""
    with explorer_page(browser, site, f"#id=v{i}&with=v{j}", width=width) as page:
        page.wait_for_selector("#pair article")
        until(page, f"{outside} === 0")


def test_an_address_that_is_wrong(page: Any, site: Any) -> None:
    page.goto(site.url + "#id=v3&with=nobody")
    heading(page, "v3")
    until(page, "document.getElementById('status').textContent === 'Unknown vertex id: nobody'")
    page.goto(site.url + "#set=v3,no%20one")
    until(page, "document.getElementById('status').textContent === 'Unknown vertex id: no one'")
    for fragment in (
        "id=nobody",
        "view=a,b",
        "lasso=1,2",
        "set=%25&near=x",
        "tab=none&colour=none&state=none&p=x",
        "%E0%A4%A",
    ):
        page.goto(f"{site.url}#{fragment}")
        until(page, "explorer.map.selected === -1 && explorer.map.group.length === 0")
    assert page.evaluate("explorer.map.place") is None
    assert page.locator("#review").is_visible()


def test_dots_have_the_colour_of_the_map(page: Any, site: Any) -> None:
    wrong = """[...document.querySelectorAll(".dot[data-vertex]")].filter((dot) => {
        const colour = explorer.map.colours[explorer.network.colour[dot.dataset.vertex]];
        const rgb = [1, 3, 5].map((k) => parseInt(colour.slice(k, k + 2), 16)).join(", ");
        return getComputedStyle(dot).backgroundColor !== `rgb(${rgb})`;
    }).length"""
    page.goto(site.url + "#id=v3")
    heading(page, "v3")
    for colouring in ("degree", "uncertainty", "label"):
        page.locator("#colour").select_option(colouring)
        assert page.locator(".dot[data-vertex]").count() > 10
        until(page, f"{wrong} === 0")
        page.emulate_media(color_scheme="dark" if colouring == "degree" else "light")
        until(page, f"{wrong} === 0")


def test_focus_follows_what_is_opened(page: Any, site: Any) -> None:
    page.keyboard.press("/")
    page.keyboard.type("v17")
    page.wait_for_selector("#matches li")
    page.keyboard.press("Enter")
    until(page, "document.activeElement.tagName === 'H3'")
    assert focused(page) == "v17"
    page.locator("#detail ul button").nth(2).focus()
    row = focused(page)
    page.keyboard.press("Enter")
    until(page, "document.activeElement.id === 'pair'")
    page.keyboard.press("Escape")
    until(page, "document.activeElement.matches('#detail li > button')")
    assert focused(page) == row
    page.keyboard.press("Escape")
    until(page, "document.activeElement.id === 'map'")
    page.keyboard.press("Enter")
    until(page, "document.activeElement.tagName === 'H3'")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_narrow_screen(browser: Any, site: Any, scheme: str) -> None:
    with explorer_page(browser, site, width=390, scheme=scheme) as page:
        x, y = page.evaluate("explorer.map.screen(7)")
        box = page.locator("#map").bounding_box()
        page.touchscreen.tap(box["x"] + x, box["y"] + y)
        page.wait_for_selector("#detail h3")
        until(page, "document.activeElement.tagName === 'H3'")
        assert in_view(page, "#detail h3")
        assert page.locator("#detail h3").bounding_box()["y"] < 844 / 2
        page.locator("#detail ul button").nth(1).tap()
        page.wait_for_selector("#detail li:nth-child(2) > #pair article")
        assert in_view(page, "#detail li:nth-child(2) > button")
        assert in_view(page, "#pair .words")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        page.get_by_role("button", name="Close comparison").tap()
        until(page, "document.getElementById('pair').hidden")
        assert in_view(page, "#detail li:nth-child(2) > button")


def test_the_final_layout_replaces_the_quick_one(browser: Any, site: Any) -> None:
    data = json.loads(gzip.decompress(site.raw("GET", "/api/map", Accept_Encoding="gzip")[2]))
    quick = {**data, "layout": "quick"}
    final = {**quick, "layout": "final", "x": quick["y"], "y": quick["x"]}
    answers = [quick, final]
    with explorer_page(browser, site) as page:
        page.route("**/api/map", lambda route: route.fulfill(json=answers.pop(0)))
        page.route("**/api/layout", lambda route: route.fulfill(json={"layout": "final"}))
        page.reload()
        page.wait_for_selector("#layout:visible")
        assert "Quick layout" in page.locator("#layout").text_content()
        until(page, "document.getElementById('layout').hidden")
        assert page.evaluate("Array.from(explorer.map.x)") == final["x"]
