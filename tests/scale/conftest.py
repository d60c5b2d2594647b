"""A network as Parquet datasets, and a cluster of two worker processes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from vhe.bench.measure import synthetic
from vhe.config import VHEConfig
from vhe.data.network import TextNetwork

pytest.importorskip("distributed")

SETTINGS: dict[str, Any] = {
    "latent_dim": 16,
    "max_steps": 4,
    "validate_every": 2,
    "link_strength": 1.0,
    "text_knn_weight": 1.0,
    "link_features": "scales,words,degree",
}


@pytest.fixture(scope="session")
def textual() -> TextNetwork:
    """300 vertices with a hub, empty texts, vertices without links, loops and repeated edges."""
    made = synthetic(300)
    ids = [f"p{i}" for i in range(300)]
    texts = ["" if i % 60 == 7 else text for i, text in enumerate(made.texts)]
    edges = made.edges[(made.edges % 50 != 3).all(axis=1)]
    hub = np.stack([np.zeros(60, np.int64), np.arange(100, 160)], axis=1)
    return TextNetwork(ids, texts, np.concatenate([edges, hub, hub[:2, ::-1], [[5, 5]]]))


@pytest.fixture(scope="session")
def scale_config() -> VHEConfig:
    return VHEConfig(**SETTINGS)


@pytest.fixture(scope="session")
def write_parquet() -> Callable[..., None]:
    return _write_parquet


def _write_parquet(network: TextNetwork, folder: Path, parts: int, group_rows: int = 1000) -> None:
    """Write the folders ``vertices`` and ``edges`` in part files."""
    ids = np.array(network.ids, dtype=object)
    vertices = pa.table({"id": ids.tolist(), "text": list(network.texts)})
    source, target = (ids[network.edges[:, end]].tolist() for end in (0, 1))
    edges = pa.table({"source": source, "target": target})
    for name, table in (("vertices", vertices), ("edges", edges)):
        (folder / name).mkdir(parents=True)
        for k, rows in enumerate(np.array_split(np.arange(len(table)), parts)):
            parquet.write_table(
                table.slice(rows[0], len(rows)),
                folder / name / f"part-{k:05d}.parquet",
                row_group_size=group_rows,
            )


@pytest.fixture(scope="session")
def dataset(textual: TextNetwork, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dataset")
    _write_parquet(textual, folder, parts=3)
    return folder


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    import logging

    from distributed import LocalCluster

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about its ports
        cluster = LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            memory_limit="2GB",
            dashboard_address=None,
            silence_logs=logging.CRITICAL,
        )
    with cluster:
        yield cluster


@pytest.fixture
def distributed_fit(
    cluster: Any, dataset: Path, scale_config: VHEConfig, tmp_path: Path
) -> Callable[..., Any]:
    """Fits the dataset by the workers of the cluster."""
    from vhe import scale

    def fit(folder: Path = dataset, **options: Any) -> scale.ShardedModel:
        given = {
            "out": tmp_path / "model",
            "scheduler": cluster.scheduler_address,
            "config": scale_config,
            "seed": 3,
            "verbose": False,
            "rows_per_block": 160,
        }
        return scale.fit(folder / "vertices", folder / "edges", **(given | options))

    return fit
