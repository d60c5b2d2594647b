"""The report is one valid, self-contained file and escapes all texts."""

import errno
import itertools
import os
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.web.html_page import Page

from vhe.data.network import TextNetwork
from vhe.errors import VHEError
from vhe.web.map_data import first_words
from vhe.web.report import MIN_PROBABILITY, write_report

HOSTILE = [
    "</script><img src=x onerror=alert(1)>",
    "<!--<script>",
    '"><svg onload=alert(2)>',
    "a\u2028b\u2029c\x00d",
    "\ud800 alone",
    "${title} $data %s {0}",
    "naïve Ωmega 漢字 🙂",
    "&amp;&lt;",
]


def written(path: Path, **changes: Any) -> tuple[str, Page]:
    given: dict[str, Any] = {
        "ids": HOSTILE,
        "links": [[0, 1], [1, 2]],
        "title": HOSTILE[0],
        "lede": HOSTILE[2],
        "texts": HOSTILE,
        "labels": [*HOSTILE[:3], None, *HOSTILE[:4]],
        "suggestions": np.array([[0, 3]]),
        "probabilities": np.array([0.75]),
    } | changes
    ids = given.pop("ids")
    network = TextNetwork(ids, [""] * len(ids), given.pop("links"))
    coordinates = given.pop("coordinates", np.random.default_rng(0).normal(size=(len(ids), 2)))
    text = write_report(path / "deep" / "report.html", network, coordinates, **given).read_text(
        "utf-8"
    )
    return text, Page(text)


def test_markup_in_texts_is_escaped(tmp_path: Path) -> None:
    _, page = written(tmp_path)
    assert {tag for tag, _ in page.tags} & {"img", "iframe", "object", "embed"} == set()
    assert sum(tag == "script" for tag, _ in page.tags) == 2
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
    assert page.texts["title"] == page.texts["h1"] == [HOSTILE[0]]
    assert HOSTILE[2] in page.texts["p"]


def test_all_vertices_links_and_suggestions_are_in_the_data(tmp_path: Path) -> None:
    _, page = written(tmp_path)
    network = page.network
    # Lone surrogates are replaced; everything else is unchanged.
    assert network["ids"] == [text.replace("\ud800", "?") for text in HOSTILE]
    assert {len(network[name]) for name in ("ids", "x", "y", "label", "texts")} == {len(HOSTILE)}
    assert network["links"] == [0, 1, 1, 2]
    assert (network["suggested"], network["probability"]) == ([0, 3], [0.75])


def test_no_external_requests(tmp_path: Path) -> None:
    _, page = written(tmp_path, ids=list("abcdefgh"), texts=["plain"] * 8)
    addresses = [
        value
        for _, attributes in page.tags
        for name, value in attributes.items()
        if name in {"src", "href", "srcset", "action", "data", "poster"}
    ]
    assert addresses
    assert all(address == "data:," or address.startswith("#") for address in addresses)
    code = "".join(page.texts["style"] + page.texts["script"][1:])
    assert not re.search(r"https?:|//\w+\.|@import|url\(|fetch|XMLHttpRequest|import\(", code)


def test_the_policy_allows_exactly_the_inline_code(tmp_path: Path) -> None:
    import base64
    import hashlib

    _, page = written(tmp_path)
    policy = next(a["content"] for tag, a in page.tags if a.get("http-equiv"))
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    for code in (page.texts["style"][0], page.texts["script"][1]):
        digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert "unsafe" not in policy


def test_coordinates_keep_their_proportions(tmp_path: Path) -> None:
    points = np.array([[0.0, 0.0], [4.0, 0.0], [4.0, 1.0], [2.0, 0.5]])
    _, page = written(
        tmp_path,
        coordinates=points,
        ids=list("abcd"),
        texts=[""] * 4,
        labels=None,
    )
    x, y = np.array(page.network["x"]), np.array(page.network["y"])
    assert x.tolist() == [0, 30_000, 30_000, 15_000]
    assert y.tolist() == [7_500, 7_500, 0, 3_750]  # y points downwards on a screen
    assert (page.network["labels"], page.network["label"]) == ([], [-1] * 4)


def test_labels_are_ordered_by_frequency(tmp_path: Path) -> None:
    labels = ["b", "b", "b", "a", "a", None, "c", 7]
    _, page = written(tmp_path, labels=labels)
    assert page.network["labels"] == ["b", "a", "7", "c"]
    assert page.network["label"] == [0, 0, 0, 1, 1, -1, 3, 2]


