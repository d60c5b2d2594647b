"""Draw the pictures of the documentation: results on See Also, and diagrams of both models.

    .venv/bin/python docs/pictures.py demo/model

uses the model that `make demo` wrote. The same model gives the same pictures. `explain.png` and
`explorer.png` are screenshots and need Playwright and chromium.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import numpy as np
import torch

import vhe
from vhe.data.text import tokenize
from vhe.evaluation.drawing import COLOURS, INK, drawing
from vhe.graph.prior import GraphPrior
from vhe.web import loading
from vhe.web.map_files import write_map

IMAGES = Path(__file__).parent / "images"
PAIR = ("networkx.bfs_tree", "networkx.dfs_edges")  # not linked in the network
LINES: Any = {"colors": COLOURS[0], "linestyles": "solid"}
WIDTH = 1280  # pixels of a raster image


def small_png(source: Path, target: Path) -> None:
    """Scale an image down to `WIDTH` and reduce its colours."""
    from PIL import Image

    picture = Image.open(source).convert("RGB")
    picture.thumbnail((WIDTH, WIDTH), Image.Resampling.LANCZOS)
    few = picture.quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    few.save(target, optimize=True)


def draw_map(model: vhe.VHE, coordinates: np.ndarray) -> None:
    """The output of `vhe map demo/model --out map.png`."""
    with tempfile.TemporaryDirectory() as folder:
        write_map(Path(folder) / "map.png", model, coordinates)
        small_png(Path(folder) / "map.png", IMAGES / "map.png")


def draw_explorer(model: vhe.VHE, coordinates: np.ndarray) -> None:
    """A screenshot of `vhe serve demo/model` with the first suggestion opened."""
    from playwright.sync_api import sync_playwright

    from vhe.web.app import make_app
    from vhe.web.explorer import Explorer
    from vhe.web.server import bind, server
    from vhe.web.service import Service
    from vhe.web.snapshot import Snapshot

    service = Service(Snapshot(Explorer(model, coordinates)))
    service.start()
    bound = bind("127.0.0.1", 0)
    running = server(make_app(service))
    thread = threading.Thread(target=running.run, kwargs={"sockets": [bound]})
    thread.start()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": 860}, reduced_motion="reduce")
        page.set_default_timeout(300_000)
        page.goto(f"http://127.0.0.1:{bound.getsockname()[1]}/")
        page.locator("#suggestions li > button").first.click()
        page.wait_for_selector("#pair article")
        page.screenshot(path=IMAGES / "explorer.png")
        small_png(IMAGES / "explorer.png", IMAGES / "explorer.png")
        browser.close()
    running.should_exit = True
    thread.join()
    service.close()


def draw_explanation(model: vhe.VHE) -> None:
    """A screenshot of the output of `vhe explain demo/model A B --html link.html`."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as play, tempfile.TemporaryDirectory() as folder:
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 800, "height": 200}, device_scale_factor=1.6)
        page.set_content(model.explain(*PAIR).to_html())
        page.screenshot(path=Path(folder) / "page.png", full_page=True)
        browser.close()
        small_png(Path(folder) / "page.png", IMAGES / "explain.png")


def draw_priors() -> None:
    """p0 and p1 as densities over one dimension of the two codes."""
    side = np.linspace(-3, 3, 121)
    z_i, z_j = np.meshgrid(side, side)
    names = ("no link: p₀ (λ = 0)", "linked, λ = 0.9", "linked: p₁ (λ = 0.99)")
    with drawing(IMAGES / "priors.svg", (7.5, 2.6), panels=3, columns=3) as panels:
        for axes, name, homophily in zip(panels, names, (0.0, 0.9, 0.99), strict=True):
            free = 1 - homophily**2
            power = (z_i**2 + z_j**2 - 2 * homophily * z_i * z_j) / (2 * free)
            axes.contour(z_i, z_j, -power, levels=[-3, -2, -1, -0.3], **LINES)
            axes.set(title=name, xlabel="$z_i$", ylabel="$z_j$", aspect="equal")


