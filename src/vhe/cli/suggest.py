"""`vhe suggest`: likely missing links of a vertex, of the whole network or of every vertex."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts.types import PositiveInt

from vhe.cli.distributed import (
    check_parquet,
    open_sharded,
    print_suggestions,
    refuse_options,
    write_suggestions,
)
from vhe.cli.options import Help, Json, ModelFolder, Raw, Threads, using_threads
from vhe.cli.output import (
    console,
    diagnostics_to_stderr,
    print_json,
    print_lines,
    print_result,
    print_table,
    to_json,
)
from vhe.cli.paths import check_writable
from vhe.cli.source import read_model, vertex_id
from vhe.errors import VHEError
from vhe.runtime.messages import counted, markdown_code, shortened, spreadsheet_cells

if TYPE_CHECKING:
    import pandas

    from vhe.fitted import FittedModel

Format = Literal["table", "csv", "json", "markdown"]
TABLES = (".csv", ".tsv", ".jsonl", ".parquet")
FORMATS: dict[str, Format] = {".json": "json", ".md": "markdown"}
OF_VERTEX, OF_NETWORK = 10, 100  # default numbers of links
ENDS = ("source", "target")

Columns = dict[str, list[Any]]


def suggest(
    model: ModelFolder,
    id: Annotated[str | None, Help("id of a vertex (default: the whole network)")] = None,
    /,
    *,
    k: Annotated[
        PositiveInt | None,
        Help(
            f"number of links (default: {OF_VERTEX} per vertex, {OF_NETWORK} of the network)",
            name=["-k", "--k"],
        ),
    ] = None,
    all: Annotated[bool, Help("suggest links for every vertex; requires --out")] = False,
    min_probability: Annotated[
        float, Help("smallest probability of a suggested link", metavar="P")
    ] = 0.0,
    no_duplicates: Annotated[
        bool, Help("leave out pairs of nearly the same texts (whole network)")
    ] = False,
    decisions: Annotated[
        Path | None, Help("decisions saved by vhe serve: leave out rejected pairs", metavar="FILE")
    ] = None,
    format: Annotated[
        Format | None,
        Help(
            "table, csv, json or markdown, a checklist (default: by the extension of --out)",
            metavar="NAME",
        ),
    ] = None,
    out: Annotated[
        Path | None, Help("output file: .csv, .tsv, .jsonl, .parquet, .json or .md")
    ] = None,
    raw: Raw = False,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Suggest missing links of the network or of a vertex.

    Without an id, prints the likeliest missing links of the whole network, each
    pair once; those of nearly the same texts are marked as duplicates.

    The probability is that of a link in this network: of all unlinked pairs with
    probability 0.3, three in ten should be links. vhe score also prints the
    balanced probability.

    In CSV, cells that a spreadsheet would run as formulas get an apostrophe in
    front; --raw writes them unchanged.
    """
    if all and id is not None:
        raise VHEError("ID and --all exclude each other: omit one of them")
    if no_duplicates and (all or id is not None):
        raise VHEError("--no-duplicates applies to the whole network: omit it, or ID and --all")
    if all and (out is None or format is not None):
        raise VHEError("--all requires --out FILE, whose extension is the format")
    if not 0 <= min_probability <= 1:
        raise VHEError(f"--min-probability {min_probability:g}: give a number from 0 to 1")
    if json and format not in (None, "json"):
        raise VHEError(f"--json and --format {format} exclude each other: omit one of them")
    if out is not None:
        from vhe.data.readers.tables import checked_extension

        if format == "table":
            raise VHEError("--format table prints to the terminal: omit it or --out")
        if format is None:
            extension = checked_extension(out, TABLES if all else (*TABLES, *FORMATS))
            format = FORMATS.get(extension)
        check_writable(out)
    if (sharded := open_sharded(model)) is not None:
        refuse_options(
            model,
            decisions=decisions,
            threads=threads,
            format=out is None and format,
            out=id is not None and out,
        )
        if id is not None:
            print_suggestions(sharded, id, k or OF_VERTEX, min_probability, json)
        elif all:
            file = check_parquet(model, out)
            write_suggestions(sharded, file, k or OF_VERTEX, min_probability, json)
        else:
            raise VHEError(f"{model} is a model in shards: give an ID, or --all --out FILE.parquet")
        return
    with diagnostics_to_stderr(json), using_threads(threads):
        fitted = read_model(model)
        network = fitted.network_
        vertex = None if id is None else vertex_id(network, id)
        rejected = _rejected(decisions)
        more = len(rejected)
        most = None
        if all:
            columns = _columns(fitted.suggest_each(k or OF_VERTEX))
        elif id is None:
            most = k or OF_NETWORK
            table = fitted.suggest_all(most + more, duplicates=not no_duplicates)
            columns = _columns(table)
        else:
            most = k or OF_VERTEX
            columns = _of_vertex(fitted, vertex, most + more)
        columns = _selected(columns, rejected, most, min_probability)
    links = len(columns["probability"])
    if out is not None:
        _write(out, columns, format, raw)
        found = {"file": out, "links": links, "vertices": len(network)}
        print_result(json, found, [("links", f"{links:,}"), ("file", out)])
    elif json or format == "json":
        print_json(_document(columns, vertex))
    elif format in ("csv", "markdown"):
        print_lines(_text(columns, format, raw).rstrip("\n"))
    elif not links:
        reason = f"with probability {min_probability:g} or more" if min_probability else "left"
        print_lines(f"no missing links {reason}")
    else:
        _print(columns, vertex)


