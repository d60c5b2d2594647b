"""Bibliographies as reference managers export them."""

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from vhe.data.sources import read
from vhe.errors import VHEError

Put = Callable[..., dict[str, Path]]  # the fixture

BIBTEX = r"""
% Encoding: UTF-8
@string{acm = "ACM " # {Press}}
@comment{ignored @article{no, title={x}}}
@article{smith2019,
  author = {Smith, J.},
  title = "{Homophily} in {Sch\"odinger}'s {\'e}cole",
  abstract = {Text with {nested {braces}} and 50\,\% \& more.},
  keywords = {graphs, text},
  doi = {10.1000/ABC.1},
  publisher = acm,
  references = {Jones, A. (2018) https://doi.org/10.1000/xyz-2; Other 10.9/none},
}
@InProceedings(jones2018,
  title = {Networks}, keywords = "text; links", doi = {https://doi.org/10.1000/xyz-2},
  cites = {smith2019, lee2020}, year = 2018
)
@book{lee2020, title = {A Book}, crossref = {jones2018}}
"""

RIS = """TY  - JOUR
ID  - a
TI  - First title
AB  - An abstract
that continues
KW  - graphs
KW  - text
DO  - 10.1000/a
N1  - References: Jones, Second title, doi: 10.1000/b; Nobody, 10.1000/none
N1  - A personal note about 10.1000/b
ER  -

TY  - BOOK
T1  - Second title
N2  - Other abstract
KW  - text
DO  - 10.1000/b
ER  - 
"""


def test_bibtex(put: Put) -> None:
    network = read(put(library_bib=BIBTEX)["library_bib"])
    assert network.ids == ("smith2019", "jones2018", "lee2020")
    assert network.texts == (
        "Homophily in Schödinger's école\nText with nested braces and 50 % & more.",
        "Networks",
        "A Book",
    )
    assert network.labels == ("text", "text", None)
    assert network.edges.tolist() == [[0, 1], [1, 0], [1, 2], [2, 1]]
    assert network.name == "library"
    assert (
        network.notes[0]
        == "BibTeX: text: title + abstract; references: cites, crossref, references"
    )


def test_ris(put: Put) -> None:
    (path,) = put(export_ris=RIS.replace("\n", "\r\n")).values()
    network = read(path)
    assert network.ids == ("a", "10.1000/b")
    assert network.texts == (
        "First title\nAn abstract that continues",
        "Second title\nOther abstract",
    )
    assert network.labels == ("graphs", "text")
    assert network.edges.tolist() == [[0, 1]]
    assert network.notes[1].startswith(
        "1 reference with unknown ids skipped (first: '10.1000/none'"
    )


def test_csl_json(put: Put) -> None:
    items = [
        {"id": "http://zotero.org/1", "citation-key": "a", "type": "book", "title": "One"},
        {"id": "b", "type": "book", "title": "Two", "abstract": "words", "references": "a"},
    ]
    items = [{**item, "issued": {"date-parts": [[2019]]}, "keyword": "x, y"} for item in items]
    for document in (items, {"items": items}):
        network = read(put(items_json=json.dumps(document))["items_json"])
        assert network.ids == ("a", "b")
        assert network.texts == ("One", "Two\nwords")
        assert network.labels == ("x", "x")
        assert network.edges.tolist() == [[1, 0]]


def test_a_library_without_references_is_read_with_a_table_of_links(put: Put) -> None:
    files = put(
        library_bib="@misc{a, title = {red}, note = {see b}}\n@misc{b, title = {blue}}",
        links_csv="citing,cited\na,b\n",
    )
    alone = read(files["library_bib"])
    assert len(alone.edges) == 0
    assert any("library.bib has no references" in note for note in alone.notes)
    linked = read(files["library_bib"], files["links_csv"])
    assert linked.edges.tolist() == [[0, 1]]
    assert not any("no references" in note for note in linked.notes)
    assert read(files["library_bib"], references="note").edges.tolist() == [[0, 1]]


