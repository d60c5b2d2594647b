"""OpenAlex works and Semantic Scholar papers, as JSONL and as answers of the APIs."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from vhe.data.sources import read
from vhe.errors import VHEError

URL = "https://openalex.org/"
WORKS: list[dict[str, Any]] = [
    {
        "id": URL + "W1",
        "display_name": "Red foxes",
        "abstract_inverted_index": {"the": [0, 2], "fox": [1], "den": [3]},
        "referenced_works": [URL + "W2", URL + "W99"],
        "primary_topic": {"display_name": "Foxes", "subfield": {"display_name": "Zoology"}},
    },
    {
        "id": URL + "W2",
        "title": "Dens",
        "abstract_inverted_index": None,
        "referenced_works": [],
        "concepts": [{"display_name": "Biology", "score": 0.9}],
    },
]
PAPERS: list[dict[str, Any]] = [
    {
        "paperId": "s1",
        "title": "Red foxes",
        "abstract": "the fox",
        "references": [{"paperId": "s2", "title": "Dens"}, {"paperId": None}],
        "fieldsOfStudy": ["Biology"],
    },
    {
        "paperId": "s2",
        "title": "Dens",
        "abstract": None,
        "citations": [{"citingPaper": {"paperId": "s3"}}],
        "s2FieldsOfStudy": [{"category": "Zoology", "source": "x"}],
    },
    {"paperId": "s3", "title": "Tails", "outCitations": ["s1"]},
]


@pytest.mark.parametrize("form", ["jsonl", "json", "api", "gz"])
def test_openalex(tmp_path: Path, form: str) -> None:
    path = tmp_path / ("works.jsonl.gz" if form == "gz" else f"works.{form.replace('api', 'json')}")
    if form in ("jsonl", "gz"):
        text = "".join(json.dumps(work) + "\n" for work in WORKS)
    else:
        text = json.dumps({"meta": {"count": 2}, "results": WORKS} if form == "api" else WORKS)
    path.write_bytes(gzip.compress(text.encode()) if form == "gz" else text.encode())
    network = read(path)
    assert network.ids == ("W1", "W2")
    assert network.texts == ("Red foxes\nthe fox the den", "Dens")
    assert network.labels == ("Zoology", "Biology")
    assert network.edges.tolist() == [[0, 1]]
    assert network.directed
    assert network.name == "works"
    assert network.notes[0] == "OpenAlex works: title + abstract"
    assert network.notes[1].startswith("1 reference with unknown ids skipped (first: 'W99' at ")
    assert len(read(path, on_unknown="create")) == 3


@pytest.mark.parametrize("key", [None, "data"])
def test_semantic_scholar(tmp_path: Path, key: str | None) -> None:
    path = tmp_path / "papers.json"
    path.write_text(json.dumps(PAPERS if key is None else {"total": 3, key: PAPERS}))
    network = read(path)
    assert network.ids == ("s1", "s2", "s3")
    assert network.texts == ("Red foxes\nthe fox", "Dens", "Tails")
    assert network.labels == ("Biology", "Zoology", None)
    assert network.edges.tolist() == [[0, 1], [2, 1], [2, 0]]
    assert network.notes[1] == "1 reference without an id ignored"


def test_named_columns_take_precedence(tmp_path: Path) -> None:
    path = tmp_path / "papers.jsonl"
    path.write_text("".join(json.dumps(paper) + "\n" for paper in PAPERS[:2]))
    network = read(path, id="paperId", text="title", references="references")
    assert network.texts == ("Red foxes", "Dens")
    assert network.edges.tolist() == [[0, 1]]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"id": None}, r"w\.jsonl:2: the id is missing or not a string"),
        ({"title": 5}, r"w\.jsonl:2: the title is of type int"),
        ({"abstract_inverted_index": [1]}, r"w\.jsonl:2: abstract_inverted_index does not map"),
        ({"abstract_inverted_index": {"a": 1}}, r"w\.jsonl:2: abstract_inverted_index does not"),
        ({"referenced_works": "W1"}, r"w\.jsonl:2: referenced_works is of type str; give a list"),
        ({"id": URL + "W1"}, r"w\.jsonl:2: duplicate id 'W1' \(first at .*w\.jsonl:1\)"),
    ],
)
def test_errors_name_the_record(tmp_path: Path, change: dict[str, Any], sentence: str) -> None:
    path = tmp_path / "w.jsonl"
    path.write_text(json.dumps(WORKS[0]) + "\n" + json.dumps(WORKS[1] | change) + "\n")
    with pytest.raises(VHEError, match=sentence):
        read(path)


def test_a_truncated_download(tmp_path: Path) -> None:
    path = tmp_path / "w.jsonl"
    path.write_text(json.dumps(WORKS[0]) + "\n" + json.dumps(WORKS[1])[:40])
    with pytest.raises(VHEError, match=r"w\.jsonl:2: not JSON"):
        read(path)
    path = path.rename(tmp_path / "w.json")
    path.write_text(json.dumps({"results": WORKS})[:-9])
    with pytest.raises(VHEError, match=r"w\.json:1: not JSON"):
        read(path)
