"""`vhe report`: a page on a fitted model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts.types import NonNegativeInt

from vhe.cli.options import Help, Json, ModelFolder, Threads, using_threads
from vhe.cli.output import diagnostics_to_stderr, print_result
from vhe.cli.paths import check_writable
from vhe.cli.source import check_is_model


def report(
    model: ModelFolder,
    /,
    *,
    out: Annotated[Path, Help("output file: .html")],
    skip_accuracy: Annotated[
        bool, Help("omit the accuracy on held-out links, which needs a second fit")
    ] = False,
    seed: Annotated[NonNegativeInt, Help("random seed of the held-out links")] = 0,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Write a report on a model as a web page.

    The page has a map, the most probable missing links with the words behind
    them, the accuracy on held-out links compared with TF-IDF and diffused text, a
    calibration plot, isolated and duplicate vertices, and the notes from reading
    the network. It makes no external requests. The layout of the map is computed
    once and stored in the model folder.

    A model uses all links of its network. Its accuracy is therefore measured by a
    second fit, with the same settings, to 85 % of the links.
    """
    from vhe.data.readers.tables import checked_extension

    checked_extension(out, (".html",))
    check_writable(out)
    with diagnostics_to_stderr(json), using_threads(threads):
        check_is_model(model)
        from vhe.runtime.progress import Progress
        from vhe.web.loading import load, map_coordinates
        from vhe.web.map_files import network_size
        from vhe.web.model_report import (
            Accuracy,
            find,
            refitted_accuracy,
            write_model_report,
        )

        loaded = load(model)
        fitted, network = loaded.model, loaded.model.network_
        accuracy: Accuracy | str = "The accuracy was not measured (--skip-accuracy)."
        if not skip_accuracy:
            accuracy = refitted_accuracy(fitted, seed)
        with Progress("missing links"):
            found = find(fitted, accuracy)
        coordinates = map_coordinates(model, loaded)
        with Progress("report"):
            write_model_report(
                out,
                found,
                coordinates,
                title=network.name,
                lede=f"{network_size(network)}. "
                "Vertices with similar texts and links are close together.",
            )
        isolated, duplicates = len(found.isolated()), len(found.duplicates())
    scores, lines = None, [("accuracy", str(accuracy))]
    if isinstance(accuracy, Accuracy):
        scores = {name: score.as_dict() for name, score in accuracy.scores.items()}
        lines = [(f"AUC of {name}", f"{score['auc']:.3f}") for name, score in scores.items()]
    print_result(
        json,
        {
            "report": out,
            "scores": scores,
            "suggestions": [
                {"source": network.ids[i], "target": network.ids[j], "probability": p}
                for i, j, p in found.suggestions()
            ],
            "isolated": isolated,
            "duplicates": duplicates,
            "notes": fitted.result_.get("notes", []),
        },
        [
            ("missing links", f"{len(found.chosen):,} in the report"),
            *lines,
            ("isolated vertices", f"{isolated:,}"),
            ("duplicate texts", f"{duplicates:,}"),
            ("report", out),
        ],
    )