def test_references_in_a_note_and_as_objects(put: Put) -> None:
    entries = "@misc{a, note = {cites: b, c}}\n@misc{b, }\n@misc{c, note = {Cites: a}}"
    network = read(put(l_bib=entries)["l_bib"], references="note")
    assert network.edges.tolist() == [[0, 1], [0, 2], [2, 0]]
    works = [
        {"id": "a", "DOI": "10.1000/a", "reference": [{"key": "x", "DOI": "10.1000/B"}]},
        {"id": "b", "DOI": "10.1000/b", "reference": [{"unstructured": "See 10.1000/a."}]},
        {"id": "c", "references": [{"id": "a"}, {"year": 2019}]},
    ]
    items = [{**work, "type": "article", "author": []} for work in works]
    assert read(put(l_json=json.dumps(items))["l_json"]).edges.tolist() == [[0, 1], [1, 0], [2, 0]]


def test_a_keyword_of_all_entries_is_no_label(put: Put) -> None:
    entries = "".join(f"@misc{{{k}, keywords = {{all, {k}s}}}}\n" for k in "ab")
    assert read(put(l_bib=entries + "@misc{c, keywords={all}}")["l_bib"]).labels == (
        "as",
        "bs",
        "all",
    )


def test_duplicate_keys(put: Put) -> None:
    entries = "@misc{a, title = {x}, abstract={y}}\n@misc{a, title = {z}, keywords={k}}\n@misc{b,}"
    (path,) = put(l_bib=entries).values()
    with pytest.raises(VHEError, match=r"l\.bib:2: duplicate id 'a' \(first at .*l\.bib:1\)"):
        read(path)
    assert read(path, on_duplicate="first").texts == ("x\ny", "")
    merged = read(path, on_duplicate="merge")
    assert merged.texts == ("x\ny\nz", "")
    assert merged.ids == ("a", "b")


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("l_bib", "", r"l\.bib is empty"),
        ("l_json", "", r"l\.json is empty"),
        ("l_ris", "\n", "contains no entries of RIS"),
        ("l_bib", "just words", "contains no entries of BibTeX"),
        ("l_bib", "\n@misc{a, title = {x}", r"l\.bib:2: the entry is not closed"),
        ("l_bib", "@misc{a, title = {x", r"l\.bib:1: { is not closed"),
        ("l_bib", '@misc{a, title = "x}', r'l\.bib:1: " is not closed'),
        ("l_bib", "@misc{, title = {x}}", r"l\.bib:1: the entry has no citation key"),
        ("l_bib", "@misc{a,\n title {x}}", r"l\.bib:2: 'title {x}}' instead of a field"),
        ("l_bib", "@misc{a, title = ,}", r"l\.bib:1: a field of the entry has no value"),
        ("l_bib", "@misc{a, title = " + "{" * 5000, r"l\.bib:1: { is not closed"),
        ("l_ris", "hello\n", r"l\.ris:1: 'hello' instead of a tag"),
        ("l_ris", "TI  - x\n", r"l\.ris:1: the tag TI is outside of a record"),
        ("l_ris", "TY  - JOUR\nTI  - x\n", r"l\.ris:1: the record has no end"),
        ("l_ris", "TY  - JOUR\nTY  - JOUR\n", r"l\.ris:2: a new record starts"),
        ("l_ris", "TY  - JOUR\nAU  - x\nER  - \n", r"l\.ris:1: the entry has no id or do"),
        ("l_ris", b"TY  - JOUR\nTI  - \xff\xc3\xa9\n", r"l\.ris:2: byte 7 of the line"),
        (
            "l_json",
            '[{"id": 1, "type": "b", "author": [], "title": 5}]',
            r"\(record 1\): the title",
        ),
        ("l_json", '[{"id": 1, "type": "b", "author": []', r"l\.json:1: not JSON"),
    ],
)
def test_errors_of_bibliographies(put: Put, name: str, content: str | bytes, sentence: str) -> None:
    with pytest.raises(VHEError, match=sentence) as caught:
        read(put(**{name: content})[name])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("start", ["@a{", "@a{ key", "@a{key, title = "])
def test_spaces_without_end_are_read_in_linear_time(put: Put, start: str) -> None:
    files = put(l_bib=start + " " * 20_000 + "x")
    began = time.process_time()
    with pytest.raises(VHEError, match=r"l\.bib:1: "):
        read(files["l_bib"])
    assert time.process_time() - began < 2
