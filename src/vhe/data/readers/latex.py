"""Texts without LaTeX markup."""

from __future__ import annotations

import re
import unicodedata

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
