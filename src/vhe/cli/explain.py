"""`vhe explain`: word attributions of a link."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from vhe.cli.options import Help, Json, ModelFolder
from vhe.cli.output import console, diagnostics_to_stderr, print_json
from vhe.cli.paths import check_writable
from vhe.cli.source import read_model, vertex_id

if TYPE_CHECKING:
    from rich.text import Text

    from vhe.predict.explain import Explanation

PHRASES = 5  # printed per text


def explain(
    model: ModelFolder,
    a: Annotated[str, Help("id of a vertex")],
    b: Annotated[str, Help("id of another vertex")],
    /,
    *,
    html: Annotated[
        Path | None, Help("write a page with both texts, words coloured by weight")
    ] = None,
    json: Json = False,
) -> None:
    """Show the words of two texts that support a link.

    The weight of a word is its share of what its text adds to the score; the
    weights of each text sum to 1. The score, the log odds of a link in a balanced
    sample, is the sum of an offset and of parts: texts and links (the shares of
    both in the cosine of the embeddings), and what else the model has learned of
    the pair, such as common words, degrees and common neighbours.
    """
    if html is not None:
        check_writable(html)
    with diagnostics_to_stderr(json):
        fitted = read_model(model)
        network = fitted.network_
        ends = vertex_id(network, a), vertex_id(network, b)
        explanation = fitted.explain(*ends)
        if html is not None:
            from vhe.runtime.files import atomic_write

            with atomic_write(html) as temporary:
                temporary.write_text(explanation.to_html(), encoding="utf-8")
    if json:
        print_json(explanation.to_dict())
    else:
        _print(explanation, html)


def _print(explanation: Explanation, html: Path | None) -> None:
    from rich.text import Text

    output = console()
    coloured = output.is_terminal and not output.no_color
    output.print(
        f"probability {explanation.probability:.3f} in this network, "
        f"{explanation.balanced_probability:.3f} in a balanced sample",
        f"score {explanation.score:.3f}: {explanation.shares_in_words}",
        sep="\n",
    )
    parts = {"offset": explanation.offset} | explanation.parts
    for name, value in sorted(parts.items(), key=lambda part: -abs(part[1])):
        if abs(value) >= 0.0005:
            output.print(f"  {value:+6.3f}  {name}")
    for side in (explanation.source, explanation.target):
        output.print()
        output.print(Text(str(side.id), style="bold"))
        pieces = side.pieces()
        output.print(_coloured(pieces) if coloured else "".join(piece for piece, _ in pieces))
        for phrase, weight in side.phrases(PHRASES):
            output.print(Text(f"  {weight:5.3f}  {phrase}"), overflow="ellipsis", no_wrap=True)
    if html is not None:
        output.print()
        output.print(Text(f"wrote {html}"), soft_wrap=True)


def _coloured(pieces: Sequence[tuple[str, float]]) -> Text:
    """Return a text with its words coloured by weight."""
    from rich.text import Text

    largest = max((weight for _, weight in pieces), default=0) or 1
    text = Text()
    for piece, weight in pieces:
        share = weight / largest
        style = "bold black on yellow" if share > 2 / 3 else "yellow" if share > 1 / 3 else ""
        text.append(piece, style)
    return text
