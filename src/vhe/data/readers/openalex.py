"""Works of OpenAlex and papers of Semantic Scholar, in JSONL or JSON as their APIs return them.

OpenAlex: the id is that of the work (`W2741809807`); the text is its title and abstract, restored
from `abstract_inverted_index`; the label is the subfield of the primary topic, or else the first
concept; references are `referenced_works`.

Semantic Scholar: the id is `paperId` or `corpusId`; the text is title and abstract; the label is
the first field of study; references are `references` and `outCitations`, citations `citations`.

Most references lead out of a collection: they are counted and skipped, see `records.Rules`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from vhe.data.parts import NetworkParts
from vhe.data.readers.inputs import Input
from vhe.data.readers.json_documents import Documents
from vhe.data.readers.records import DEFAULTS, Records, Rules, joined
from vhe.errors import VHEError
from vhe.runtime.messages import counted

MAX_WORDS = 1_000_000  # of an abstract
SEMANTIC_SCHOLAR_IDS = ("paperId", "corpusId", "corpusid")


def is_record(document: Mapping[str, Any]) -> bool:
    """Return whether a JSON object is a work of OpenAlex or a paper of Semantic Scholar."""
    return _is_openalex(document) or any(key in document for key in SEMANTIC_SCHOLAR_IDS)


def read_works(source: Input, rules: Rules = DEFAULTS) -> NetworkParts:
    """Read works or papers and the references between them."""
    documents = Documents(source)
    records = Records(rules, documents.where)
    services = set()
    without_id = 0  # papers that Semantic Scholar does not have
    for position, document in documents:
        where = documents.where(position)
        openalex = _is_openalex(document)
        services.add("OpenAlex works" if openalex else "Semantic Scholar papers")
        vertex = _openalex_id(document.get("id")) if openalex else _paper_id(document)
        if vertex is None:
            key = "id" if openalex else "paperId"
            raise VHEError(f"{where}: the {key} is missing or not a string.")
        title = document.get("title") or document.get("display_name")
        abstract = document.get("abstract")
        if openalex and not abstract:
            abstract = _abstract(document.get("abstract_inverted_index"), where)
        for name, value in (("title", title), ("abstract", abstract)):
            if value is not None and not isinstance(value, str):
                kind = type(value).__name__
                raise VHEError(f"{where}: the {name} is of type {kind}; give a string.")
        label = _topic(document) if openalex else _field(document)
        records.add(vertex, joined(title, abstract), label, position)
        if openalex:
            for other in _list(document, "referenced_works", where):
                if (target := _openalex_id(other)) is not None:
                    records.link(vertex, target, position)
        else:
            for key in ("references", "outCitations", "citations"):
                for other in _papers(document, key, where):
                    if other is None:
                        without_id += 1
                    else:
                        ends = (other, vertex) if key == "citations" else (vertex, other)
                        records.link(*ends, position)
    records.notes += [*documents.notes, f"{' and '.join(sorted(services))}: title + abstract"]
    if without_id:
        records.notes.append(f"{counted(without_id, 'reference')} without an id ignored")
    return records.parts(source.stem)


def _is_openalex(document: Mapping[str, Any]) -> bool:
    return (
        "referenced_works" in document
        or "abstract_inverted_index" in document
        or str(document.get("id", "")).startswith("https://openalex.org/")
    )


def _openalex_id(value: Any) -> str | None:
    """Return the last part of an OpenAlex URL."""
    return value.rstrip("/").rpartition("/")[2] or None if isinstance(value, str) else None


def _paper_id(document: Mapping[str, Any]) -> str | int | None:
    values = (document.get(key) for key in SEMANTIC_SCHOLAR_IDS)
    return next((v for v in values if type(v) in (str, int) and v != ""), None)


def _abstract(index: Any, where: str) -> str | None:
    """Restore a text from the positions of its words."""
    if index is None:
        return None
    words: dict[int, str] = {}
    try:
        for word, places in index.items():
            for place in places:
                words[int(place)] = word
    except (AttributeError, TypeError, ValueError):
        raise VHEError(
            f"{where}: abstract_inverted_index does not map words to lists of positions."
        ) from None
    if len(words) > MAX_WORDS:
        raise VHEError(f"{where}: the abstract has more than {MAX_WORDS:,} words.")
    return " ".join(words[place] for place in sorted(words))


def _topic(document: Mapping[str, Any]) -> str | None:
    topic = document.get("primary_topic")
    concepts = document.get("concepts")
    first = concepts[0] if isinstance(concepts, list) and concepts else None
    if isinstance(topic, dict):
        return _display_name(topic.get("subfield")) or _display_name(topic)
    return _display_name(first)


def _display_name(value: Any) -> str | None:
    name = value.get("display_name") if isinstance(value, dict) else None
    return name if isinstance(name, str) and name else None


def _field(document: Mapping[str, Any]) -> str | None:
    """Return the first field of study: a string, or an object with its category."""
    for key in ("fieldsOfStudy", "s2FieldsOfStudy", "s2fieldsofstudy"):
        for value in document.get(key) or ():
            name = value.get("category") if isinstance(value, dict) else value
            if isinstance(name, str) and name:
                return name
    return None


def _list(document: Mapping[str, Any], key: str, where: str) -> list[Any]:
    values = document.get(key)
    if values is None:
        return []
    if not isinstance(values, list):
        raise VHEError(f"{where}: {key} is of type {type(values).__name__}; give a list.")
    return values


def _papers(document: Mapping[str, Any], key: str, where: str) -> Iterator[str | int | None]:
    """Yield the ids of the papers in a list of ids or of objects; None for one without an id."""
    for value in _list(document, key, where):
        if isinstance(value, dict):
            nested = value.get("citedPaper") or value.get("citingPaper") or value
            value = _paper_id(nested) if isinstance(nested, dict) else None
        yield value if type(value) in (str, int) and value != "" else None