def draw_alignment(model: vhe.VHE) -> None:
    """M of two texts as a heat map: the input of the alignment kernels."""
    network, words = model.network_, 14
    known = set(model._corpus.vocabulary)
    tokens, spelling = [], []
    for vertex in map(network.index, PAIR):
        start = model._corpus.offsets[vertex]
        tokens.append(model._corpus.tokens[start : start + words].astype(np.int64))
        read = [w for w in tokenize(network.texts[vertex]) if w in known]
        spelling.append(read[:words])
    x_i, x_j = (model._graph.words[t] for t in tokens)
    with drawing(IMAGES / "alignment.svg", (7.5, 4.4)) as (axes,):
        axes.grid(visible=False)
        axes.imshow(x_i @ x_j.T, cmap="Blues", aspect="auto")
        axes.set_xticks(range(words), spelling[1], rotation=60, ha="right")
        axes.set_yticks(range(words), spelling[0])
        axes.set_xlabel(f"$x_j$ · {PAIR[1]}")
        axes.set_ylabel(f"$x_i$ · {PAIR[0]}")


def draw_model() -> None:
    """The parts of the pair model, from two texts to the ELBO."""
    boxes = {  # label, and coordinates of the centre
        "text i": (0.8, 3.4),
        "text j": (0.8, 1.2),
        "alignment\nalignment.py": (2.7, 2.3),
        "structure h\nmodel.py": (2.7, 0.5),
        "integrator\nintegrator.py": (4.7, 2.3),
        "q₁, q₀, π\nhomophily.py": (6.7, 2.3),
        "decoder\ndecoder.py": (8.7, 3.4),
        "priors p₁, p₀\nhomophily.py": (8.7, 1.2),
        "ELBO\nelbo.py": (10.6, 2.3),
    }
    arrows = [(0, 2), (1, 2), (2, 4), (3, 4), (4, 5), (5, 6), (5, 7), (6, 8), (7, 8)]
    with drawing(IMAGES / "model.svg", (7.5, 2.7)) as (axes,):
        axes.set_axis_off()
        axes.set(xlim=(0, 11.5), ylim=(0, 4))
        middles = list(boxes.values())
        for start, end in arrows:
            axes.annotate(
                "",
                middles[end],
                middles[start],
                arrowprops={"arrowstyle": "-|>", "color": INK, "shrinkA": 26, "shrinkB": 28},
            )
        for name, (x, y) in boxes.items():
            box: Any = {"boxstyle": "round,pad=0.5", "fc": COLOURS[0], "alpha": 0.25, "lw": 0}
            axes.text(x, y, name, ha="center", va="center", fontsize=7.5, bbox=box)


def draw_joint() -> None:
    """The posterior covariance of all codes of a graph: two groups and a bridge."""
    groups = [(i, j) for start in (0, 4) for i in range(start, start + 4) for j in range(i)]
    links = np.array([(i, j) for i, j in groups if i // 4 == j // 4] + [(3, 4)])
    posterior = GraphPrior(links, np.full(8, 10), link_strength=2.0).posterior()
    covariance = posterior.solve(torch.eye(8), 30).numpy()
    with drawing(IMAGES / "joint.svg", (7.5, 3), panels=2, columns=2) as (graph, heat):
        angle = np.arange(4) * np.pi / 2
        x = np.concatenate([np.cos(angle) - 1.7, -np.cos(angle[::-1] + np.pi / 2) + 1.7])
        y = np.concatenate([np.sin(angle), np.sin(angle)])
        x[[0, 3]], y[[0, 3]] = x[[3, 0]], y[[3, 0]]  # vertex 3 faces the other group
        right = np.argmin(x[4:]) + 4
        x[[4, right]], y[[4, right]] = x[[right, 4]], y[[right, 4]]
        for i, j in links:
            graph.plot(x[[i, j]], y[[i, j]], color=COLOURS[0], linewidth=1, zorder=1)
        graph.scatter(x, y, s=180, color="#c9daee", zorder=2)
        for k in range(8):
            graph.text(x[k], y[k], str(k), ha="center", va="center", color="#15191d")
        graph.set_axis_off()
        graph.margins(0.12)
        graph.set_aspect("equal")
        graph.set_title("eight vertices, thirteen links")
        heat.grid(visible=False)
        heat.imshow(covariance, cmap="Blues", vmin=0)
        heat.set_title("covariance of their codes, $A^{-1}$")
        heat.set_xticks(range(8))
        heat.set_yticks(range(8))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} MODEL (the model folder of make demo: demo/model)")
    IMAGES.mkdir(exist_ok=True)
    folder = Path(sys.argv[1])
    fitted = vhe.VHE.load(folder)
    layout = loading.map_coordinates(folder, loading.load(folder))
    draw_priors()
    draw_model()
    draw_joint()
    draw_alignment(fitted)
    draw_explanation(fitted)
    draw_explorer(fitted, layout)
    draw_map(fitted, layout)
    for picture in sorted(IMAGES.iterdir()):
        print(f"{picture.name}: {picture.stat().st_size / 1000:.0f} kB")
