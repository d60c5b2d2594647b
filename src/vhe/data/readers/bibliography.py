"""Bibliographies: BibTeX, RIS and CSL-JSON, as Zotero, JabRef, Scopus and others export them.

The id is the citation key; in RIS, the tag ID, else the DOI, the accession number or the title. The
text is title and abstract without LaTeX markup. The label is the collection or group, or else the
most common of the entry's keywords in the file.

References are read where the export has them: BibTeX fields `references`, `cites`, `related`,
`crossref` and `xref`; RIS tags CR and N1 (`References: ...`, Scopus); CSL-JSON `references`. They
are lists of keys, or texts with DOIs; `--references FIELD` names another field.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from vhe.data.parts import NetworkParts
from vhe.data.readers.inputs import Input
from vhe.data.readers.json_documents import Documents
from vhe.data.readers.records import DEFAULTS, Records, Rules, common_labels, joined, split_tags
from vhe.errors import VHEError
from vhe.runtime.messages import shown

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
        "references": ("references",),
        "doi": ("doi",),
    },
}
SAME = {"t1": "ti", "ct": "ti", "n2": "ab"}  # RIS tags for the same thing
DOI = re.compile(r"10\.\d{4,9}/[^\s,;\"<>{}]+")


def is_csl(document: Mapping[str, Any]) -> bool:
    """Return whether a JSON object is an item of CSL-JSON."""
    return (
        "id" in document and "type" in document and ("issued" in document or "author" in document)
    )


def read_bibliography(source: Input, form: str, rules: Rules = DEFAULTS) -> NetworkParts:
    """Read the entries of a bibliography in the format `form`, a key of FIELDS."""
    fields = FIELDS[form]
    documents = Documents(source) if form == "CSL-JSON" else None
    where: Callable[[int], str]
    where = documents.where if documents else lambda line: f"{source.shown}:{line}"
    found: Iterable[tuple[int, Entry]]
    if documents:
        found = ((k, _csl_entry(d, documents.where(k))) for k, d in documents)
    else:
        found = _bibtex(source) if form == "BibTeX" else _ris(source)
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
    else:
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
    parts = [part.strip() for part in re.split(r"[,;\n]", value) if part.strip()]
    dois = [d for m in DOI.finditer(value.lower()) if (d := m[0].rstrip(".)"))]
    if dois:
        yield from (by_doi.get(doi, doi) for doi in dict.fromkeys(dois))
    elif all(" " not in part for part in parts) or any(part in records for part in parts):
        yield from parts
    else:
        yield from (word for word in value.split() if word in records)


# --- BibTeX

ENTRY = re.compile(r"@\s*([A-Za-z]+)\s*[{(]")
NAME = re.compile(r"[^\s=,{}()\"#%]+")
MAX_DEPTH = 1000


def _bibtex(source: Input) -> Iterator[tuple[int, Entry]]:
    """Yield the line and the fields of each entry; text between entries is a comment."""
    text = source.text()
    line, counted_to = 1, 0
    macros: dict[str, str] = {}
    at = 0
    while match := ENTRY.search(text, at):
        line += text.count("\n", counted_to, match.start())
        counted_to = match.start()
        kind, at = match[1].lower(), match.end()
        where = f"{source.shown}:{line}"
        if kind in ("comment", "preamble"):
            at = _closing(text, at - 1, where)
            continue
        end = "}" if text[at - 1] == "{" else ")"
        entry: Entry = {}
        if kind != "string":
            comma = re.compile(rf"\s*([^,{end}\n]*?)\s*([,{end}])").match(text, at)
            if comma is None or not comma[1]:
                raise VHEError(
                    f"{where}: the entry has no citation key; write @{kind}{{key, ...}}."
                )
            entry["=key"], at = [comma[1]], comma.end()
            if comma[2] == end:
                yield line, entry
                continue
        while True:
            at = _skip(text, at)
            if at >= len(text):
                raise VHEError(f"{where}: the entry is not closed; the file may be truncated.")
            if text[at] == end:
                at += 1
                break
            name = NAME.match(text, at)
            equals = _skip(text, name.end()) if name else at
            if name is None or text[equals : equals + 1] != "=":
                here = line + text.count("\n", counted_to, at)
                raise VHEError(
                    f"{source.shown}:{here}: {shown(text[at : at + 20])} instead of a field "
                    "(name = {value})."
                )
            value, at = _value(text, equals + 1, macros, where)
            if kind == "string":
                macros[name[0].lower()] = value
            else:
                entry.setdefault(name[0].lower(), []).append(value)
            at = _skip(text, at)
            if text[at : at + 1] == ",":
                at += 1
        if kind != "string":
            yield line, entry


def _value(text: str, at: int, macros: Mapping[str, str], where: str) -> tuple[str, int]:
    """Return the value of a field, parts joined by # included, and where it ends."""
    parts = []
    while True:
        at = _skip(text, at)
        character = text[at : at + 1]
        if character in ("{", '"'):
            end = _closing(text, at, where)
            parts.append(text[at + 1 : end - 1])
            at = end
        elif name := NAME.match(text, at):
            parts.append(macros.get(name[0].lower(), name[0]))
            at = name.end()
        else:
            raise VHEError(f"{where}: a field of the entry has no value.")
        at = _skip(text, at)
        if text[at : at + 1] != "#":
            return "".join(parts), at
        at += 1


