"""Published results and the grid: every published result has an experiment."""

from pathlib import Path
from typing import get_args

import pytest

from vhe.errors import VHEError
from vhe.evaluation.experiment import VARIED, Task, ablation_name
from vhe.evaluation.methods import METHODS, make, names
from vhe.paper.grid import experiments, grid
from vhe.paper.published import PAPER_NAMES, published, table
from vhe.paper.results import result_path
from vhe.paper.tables import ABLATIONS

TASKS = get_args(Task)


@pytest.mark.parametrize(
    ("task", "dataset", "method", "ratio", "figure"),
    [
        ("link", "cora", "vhe", 0.15, "94.4 ± 0.3"),
        ("link", "cora", "pair-vhe", 0.15, "94.4 ± 0.3"),
        ("link", "cora", "mmb", 0.95, "75.9"),
        ("classify", "cora", "dmte", 0.3, "83.9"),
        ("unseen", "hepth", "cane-mlp", 0.95, "95.0"),
        ("unseen", "zhihu", "cane-text", 0.55, "67.3"),
    ],
)
def test_figures_are_those_of_the_paper(task, dataset, method, ratio, figure) -> None:
    assert str(published(task, dataset, method, ratio)) == figure


def test_unpublished_figures_are_none() -> None:
    assert published("link", "cora", "tfidf", 0.55) is None
    assert published("link", "cora", "pwa-controlled", 0.55) is None
    assert published("link", "cora", "vhe", 0.5) is None
    assert published("unseen", "cora", "line", 0.55) is None
    assert published("classify", "hepth", "vhe", 0.1) is None


@pytest.mark.parametrize(("task", "count"), [("link", 324), ("classify", 32), ("unseen", 105)])
def test_every_published_figure_has_an_experiment(task: str, count: int) -> None:
    figures = table(task)
    assert len(figures) == count
    covered = {
        (e.dataset, PAPER_NAMES[e.method], round(100 * e.share))
        for e in grid()
        if e.task == task and e.method in PAPER_NAMES
    }
    assert covered >= set(figures)


def test_rows_are_unique_and_cover_all_methods() -> None:
    keys = [(e.task, e.dataset, e.method, e.share, str(e.settings)) for e in grid()]
    assert len(keys) == len(set(keys))
    assert {e.method for e in grid()} == set(METHODS)


def test_settings_of_the_grid_are_valid() -> None:
    for e in grid():
        if not e.settings or e.method not in names():
            continue
        made = make(e.method, 0, **e.settings)
        if e.task in VARIED or e.task == "ablation":
            assert list(e.settings) == [VARIED.get(e.task, next(iter(e.settings)))]
            assert made.get_params().items() >= e.settings.items()
            made.config  # noqa: B018 (raises for invalid settings)
        else:
            assert e.dataset == "hepth"
            objective = getattr(made, "contextual", made).objective
            assert (objective.text, objective.text_structure, objective.structure_text) == (
                *(0.7, 0.2, 0.2),
            )


def test_an_ablation_changes_one_setting_and_has_a_display_name() -> None:
    ablations = [e for e in grid() if e.task == "ablation"]
    assert {f"{e.method} {ablation_name(e.settings)}" for e in ablations} == set(ABLATIONS)
    for e in ablations:
        default = make(e.method, 0).get_params()
        assert len(e.settings) <= 1
        assert all(default[name] != value for name, value in e.settings.items())
    chosen = experiments(["ablation"], [0], datasets=["cora"], shares=[0.55], protocols=["lines"])
    experiment = chosen[2]
    name = "cora-vhe-55-lines-text_knn_weight=0.0-0.json"
    assert result_path(Path("r"), experiment).name == name
    assert str(experiment) == "ablation cora vhe 55 % lines text_knn_weight=0.0 seed 0"


def test_figures_have_the_settings_of_the_paper() -> None:
    def of(task: str) -> list:
        return [e for e in grid() if e.task == task]

    varied = [e for task in VARIED for e in of(task)]
    assert {(e.method, e.share) for e in varied} == {("pair-vhe", 0.95)}
    assert {e.dataset for e in of("lambda")} == {"cora", "hepth"}
    assert {e.dataset for e in of("alpha")} == {"cora", "hepth", "zhihu"}
    assert {e.settings["homophily"] for e in of("lambda")} == {0.0, 0.5, 0.9, 0.99, 0.999}
    assert {0.0, 0.2, 0.5, 1.0} <= {e.settings["alpha"] for e in of("alpha")}
    assert {e.settings["structure"] for e in of("structure")} == {"none", "learned"}
    assert {e.method for e in of("degree")} == {"vhe", "pair-vhe", "pwa"}
    assert {e.dataset for e in of("tsne")} == {"cora"}


@pytest.mark.parametrize(
    ("narrowed", "seeds", "count"),
    [  # vhe reproduce link with --ratio and --methods
        ({"shares": {0.15, 0.35, 0.55, 0.75, 0.95}}, 3, 3 * 2 * 5 * 2 * 32),
        (
            {
                "shares": {0.15, 0.35, 0.55, 0.75, 0.95},
                "methods": {"vhe", "pwa", "diffused-text", "tadw"},
            },
            *(10, 10 * 2 * 5 * 2 * 4),
        ),
        ({"methods": {"vhe", "pair-vhe-paper"}}, 10, 10 * 2 * 9 * 2 * 2),
    ],
)
def test_the_link_table_by_ratio_and_method(narrowed: dict, seeds: int, count: int) -> None:
    chosen = experiments(("link",), range(seeds), datasets={"cora", "hepth"}, **narrowed)
    assert len(chosen) == count


def test_experiments_are_the_grid_for_each_seed_and_protocol() -> None:
    chosen = experiments(TASKS, (0, 1))
    rows = {task: sum(e.task == task for e in grid()) for task in TASKS}
    once = rows["classify"] + rows["tsne"]
    assert len(chosen) == 2 * (2 * (sum(rows.values()) - once) + once)
    assert len({result_path(Path(), e) for e in chosen}) == len(chosen)
    assert {e.protocol for e in chosen if e.task in ("classify", "tsne")} == {None}
    assert [e.seed for e in chosen] == sorted(e.seed for e in chosen)


def test_experiments_can_be_selected() -> None:
    few = experiments(
        ("link",), (3,), protocols=("lines",), datasets={"cora"}, methods={"vhe"}, shares={0.55}
    )
    assert [(e.dataset, e.method, e.share, e.protocol, e.seed) for e in few] == [
        ("cora", "vhe", 0.55, "lines", 3)
    ]
    with pytest.raises(VHEError, match="no experiment matches"):
        experiments(("classify",), (0,), datasets={"hepth"})
