"""Contrast of text and background of the pages, by the formula of WCAG 2."""

import re

import pytest

from vhe.web.pages import page_file

ENOUGH = 4.5
STRONGEST_MARK = 0.7  # opacity of the background of a word, as comparison.js writes it
TEXT = ("ink", "soft", "faint", "accent", "yes", "no")


def palettes() -> dict[str, dict[str, tuple[float, ...]]]:
    """Colours of the light and the dark theme by name, from the style sheet."""
    found = {}
    rules = re.findall(r":root \{(.*?)\}", page_file("map.css"), re.DOTALL)
    for scheme, rule in zip(("light", "dark"), rules, strict=True):
        hexadecimal = re.findall(r"--([\w-]+): #(\w\w)(\w\w)(\w\w);", rule)
        found[scheme] = {name: tuple(int(c, 16) for c in rgb) for name, *rgb in hexadecimal}
        mark = re.search(r"--mark: (\d+) (\d+) (\d+);", rule)
        found[scheme]["mark"] = tuple(map(int, mark.groups()))
    return found


def luminance(rgb: tuple[float, ...]) -> float:
    shares = [value / 255 for value in rgb]
    red, green, blue = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in shares]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(a: tuple[float, ...], b: tuple[float, ...]) -> float:
    dark, light = sorted(map(luminance, (a, b)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_is_readable(scheme: str) -> None:
    colours = palettes()[scheme]
    for text in TEXT:
        for background in ("ground", "surface"):
            assert contrast(colours[text], colours[background]) >= ENOUGH, (text, background)
    pairs = zip(colours["mark"], colours["ground"], strict=True)
    marked = tuple(STRONGEST_MARK * m + (1 - STRONGEST_MARK) * g for m, g in pairs)
    assert contrast(colours["ink"], marked) >= ENOUGH