def _closing(text: str, at: int, where: str) -> int:
    """Return the position after the delimiter that closes the one at `at`."""
    opening, depth = text[at], 0
    close = {"{": "}", '"': '"', "(": ")"}[opening]
    for match in re.compile(r"\\.|[{}()\"]", re.S).finditer(text, at + 1):
        character = match[0]
        if character == close and depth == 0:
            return match.end()
        depth += (character == "{") - (character == "}")
        if depth < 0 or depth > MAX_DEPTH:
            break
    raise VHEError(f"{where}: {opening} is not closed; check the braces and quotation marks.")


def _skip(text: str, at: int) -> int:
    """Return the position of the next character that is not white space or in a % comment."""
    while at < len(text):
        if text[at].isspace():
            at += 1
        elif text[at] == "%":
            at = text.find("\n", at) + 1 or len(text)
        else:
            break
    return at


ACCENTS = dict(
    zip(
        "`'^\"~=.uvHcrk",
        map(
            chr,
            (
                0x300,
                0x301,
                0x302,
                0x308,
                0x303,
                0x304,
                0x307,
                0x306,
                0x30C,
                0x30B,
                0x327,
                0x30A,
                0x328,
            ),
        ),
        strict=True,
    )
)
LETTERS = {
    "ss": "ß",
    "ae": "æ",
    "AE": "Æ",
    "oe": "œ",
    "OE": "Œ",
    "o": "ø",
    "O": "Ø",
    "l": "ł",
    "L": "Ł",
    "aa": "å",
    "AA": "Å",
    "i": "ı",
    "j": "ȷ",
    "dh": "ð",
    "th": "þ",
}
ACCENT = re.compile(r"\\([`'^\"~=.]|[uvHcrk](?![A-Za-z]))\s*\{?\\?([A-Za-zıȷ])\}?")
LETTER = re.compile(
    rf"\\({'|'.join(sorted(LETTERS, key=len, reverse=True))})(?![A-Za-z])\s?(?:\{{\}})?"
)


def latex_to_text(value: str) -> str:
    r"""Return a text without LaTeX markup.

    >>> latex_to_text(r"{Sch\"odinger} and \emph{G{\'e}rard} \& co --- 50\,\%")
    'Schödinger and Gérard & co — 50 %'
    """
    if "\\" in value or "{" in value or "$" in value:

        def accent(match: re.Match[str]) -> str:
            base = {"ı": "i", "ȷ": "j"}.get(match[2], match[2])
            return unicodedata.normalize("NFC", base + ACCENTS[match[1]])

        value = ACCENT.sub(accent, value)
        value = LETTER.sub(lambda match: LETTERS[match[1]], value)
        value = re.sub(r"\\[,;: ]", " ", value)
        value = re.sub(r"\\[A-Za-z]+\*?\s?", "", value)
        value = re.sub(r"(?<!\\)[{}$]", "", value).replace("\\", "")
    value = value.replace("---", "—").replace("--", "–").replace("~", " ")
    return " ".join(value.split())


# --- RIS and CSL-JSON

RIS_LINE = re.compile(r"([A-Z][A-Z0-9])  ?-(?: (.*)|$)")


def _ris(source: Input) -> Iterator[tuple[int, Entry]]:
    """Yield the first line and the tags of each record."""
    entry: Entry | None = None
    tag, first, number = "", 0, 0
    with source.lines() as lines:
        for number, line in enumerate(lines, start=1):
            text = line.rstrip("\n")
            match = RIS_LINE.match(text)
            if match is None:
                if not text.strip():
                    continue
                if entry is None or not tag:
                    raise VHEError(
                        f"{source.shown}:{number}: {shown(text[:20])} instead of a tag "
                        "(TY  - JOUR) that starts a record."
                    )
                entry[tag][-1] += " " + text.strip()  # a long value that continues
            elif match[1] == "TY":
                if entry is not None:
                    raise VHEError(
                        f"{source.shown}:{number}: a new record starts, but the one of line "
                        f"{first} has no end (ER  - )."
                    )
                entry, first, tag = {"ty": [match[2] or ""]}, number, "ty"
            elif entry is None:
                raise VHEError(
                    f"{source.shown}:{number}: the tag {match[1]} is outside of a record; "
                    "a record starts with TY  - and ends with ER  - ."
                )
            elif match[1] == "ER":
                yield first, entry
                entry, tag = None, ""
            else:
                tag = match[1].lower()
                entry.setdefault(tag, []).append((match[2] or "").strip())
    if entry is not None:
        raise VHEError(
            f"{source.shown}:{first}: the record has no end (ER  - ); the file may be truncated."
        )


def _csl_entry(document: Mapping[str, Any], where: str) -> Entry:
    entry: Entry = {}
    for name, value in document.items():
        values = value if isinstance(value, list) else [value]
        plain = [str(v) for v in values if type(v) in (str, int, float)]
        if plain:
            entry[name.lower()] = plain
    for name in ("title", "abstract"):
        value = document.get(name)
        if value is not None and not isinstance(value, str):
            kind = type(value).__name__
            raise VHEError(f"{where}: the {name} is of type {kind}; give a string.")
    return entry
