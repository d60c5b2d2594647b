"""`vhe fit --scheduler`, and `suggest`, `embed` and `add` of the sharded model that it writes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vhe.cli.output import print_lines, print_result, print_status
from vhe.cli.source import NetworkOptions, is_sharded
from vhe.errors import VHEError

if TYPE_CHECKING:
    from vhe.config import PairVHEConfig, VHEConfig
    from vhe.scale import ShardedModel


def fit_distributed(
    source: str | None,
    reading: NetworkOptions | None,
    out: Path,
    config: VHEConfig | PairVHEConfig,
    *,
    scheduler: str,
    workers: int,
    max_memory: str | None,
    resume: bool,
    seed: int | None,
    json: bool,
) -> int:
    """Fit the graph model to Parquet datasets with the workers of a Dask cluster."""
    from vhe import scale
    from vhe.config import VHEConfig

    given = reading or NetworkOptions()
    if not isinstance(config, VHEConfig):
        raise VHEError("--scheduler fits the graph model: omit --model pair and --config paper")
    if source is not None or given.vertices is None or given.edges is None:
        raise VHEError("--scheduler reads Parquet datasets: give --vertices PATH and --edges PATH")
    if given != NetworkOptions(vertices=given.vertices, edges=given.edges):
        raise VHEError(
            "--scheduler finds the columns id, text, source and target by their names: omit the "
            "other options for reading a network"
        )
    model = scale.fit(
        str(given.vertices),
        str(given.edges),
        out,
        scheduler=scheduler,
        workers=workers,
        max_memory=max_memory,
        resume=resume,
        config=config,
        seed=seed,
    )
    info = model.info_
    if seed is None:
        print_status(
            f"used random seed {info['seed']}; --seed {info['seed']} reproduces this model"
        )
    seconds = sum(info["seconds"].values())
    found = {name: info[name] for name in ("vertices", "links", "seed", "seconds", "result")}
    print_result(
        json,
        {"model": out, **found},
        [
            ("network", f"{info['vertices']:,} vertices, {info['links']:,} links"),
            ("seconds", f"{seconds:.1f}"),
            ("model", out),
        ],
    )
    return 0


def open_sharded(folder: Path) -> ShardedModel | None:
    """The model that `vhe fit --scheduler` wrote in a folder; None for other folders."""
    if not is_sharded(folder):
        return None
    from vhe.scale import ShardedModel

    return ShardedModel(folder)


def refuse_options(model: Path, **options: object) -> None:
    """Raise `VHEError` if options are given that have no effect on a model in shards."""
    given = [f"--{name.replace('_', '-')}" for name, value in options.items() if value]
    if given:
        raise VHEError(f"{model} is a model in shards: omit {' and '.join(given)}")


def write_suggestions(model: ShardedModel, out: Path, k: int, least: float, json: bool) -> None:
    """Write the suggestions of every vertex to a Parquet file, one part after the other."""
    tables = (
        {name: column[keep] for name, column in part.items()}
        for part in model.suggest_parts(k)
        for keep in [part["probability"] >= least]
    )
    links = _write_parquet(out, tables)
    found = {"file": out, "links": links, "vertices": len(model)}
    print_result(json, found, [("links", f"{links:,}"), ("file", out)])


def write_embedding(model: ShardedModel, out: Path, std: bool, json: bool) -> None:
    """Write the embedding of every vertex to a Parquet file, one part after the other."""

    def tables() -> Iterator[dict[str, Any]]:
        for ids, mean, deviation in model.shards():
            columns: dict[str, Any] = {"id": ids}
            columns |= {f"e{k}": mean[:, k] for k in range(mean.shape[1])}
            yield columns | ({"std": deviation[:, 0]} if std else {})

    count = _write_parquet(out, tables())
    print_result(
        json, {"file": out, "vertices": count}, [("vertices", f"{count:,}"), ("file", out)]
    )


def add_to_sharded(
    model: ShardedModel, vertices: Path, edges: Path | None, out: Path, json: bool
) -> None:
    """Add the vertices of a file to a model in shards, with the edges of another."""
    from vhe.data.readers.tables import read_table
    from vhe.scale import add_vertices

    table = read_table(vertices, ("id", "text"))
    texts = dict(zip(table.columns["id"], table.columns["text"], strict=True))
    if len(texts) < len(table.columns["id"]):
        raise VHEError(f"{vertices}: duplicate ids; remove all but one of each")
    pairs = []
    if edges is not None:
        ends = read_table(edges, ("source", "target")).columns
        pairs = list(zip(ends["source"], ends["target"], strict=True))
    texts = {vertex: text or "" for vertex, text in texts.items()}
    info = add_vertices(model, out, texts, pairs).info_
    found = {"vertices": info["vertices"], "links": info["links"]}
    network = f"{info['vertices']:,} vertices, {info['links']:,} links"
    print_result(
        json,
        {"model": out, "added": len(texts), **found},
        [("added", f"{len(texts):,}"), ("network", network), ("model", out)],
    )


def print_suggestions(model: ShardedModel, vertex: str, k: int, least: float, json: bool) -> None:
    found = [s for s in model.suggest(vertex, k) if s.probability >= least]
    if json:
        from vhe.cli.output import print_json

        print_json({"id": vertex, "links": [vars(s) for s in found]})
        return
    if not found:
        print_lines("no missing links left")
        return
    from vhe.cli.output import print_table

    cells = [(s.id, f"{s.probability:.3f}", s.text) for s in found]
    print_table(cells, header=("id", "probability", "text"), right_aligned=(1,))


def check_parquet(model: Path, out: Path | None) -> Path:
    """Return ``out``, which must be a Parquet file."""
    if out is None or out.suffix.lower() != ".parquet":
        raise VHEError(f"{model} is a model in shards: give --out FILE.parquet")
    return out


def _write_parquet(out: Path, tables: Iterator[dict[str, Any]]) -> int:
    import pyarrow
    from pyarrow import parquet

    from vhe.runtime.files import atomic_write

    rows, writer = 0, None
    with atomic_write(out) as temporary:
        try:
            for columns in tables:
                table = pyarrow.table(columns)
                writer = writer or parquet.ParquetWriter(temporary, table.schema)
                writer.write_table(table)
                rows += len(table)
        finally:
            if writer is not None:
                writer.close()
    return rows
