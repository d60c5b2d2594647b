"""Frame times of the map in chromium, with all links shown.

    .venv/bin/python benchmarks/explorer_frames.py [--vertices 60000] [--links 300000] [--out FILE]

writes a page with a made-up network of communities, shows all links, and drags the map by a few
pixels, or zooms by 3 %, per frame at several magnifications. It prints the median and the 95th
percentile of the time between frames, which the refresh rate of the display bounds from below, and
of the time that one frame takes to draw. Needs Playwright and chromium, which runs headless and
without a graphics card.
"""

from __future__ import annotations

import argparse
import itertools
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from vhe.data.network import TextNetwork
from vhe.web.report import write_report

ZOOMS = (1, 4, 16)
FRAMES = 60
GESTURES = ("drag", "zoom")
MOVE = """
async ([gesture, zoom, frames]) => {
  map.fit();
  map.zoom(zoom);
  const between = [], drawing = [], next = () => new Promise(requestAnimationFrame);
  const draw = map.draw.bind(map);
  map.draw = () => {
    const began = performance.now();
    draw();
    drawing.push(performance.now() - began);
  };
  let last = await next();
  for (let k = 0; k < frames; k++) {
    if (gesture === "drag") map.move(k % 20 < 10 ? 6 : -6, 3);
    else map.zoom(k % 20 < 10 ? 1.03 : 1 / 1.03);
    const now = await next();
    between.push(now - last);
    last = now;
  }
  map.draw = draw;
  const began = performance.now();
  do await next(); while (map.edges && !map.edges.complete);
  return { between, drawing, rest: performance.now() - began };
}
"""


def made_up_network(n: int, m: int) -> tuple[TextNetwork, np.ndarray]:
    """Communities on a plane: nine of ten links are inside a community."""
    rng = np.random.default_rng(0)
    communities = rng.normal(size=(200, 2)) * 10
    member = np.sort(rng.integers(len(communities), size=n))
    coordinates = communities[member] + rng.normal(size=(n, 2)) * 0.7
    first = np.searchsorted(member, member)
    size = np.bincount(member)[member]
    source = rng.integers(n, size=m)
    inside = first[source] + (rng.random(m) * size[source]).astype(int)
    target = np.where(rng.random(m) < 0.9, inside, rng.integers(n, size=m))
    links = np.stack([source, target], axis=1)
    labels = [f"community {k % 12}" for k in member]
    return TextNetwork([f"v{i}" for i in range(n)], [""] * n, links, labels), coordinates


def measure(page: Any, links: bool, gesture: str, zoom: int) -> dict[str, float | str]:
    """Median and 95th percentile in milliseconds."""
    page.evaluate(f"map.showEdges({str(links).lower()})")
    found = page.evaluate(MOVE, [gesture, zoom, FRAMES])
    between, drawing = (np.percentile(found[name], [50, 95]) for name in ("between", "drawing"))
    row = {"between": between[0], "between_95": between[1]}
    row |= {"drawing": drawing[0], "drawing_95": drawing[1], "rest": found["rest"]}
    shown = {"links": links, "gesture": gesture, "zoom": zoom}
    return shown | {name: round(value, 1) for name, value in row.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--vertices", type=int, default=60_000)
    parser.add_argument("--links", type=int, default=300_000)
    parser.add_argument("--out", type=Path, help="JSON file for the figures")
    parser.add_argument("--screenshot", type=Path, help="PNG of the last view")
    given = parser.parse_args()
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as play, tempfile.TemporaryDirectory() as folder:
        network, coordinates = made_up_network(given.vertices, given.links)
        path = write_report(
            Path(folder) / "map.html",
            network,
            coordinates,
            title="made up",
            lede="",
            texts=network.texts,
            labels=network.labels,
            suggestions=np.zeros((0, 2), dtype=int),
            probabilities=np.zeros(0),
        )
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 860})
        page.goto(path.as_uri())
        print(f"{len(network):,} vertices, {len(network.links):,} links")
        rows = []
        for links, gesture, zoom in itertools.product((False, True), GESTURES, ZOOMS):
            rows.append(measure(page, links, gesture, zoom))
            print(rows[-1], flush=True)
        if given.screenshot:
            page.screenshot(path=given.screenshot)
        browser.close()
    if given.out:
        size = {"vertices": len(network), "links": len(network.links)}
        given.out.write_text(json.dumps(size | {"frames": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