def _rejected(file: Path | None) -> set[frozenset[Any]]:
    if file is None:
        return set()
    from vhe.storage.decisions import Decisions

    return {frozenset(pair) for pair in Decisions(file, create=False).pairs("rejected")}


def _columns(table: pandas.DataFrame) -> Columns:
    return {str(name): table[name].tolist() for name in table}


def _of_vertex(fitted: FittedModel, vertex: Any, k: int) -> Columns:
    found = fitted.suggest_links(vertex, k)
    return {
        "source": [vertex] * len(found),
        "target": [suggestion.id for suggestion in found],
        "probability": [suggestion.probability for suggestion in found],
        "text": [suggestion.text for suggestion in found],
    }


def _selected(
    columns: Columns, rejected: set[frozenset[Any]], most: int | None, least: float
) -> Columns:
    """The first ``most`` pairs that were not rejected, of a probability of at least ``least``."""
    ends = zip(columns["source"], columns["target"], strict=True)
    kept = [row for row, pair in enumerate(ends) if frozenset(pair) not in rejected][:most]
    kept = [row for row in kept if columns["probability"][row] >= least]
    return {name: [cells[row] for row in kept] for name, cells in columns.items()}


def _rows(columns: Columns) -> list[dict[str, Any]]:
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _document(columns: Columns, vertex: Any) -> dict[str, Any]:
    if vertex is None:
        return {"links": _rows(columns)}
    links = [
        {"id": row["target"], "probability": row["probability"], "text": row["text"]}
        for row in _rows(columns)
    ]
    return {"id": vertex, "links": links}


def _text(columns: Columns, format: Format | None, raw: bool) -> str:
    """Return the links as JSON, CSV or a Markdown checklist."""
    if format == "json":
        return to_json(_document(columns, None)) + "\n"
    if format == "markdown":
        return "".join(
            f"- [ ] {' and '.join(markdown_code(row[end]) for end in ENDS)}: "
            f"{row['probability']:.3f}"
            f"{' (nearly the same text)' if row.get('duplicate') else ''}\n"
            for row in _rows(columns)
        )
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    cells = columns if raw else {k: spreadsheet_cells(v) for k, v in columns.items()}
    writer.writerows(zip(*cells.values(), strict=True))
    return text.getvalue()


def _write(out: Path, columns: Columns, format: Format | None, raw: bool) -> None:
    if format is not None:
        from vhe.runtime.files import atomic_write

        with atomic_write(out) as temporary:
            text = _text(columns, format, raw)
            temporary.write_text(text, encoding="utf-8", errors="replace")
        return
    from vhe.data.readers.tables import write_table

    if out.suffix.lower() in (".csv", ".tsv") and not raw:
        columns = {name: spreadsheet_cells(cells) for name, cells in columns.items()}
    write_table(out, columns)


def _print(columns: Columns, vertex: Any) -> None:
    """Print the links as a table that fits the terminal."""
    rows = _rows(columns)
    if vertex is not None:
        cells = [(row["target"], f"{row['probability']:.3f}", row["text"]) for row in rows]
        print_table(cells, header=("id", "probability", "text"), right_aligned=(1,))
        return
    duplicates = sum(columns["duplicate"])
    width = max((console().width - 22) // 2, 8)  # of a text, so that it stays on one line
    table = [
        (
            f"{row['probability']:.3f}{'*' if row['duplicate'] else ' ' * bool(duplicates)}",
            *(f"{row[end]}\n  {shortened(row[f'{end}_text'], width)}" for end in ENDS),
        )
        for row in rows
    ]
    print_table(table, header=("probability", *ENDS), right_aligned=(0,))
    if duplicates:
        print_lines(f"* {counted(duplicates, 'pair')} of nearly the same texts")
