"""`vhe report-tables`: the tables of our results as LaTeX or CSV."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from vhe.cli.options import Datasets, Help, Json, Methods, Protocols, Ratios
from vhe.cli.output import diagnostics_to_stderr, print_json, print_lines
from vhe.cli.paths import check_writable
from vhe.cli.reproduce import RESULTS
from vhe.errors import VHEError
from vhe.evaluation.experiment import TITLES, Task, parse_names, parse_shares
from vhe.evaluation.methods import check_name


def report_tables(
    *,
    format: Annotated[Literal["latex", "csv"], Help("latex or csv")] = "latex",
    task: Annotated[Task | None, Help("task, such as link (default: all)")] = None,
    datasets: Datasets = None,
    methods: Methods = None,
    ratio: Ratios = None,
    protocol: Protocols = None,
    measures: Annotated[str | None, Help("measures, such as auc,mrr (default: all)")] = None,
    results: Annotated[Path, Help("folder of the result files")] = RESULTS,
    out: Annotated[Path | None, Help("output file (default: standard output)")] = None,
    json: Json = False,
) -> None:
    """Print the tables of results as LaTeX or CSV.

    The results are those that vhe reproduce has written. LaTeX has one tabular per
    measure, in percent, with the paper's row below ours; CSV has one row per figure,
    as fractions, with the paper's figure beside it.
    """
    names = {
        option: None if value is None else parse_names(value, f"--{option}")
        for option, value in (("datasets", datasets), ("methods", methods), ("measures", measures))
    }
    for name in names["methods"] or ():
        check_name(name)
    for name in names["measures"] or ():
        if name not in TITLES:
            raise VHEError(f"--measures {name}: unknown measure; known: {', '.join(TITLES)}")
    shares = parse_shares(ratio, "--ratio") if ratio is not None else None
    if out is not None:
        check_writable(out)
    from vhe.paper.export import all_tables, as_csv, as_latex, records
    from vhe.paper.overview import provenance_note
    from vhe.paper.results import stored_results
    from vhe.runtime.files import atomic_write

    with diagnostics_to_stderr(json):
        chosen = [
            result
            for result in stored_results(results)
            if (task is None or result["task"] == task)
            and (names["datasets"] is None or result["dataset"] in names["datasets"])
            and (names["methods"] is None or result["method"] in names["methods"])
            and (shares is None or result.get("ratio", result.get("labelled")) in shares)
            and (protocol is None or result.get("protocol") == protocol)
        ]
    tables = list(all_tables(chosen, names["measures"]))
    if not tables:
        raise VHEError(
            f"{results}: no result matches: extend --task, --datasets, --methods, --ratio, "
            "--protocol or --measures"
        )
    if json and out is None:
        print_json({"tables": records(tables)})
        return
    if format == "csv":
        text = as_csv(tables)
    else:
        note = provenance_note(chosen, "vhe reproduce", "vhe report-tables --format latex")
        text = f"% {note}\n{as_latex(tables)}"
    if out is None:
        print_lines(text.rstrip("\n"))
        return
    with atomic_write(out) as temporary:
        temporary.write_text(text, encoding="utf-8")
    if json:
        print_json({"file": out, "tables": len(tables)})
    else:
        print_lines(out)
