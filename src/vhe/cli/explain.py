"""`vhe explain`: the words behind a link."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vhe.cli.output import diagnostics_to_stderr, print_json
from vhe.cli.place import check_writable
from vhe.cli.source import ids_by_word, read_model

if TYPE_CHECKING:
    from rich.text import Text

    from vhe.predict.explain import Explanation, Side

PHRASES = 5  # that are listed


def explain(
    model: Path, a: str, b: str, /, *, html: Path | None = None, json: bool = False
) -> None:
    """Show which words of two texts speak for a link, and what the structure adds.

    A word weighs what it gives to the score; the weights of a text are 1
    together. The score, the cosine of the two embeddings, is split between the
    texts themselves and what neighbours bring, by their Shapley values.

    Parameters
    ----------
    model
        a model folder that vhe fit wrote
    a
        the id of a vertex
    b
        the id of another vertex
    html
        write a page with both texts, their words coloured, to this file
    json
        print one JSON document
    """
    if html is not None:
        check_writable(html)
    with diagnostics_to_stderr(json):
        fitted = read_model(model)
        words = ids_by_word(fitted.network_)
        found = fitted.explain(words.get(a, a), words.get(b, b))
        if html is not None:
            from vhe.runtime.files import atomic_write

            with atomic_write(html) as temporary:
                temporary.write_text(found.to_html(), encoding="utf-8")
    if json:
        print_json(found.to_dict())
    else:
        _show(found, html)


def _show(found: Explanation, html: Path | None) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, markup=False, emoji=False)
    coloured = console.is_terminal and not console.no_color
    print_ = console.print
    print_(
        f"probability {found.probability:.3f} among as many links as non-links, "
        f"{found.network_probability:.3f} in this network",
        f"score {found.score:.3f}, of which {100 * found.text_share:.0f} % from the texts and "
        f"{100 * found.structure_share:.0f} % from the structure",
        sep="\n",
    )
    for side in (found.source, found.target):
        print_()
        print_(Text(str(side.id), style="bold"))
        print_(_coloured(side) if coloured else " ".join(word for word, _ in side.words))
        for phrase, weight in side.phrases(PHRASES):
            print_(Text(f"  {weight:5.3f}  {phrase}"), overflow="ellipsis", no_wrap=True)
    if html is not None:
        print_()
        print_(Text(f"written to {html}"), soft_wrap=True)


def _coloured(side: Side) -> Text:
    """The text, its words the stronger coloured the more they weigh."""
    from rich.text import Text

    most = max((weight for _, weight in side.words), default=0) or 1
    text = Text()
    for word, weight in side.words:
        share = weight / most
        style = "bold black on yellow" if share > 2 / 3 else "yellow" if share > 1 / 3 else ""
        text.append(word, style)
        text.append(" ")
    return text
