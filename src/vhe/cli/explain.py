"""`vhe explain`: word attributions of a link."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vhe.cli.output import diagnostics_to_stderr, print_json
from vhe.cli.paths import check_writable
from vhe.cli.source import ids_by_name, read_model

if TYPE_CHECKING:
    from rich.text import Text

    from vhe.predict.explain import Explanation, Side

PHRASES = 5  # printed per text


def explain(
    model: Path, a: str, b: str, /, *, html: Path | None = None, json: bool = False
) -> None:
    """Show the words of two texts that support a link.

    The weight of a word is its contribution to the score; the weights of each
    text sum to 1. Shapley values divide the score, the cosine of the two
    embeddings, between the texts and the neighbours.

    Parameters
    ----------
    model
        model folder written by vhe fit
    a
        id of a vertex
    b
        id of another vertex
    html
        write a page with both texts, words coloured by weight
    json
        print one JSON document
    """
    if html is not None:
        check_writable(html)
    with diagnostics_to_stderr(json):
        fitted = read_model(model)
        ids = ids_by_name(fitted.network_)
        explanation = fitted.explain(ids.get(a, a), ids.get(b, b))
        if html is not None:
            from vhe.runtime.files import atomic_write

            with atomic_write(html) as temporary:
                temporary.write_text(explanation.to_html(), encoding="utf-8")
    if json:
        print_json(explanation.to_dict())
    else:
        _print(explanation, html)


def _print(explanation: Explanation, html: Path | None) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, markup=False, emoji=False)
    coloured = console.is_terminal and not console.no_color
    console.print(
        f"probability {explanation.probability:.3f} in a balanced sample, "
        f"{explanation.network_probability:.3f} in this network",
        f"score {explanation.score:.3f}: {100 * explanation.text_share:.0f} % from the texts, "
        f"{100 * explanation.structure_share:.0f} % from the structure",
        sep="\n",
    )
    for side in (explanation.source, explanation.target):
        console.print()
        console.print(Text(str(side.id), style="bold"))
        console.print(_coloured(side) if coloured else " ".join(word for word, _ in side.words))
        for phrase, weight in side.phrases(PHRASES):
            console.print(Text(f"  {weight:5.3f}  {phrase}"), overflow="ellipsis", no_wrap=True)
    if html is not None:
        console.print()
        console.print(Text(f"wrote {html}"), soft_wrap=True)


def _coloured(side: Side) -> Text:
    """Return the text with its words coloured by weight."""
    from rich.text import Text

    largest = max((weight for _, weight in side.words), default=0) or 1
    text = Text()
    for word, weight in side.words:
        share = weight / largest
        style = "bold black on yellow" if share > 2 / 3 else "yellow" if share > 1 / 3 else ""
        text.append(word, style)
        text.append(" ")
    return text