def test_a_label_is_written_at_its_densest_region(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.normal(size=(80, 2)) * 0.1 + [10, 5], rng.uniform(-9, 0, (20, 2))])
    _, page = written(
        tmp_path,
        coordinates=points,
        ids=list(range(100)),
        texts=[""] * 100,
        labels=["one"] * 100,
    )
    (region,) = page.network["regions"]
    near = np.hypot(
        np.array(page.network["x"][:80]) - region["x"],
        np.array(page.network["y"][:80]) - region["y"],
    )
    assert near.max() < 1500


@pytest.mark.parametrize("n", [1, 2])
def test_very_few_vertices(tmp_path: Path, n: int) -> None:
    _, page = written(
        tmp_path,
        coordinates=np.zeros((n, 2)),
        ids=list(range(n)),
        texts=[""] * n,
        labels=[None] * n,
        links=np.zeros((0, 2), dtype=int),
        suggestions=np.zeros((0, 2), dtype=int),
        probabilities=np.zeros(0),
    )
    assert page.network["ids"] == [str(i) for i in range(n)]


def test_improbable_suggestions_are_omitted(tmp_path: Path) -> None:
    _, page = written(
        tmp_path,
        suggestions=np.array([[0, 3], [0, 4], [0, 5]]),
        probabilities=np.array([0.5, MIN_PROBABILITY - 0.01, MIN_PROBABILITY]),
    )
    assert page.network["suggested"] == [0, 3, 0, 5]
    assert page.network["probability"] == [0.5, MIN_PROBABILITY]


def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, _ = written(tmp_path)

    def write_half(path: Path, data: bytes) -> int:
        with path.open("wb") as file:
            file.write(data[: len(data) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", write_half)
    with pytest.raises(VHEError, match=r"report\.html cannot be written: No space left"):
        written(tmp_path, title="new")
    (path,) = (tmp_path / "deep").iterdir()  # no temporary file is left
    assert path.read_text("utf-8") == old


def test_file_size(tmp_path: Path) -> None:
    n = 4_600
    rng = np.random.default_rng(0)
    path = write_report(
        tmp_path / "r.html",
        TextNetwork(
            [f"package.subpackage.function_{i}" for i in range(n)],
            [""] * n,
            rng.integers(n, size=(n, 2)),
        ),
        rng.normal(size=(n, 2)),
        title="large",
        lede="",
        texts=["a sentence that is repeated until the text is long " * 9] * n,
        labels=[f"package.{i % 70}" for i in range(n)],
        suggestions=rng.integers(n, size=(3 * n, 2)),
        probabilities=rng.random(3 * n),
    )
    assert path.stat().st_size < 1.5e6


def test_first_words() -> None:
    assert first_words("  one\n\ttwo ") == "one two"
    assert first_words("one two three", 8) == "one two…"
    assert first_words("x" * 500, 20) == "x" * 20 + "…"
    assert first_words("") == ""


def _matrix(numbers: str) -> np.ndarray:
    return np.array(numbers.split(), dtype=float).reshape(3, 3)


def _seen(colours: np.ndarray) -> list[np.ndarray]:
    """sRGB colours (n, 3) in OKLab, for normal vision and three types of colour blindness.

    The simulation is that of Machado, Oliveira and Fernandes (2009) at full severity.
    """
    linear = np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)
    kinds = [
        np.eye(3),
        _matrix(".152286 1.052583 -.204868 .114503 .786281 .099216 -.003882 -.048116 1.051998"),
        _matrix(".367322 .860646 -.227968 .280085 .672501 .047413 -.011820 .042940 .968881"),
        _matrix("1.255528 -.076749 -.178779 -.078411 .930809 .147602 .004733 .691367 .303900"),
    ]
    cones = _matrix(".412221 .536333 .051446 .211903 .680700 .107397 .088302 .281719 .629979")
    lab = _matrix(".210454 .793618 -.004072 1.977998 -2.428592 .450594 .025904 .782772 -.808676")
    return [np.cbrt(np.clip(linear @ kind.T, 0, 1) @ cones.T) @ lab.T for kind in kinds]


def test_colours_are_distinct_for_the_colour_blind() -> None:
    style = files("vhe.web").joinpath("page", "map.css").read_text("utf-8")
    found = re.findall(r"--(?:c\d+|rest): #(\w{6})", style)
    assert len(found) == 26  # twelve colours and a grey, for light and for dark
    for palette in (found[:13], found[13:]):
        colours = np.array([[int(h[k : k + 2], 16) / 255 for k in (0, 2, 4)] for h in palette])
        for seen in _seen(colours):
            closest = min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2))
            assert closest > 0.09  # the eight colours of Okabe and Ito have 0.076
