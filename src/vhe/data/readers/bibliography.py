"""Bibliographies: BibTeX, RIS and CSL-JSON, as Zotero, JabRef, Scopus and others export them.

The id is the citation key; in RIS, the tag ID, else the DOI, the accession number or the title. The
text is title and abstract without LaTeX markup. The label is the collection or group, or else the
most common of the entry's keywords in the file.

References are read where the export has them: BibTeX fields `references`, `cites`, `related`,
`crossref` and `xref`; RIS tags CR and N1 (`References: ...`, Scopus); CSL-JSON `references` and
Crossref's `reference`. They are lists of keys, texts with DOIs, or objects with one of them;
`--references FIELD` names another field, such as a note `cites: key1, key2`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from vhe.data.parts import NetworkParts
from vhe.data.readers.bibtex import bibtex_entries
from vhe.data.readers.inputs import Input
from vhe.data.readers.json_documents import Documents
from vhe.data.readers.latex import latex_to_text
from vhe.data.readers.records import DEFAULTS, Records, Rules, common_labels, joined, split_tags
from vhe.data.readers.ris import ris_records
from vhe.errors import VHEError

Entry = dict[str, list[str]]  # field in lower case -> values

FIELDS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "BibTeX": {
        "id": ("=key",),
        "text": ("title", "abstract"),
        "collection": ("groups", "collection", "mendeley-groups"),
        "keywords": ("keywords", "keyword", "author_keywords"),
        "references": ("references", "cites", "related", "crossref", "xref"),
        "doi": ("doi",),
    },
    "RIS": {
        "id": ("id", "do", "an", "ti", "t1"),
        "text": ("ti", "t1", "ct", "ab", "n2"),
        "collection": (),
        "keywords": ("kw",),
        "references": ("cr", "n1"),
        "doi": ("do",),
    },
    "CSL-JSON": {
        "id": ("citation-key", "id"),
        "text": ("title", "abstract"),
        "collection": ("collection",),
        "keywords": ("keyword", "categories"),
        "references": ("references", "reference"),
        "doi": ("doi",),
    },
}
SAME = {"t1": "ti", "ct": "ti", "n2": "ab"}  # RIS tags for the same thing
HEADING = re.compile(r"\s*(?:references|cites|citing)\s*:", re.I)  # before a list in a note
DOI = re.compile(r"10\.\d{4,9}/[^\s,;\"<>{}]+")


def is_csl(document: Mapping[str, Any]) -> bool:
    """Return whether a JSON object is an item of CSL-JSON."""
    return (
        "id" in document and "type" in document and ("issued" in document or "author" in document)
    )


def read_bibliography(
    source: Input, form: str, rules: Rules = DEFAULTS, *, needs_references: bool = True
) -> NetworkParts:
    """Read the entries of a bibliography in the format `form`, a key of FIELDS.

    That there are no references is noted if they are needed: if there is no file of edges.
    """
    fields = FIELDS[form]
    documents = Documents(source) if form == "CSL-JSON" else None
    where: Callable[[int], str]
    where = documents.where if documents else lambda line: f"{source.shown}:{line}"
    found: Iterable[tuple[int, Entry]]
    if documents:
        found = ((k, _csl_entry(d, documents.where(k))) for k, d in documents)
    else:
        found = bibtex_entries(source) if form == "BibTeX" else ris_records(source)
    entries = []
    records = Records(rules, where)
    wanted_id = (rules.id.lower(),) if rules.id else fields["id"]
    wanted_text = tuple(name.lower() for name in rules.text) or fields["text"]
    by_doi: dict[str, str] = {}
    for position, entry in found:
        vertex = _first(entry, wanted_id)
        if not vertex:
            raise VHEError(
                f"{where(position)}: the entry has no {' or '.join(wanted_id).replace('=', '')}."
            )
        texts: dict[str, str] = {}
        for name in wanted_text:
            if name in entry:
                texts.setdefault(SAME.get(name, name), " ".join(entry[name]))
        text = joined(*map(latex_to_text, texts.values()))
        count = len(records)
        records.add(vertex, text, None, position)
        if len(records) > count:  # not a duplicate
            entries.append((position, vertex, entry))
        doi = _doi(_first(entry, fields["doi"]))
        if doi:
            by_doi.setdefault(doi, vertex)
    if documents:
        records.notes += documents.notes
    records.notes += source.notes if not documents else []
    if not entries:
        raise VHEError(f"{source.shown} contains no entries of {form}.")
    references = (rules.references.lower(),) if rules.references else fields["references"]
    _set_labels(records, [entry for _, _, entry in entries], fields, rules)
    seen = set()
    for position, vertex, entry in entries:
        for name in references:
            for value in entry.get(name, ()):
                targets = list(_targets(value, records, by_doi, name))
                seen.update([name] if targets else [])
                for target in targets:
                    records.link(vertex, target, position)
    records.notes.append(f"{form}: text: {' + '.join(dict.fromkeys(map(_tag, wanted_text)))}")
    if seen:
        records.notes[-1] += f"; references: {', '.join(sorted(seen))}"
    elif needs_references:
        records.notes.append(
            f"{source.name} has no references (fields {', '.join(references)}): name another field "
            "with --references, or give a file of links with --edges"
        )
    return records.parts(source.stem)


def _tag(name: str) -> str:
    return SAME.get(name, name)


def _set_labels(
    records: Records, entries: list[Entry], fields: Mapping[str, tuple[str, ...]], rules: Rules
) -> None:
    collection = (rules.label.lower(),) if rules.label else fields["collection"]
    tags = []
    for entry in entries:
        values = [v for name in collection for v in entry.get(name, ())]
        if not values and not rules.label:
            values = [v for name in fields["keywords"] for v in entry.get(name, ())]
        tags.append([tag for v in values for tag in split_tags(latex_to_text(v))])
    records.labels[:] = common_labels(tags)


def _first(entry: Entry, names: Iterable[str]) -> str:
    return next((v.strip() for name in names for v in entry.get(name, ()) if v.strip()), "")


def _doi(text: str) -> str:
    match = DOI.search(text.lower())
    return match[0].rstrip(".)") if match else ""


def _targets(value: str, records: Records, by_doi: Mapping[str, str], field: str) -> Iterator[str]:
    """Yield the entries that a field refers to: keys, or DOIs in a text.

    In free text (RIS notes, lists of references) only entries of the file are recognised.
    """
    if field == "n1" and not value.lower().startswith("references"):
        return
    value = HEADING.sub("", value, count=1)
    parts = [part.strip() for part in re.split(r"[,;\n]", value) if part.strip()]
    dois = [d for m in DOI.finditer(value.lower()) if (d := m[0].rstrip(".)"))]
    if dois:
        yield from (by_doi.get(doi, doi) for doi in dict.fromkeys(dois))
    elif all(" " not in part for part in parts) or any(part in records for part in parts):
        yield from parts
    else:
        yield from (word for word in value.split() if word in records)


def _object_key(value: Mapping[str, Any]) -> Any:
    """Return the DOI, the key or the text of a reference; None for an object of another kind."""
    own = {name.lower(): v for name, v in value.items()}
    keys = ("doi", "citation-key", "id", "key", "unstructured")
    return next((own[key] for key in keys if own.get(key)), None)


def _csl_entry(document: Mapping[str, Any], where: str) -> Entry:
    entry: Entry = {}
    for name, value in document.items():
        values = value if isinstance(value, list) else [value]
        named = [_object_key(v) if isinstance(v, dict) else v for v in values]
        plain = [str(v) for v in named if type(v) in (str, int, float)]
        if plain:
            entry[name.lower()] = plain
    for name in ("title", "abstract"):
        value = document.get(name)
        if value is not None and not isinstance(value, str):
            kind = type(value).__name__
            raise VHEError(f"{where}: the {name} is of type {kind}; give a string.")
    return entry
