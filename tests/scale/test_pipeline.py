"""The fit by two worker processes against the fit in one process; faults and resuming."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vhe import scale
from vhe.config import VHEConfig
from vhe.data.network import TextNetwork
from vhe.estimators import VHE
from vhe.scale import ShardedModel

Fit = Callable[..., ShardedModel]


@pytest.fixture(scope="module")
def single(textual: TextNetwork, scale_config: VHEConfig) -> VHE:
    model = VHE.from_config(scale_config, random_state=3)
    return model.set_params(verbose=False, threads=1).fit(textual)


@pytest.fixture(scope="module")
def reference(
    cluster: Any, dataset: Path, scale_config: VHEConfig, tmp_path_factory: pytest.TempPathFactory
) -> ShardedModel:
    return scale.fit(
        dataset / "vertices",
        dataset / "edges",
        tmp_path_factory.mktemp("reference") / "model",
        scheduler=cluster.scheduler_address,
        config=scale_config,
        seed=3,
        verbose=False,
        rows_per_block=160,
    )


def cosines(a: Any, b: Any) -> Any:
    return (a * b).sum(axis=1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)


def test_same_posterior_as_one_process(
    reference: ShardedModel, single: VHE, textual: TextNetwork
) -> None:
    mean, std = reference.embed(textual.ids, return_std=True)
    assert cosines(mean, single.embedding_).min() >= 0.9999
    lengths = np.linalg.norm(mean, axis=1) / np.linalg.norm(single.embedding_, axis=1)
    assert np.abs(lengths - 1).max() < 0.01
    assert std.shape == (300, 1)
    assert np.abs(std / single.embedding_std_ - 1).mean() < 0.05  # other random signs
    assert reference.info_["links"] == len(textual.links)
    assert reference.info_["link_posterior"]["weights"] == pytest.approx(
        single._link_posterior.weights, rel=1e-3, abs=1e-4
    )


def test_same_suggestions_as_one_process(
    reference: ShardedModel, single: VHE, textual: TextNetwork
) -> None:
    agreed = []
    for vertex in textual.ids[::10]:
        ours, theirs = reference.suggest(vertex, 10), single.suggest_links(vertex, 10)
        known = {s.id: s for s in theirs}
        agreed.append(len({s.id for s in ours} & set(known)) / len(theirs))
        for suggestion in ours:
            if suggestion.id in known:
                expected = known[suggestion.id]
                assert suggestion.probability == pytest.approx(expected.probability, rel=0.05)
                assert suggestion.text == expected.text
    assert np.mean(agreed) > 0.95


def test_model_folder(reference: ShardedModel, textual: TextNetwork) -> None:
    assert not (reference.folder / "work").exists()
    again = ShardedModel(reference.folder)
    assert len(again) == 300
    ids, means, _ = zip(*again.shards(), strict=True)
    assert [i for part in ids for i in part] == list(textual.ids)
    assert np.array_equal(np.concatenate(means), again.embed(textual.ids))
    assert again.ids(again.rows(["p250", "p3"])) == ["p250", "p3"]
    assert {s.id for s in again.suggest("p0")}.isdisjoint({"p0", "p100", "p159"})
    with pytest.raises(ValueError, match="has no vertex 'nobody'"):
        again.embed(["p1", "nobody"])
    with pytest.raises(ValueError, match="not the folder of a finished fit"):
        ShardedModel(reference.folder / "vertices")


def test_independent_of_partitions_blocks_and_workers(
    textual: TextNetwork,
    reference: ShardedModel,
    scale_config: VHEConfig,
    write_parquet: Callable[..., None],
    tmp_path: Path,
) -> None:
    write_parquet(textual, tmp_path, parts=5, group_rows=40)
    other = scale.fit(
        tmp_path / "vertices",
        tmp_path / "edges",
        tmp_path / "model",
        workers=1,
        config=scale_config,
        seed=3,
        verbose=False,
        rows_per_part=25,
        rows_per_block=110,
    )
    assert len(other.info_["part_rows"]) > len(reference.info_["part_rows"])
    for ours, theirs in zip(
        other.embed(textual.ids, return_std=True),
        reference.embed(textual.ids, return_std=True),
        strict=True,
    ):
        assert np.allclose(ours, theirs, rtol=1e-3, atol=1e-3)
    assert other.suggest("p9")[0].id == reference.suggest("p9")[0].id


def test_completes_when_workers_are_killed(
    distributed_fit: Fit, cluster: Any, reference: ShardedModel, textual: TextNetwork
) -> None:
    killed, threads = [], []

    def kill(delay: float) -> None:
        time.sleep(delay)
        alive = list(cluster.workers.values())  # one of them may be starting again
        nanny = alive[len(killed) % len(alive)]
        os.kill(nanny.process.pid, signal.SIGKILL)
        killed.append(nanny)

    def on_phase(name: str, moment: str) -> None:
        delays = {"vocabulary": 0.05, "posterior of embedding": 0.3}
        if moment == "start" and name in delays:
            threads.append(threading.Thread(target=kill, args=[delays[name]]))
            threads[-1].start()

    model = distributed_fit(on_phase=on_phase)
    for thread in threads:
        thread.join()
    assert len(killed) == 2
    assert np.allclose(model.embed(textual.ids), reference.embed(textual.ids), atol=1e-5)
    assert model.suggest("p9") == reference.suggest("p9")


def test_resume_does_not_repeat_finished_phases(
    distributed_fit: Fit, reference: ShardedModel, textual: TextNetwork, tmp_path: Path
) -> None:
    def abort(name: str, moment: str) -> None:
        if (name, moment) == ("posterior of embedding", "start"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        distributed_fit(on_phase=abort)
    with pytest.raises(ValueError, match="an unfinished fit: continue it with resume"):
        distributed_fit()
    with pytest.raises(ValueError, match=r"started with other sample \(sample\)"):
        distributed_fit(resume=True, sample=50)
    with pytest.raises(ValueError, match="no unfinished fit to resume"):
        distributed_fit(out=tmp_path / "other", resume=True)
    repeated = []
    model = distributed_fit(
        resume=True,
        seed=None,
        on_phase=lambda name, moment: repeated.append(name),
        max_memory=10 * 300 * 12 * 2,  # the solver takes about 10 of 16 columns at a time
    )
    assert repeated[0] == "posterior of embedding"
    assert not {"vocabulary", "words", "couplings", "system of embedding"} & set(repeated)
    assert np.allclose(model.embed(textual.ids), reference.embed(textual.ids), atol=1e-5)


def test_words_from_a_sampled_subgraph(
    distributed_fit: Fit, textual: TextNetwork, scale_config: VHEConfig, tmp_path: Path
) -> None:
    weights: list[dict[str, float]] = []

    def on_phase(name: str, moment: str) -> None:
        if (name, moment) == ("words", "end"):
            found = json.loads((tmp_path / "model" / "work" / "words.json").read_text())
            weights.append(found["result"]["link_posterior"]["weights"])

    config = scale_config.replace(link_features="words,structure")
    model = distributed_fit(sample=100, suggestions=3, config=config, on_phase=on_phase)
    assert [set(found) for found in weights] == [{"embedding", "words"}]
    mean = model.embed(textual.ids)
    mean = mean - mean.mean(axis=0)
    i, j = textual.links.T
    linked = cosines(mean[i], mean[j])
    others = cosines(mean[i], mean[np.random.default_rng(0).permutation(j)])
    assert (linked > others).mean() > 0.8
    assert len(model.suggest("p9", 10)) == 3


def test_new_vertices_as_in_one_process(
    reference: ShardedModel, textual: TextNetwork, scale_config: VHEConfig, tmp_path: Path
) -> None:
    single = VHE.from_config(scale_config, random_state=3)
    single.set_params(verbose=False, threads=1).fit(textual)
    texts = {"n1": textual.texts[9], "n2": "unknown words only", "n3": textual.texts[40][:60]}
    edges = [("n1", "p3"), ("n1", "p3"), ("n2", "n1"), ("p250", "n2"), ("n3", "n3")]
    grown = scale.add_vertices(reference, tmp_path / "grown", texts, edges)
    single.add_vertices(texts, edges)
    for ours, theirs in zip(
        grown.embed(texts, return_std=True), single.embed(list(texts), return_std=True), strict=True
    ):
        assert np.allclose(ours, theirs, rtol=0.03, atol=2e-3)
    assert cosines(grown.embed(texts), single.embed(list(texts))).min() >= 0.9999
    assert np.array_equal(grown.embed(textual.ids), reference.embed(textual.ids))
    assert (len(grown), grown.info_["links"]) == (303, len(single.network_.links))
    degree = [grown.degree.take(grown.rows([i]))[0, 0] for i in ("n1", "p3", "p250", "n3")]
    assert degree == [
        single.network_.degrees[single.network_.ids.index(i)] for i in ("n1", "p3", "p250", "n3")
    ]
    assert grown.suggest("n1") == []
    assert grown.suggest("p9") == reference.suggest("p9")
    again = scale.add_vertices(grown, tmp_path / "again", {"n4": "cats"}, [("n4", "n1")])
    assert len(again) == 304
    assert again.ids(again.rows(["n4", "n2"])) == ["n4", "n2"]
    assert len(scale.add_vertices(reference, tmp_path / "alone", {"n5": ""})) == 301
    for new, pairs, sentence in (
        ({"p3": "a text"}, [], "the model has this vertex"),
        ({"n9": "a text"}, [("n9", "nobody")], "has no vertex 'nobody'"),
        ({"n9": "a text"}, [("p1", "p2")], "between two existing vertices"),
    ):
        with pytest.raises(ValueError, match=sentence):
            scale.add_vertices(reference, tmp_path / "bad", new, pairs)
    assert not (tmp_path / "bad").exists()
    with pytest.raises(ValueError, match="exists: choose another folder"):
        scale.add_vertices(reference, tmp_path / "grown", texts)
