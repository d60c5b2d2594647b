"""Records of RIS files."""

from __future__ import annotations

import re
from collections.abc import Iterator

from vhe.data.readers.inputs import Input
from vhe.errors import VHEError
from vhe.runtime.messages import shown

RIS_LINE = re.compile(r"([A-Z][A-Z0-9])  ?-(?: (.*)|$)")


def ris_records(source: Input) -> Iterator[tuple[int, dict[str, list[str]]]]:
    """Yield the first line and the tags of each record."""
    entry: dict[str, list[str]] | None = None
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
