"""The summary page: who leads, what is reached, and where the figures come from."""

import pytest

from vhe.paper.overview import provenance_note, summary


def link(method: str, auc: float, seed: int = 10, **changes) -> dict:
    fields = {"task": "link", "dataset": "cora", "method": method, "ratio": 0.15, "seed": seed}
    return {**fields, "protocol": "lines", "auc": auc, **changes}


RESULTS = [
    link("vhe", 0.95),
    link("vhe", 0.97, 11),
    link("tadw", 0.9),
    link("pair-vhe", 0.94),
    link("pwa", 0.92),
    link("vhe", 0.9, protocol="clean"),
    link("gcn-ncn", 0.93, protocol="clean"),
]


def test_the_summary_names_each_cell_in_which_vhe_does_not_lead() -> None:
    text = "\n".join(summary(RESULTS))
    above = "(above it: Cora 15 % `clean`: GCN, common neighbours by 3.00)"
    assert f"measured there, in 1 of 2 columns {above}. Diff" in text
    assert "among 2–4 methods measured there, in" in text
    assert "prior, in 1 of 1 columns" in text
    assert "reached in 1 of 1 columns (Cora 15 % `lines`)" in text  # 94.4 is printed
    assert "| VHE | 96.0 / – / – | 90.0 / – / – |" in text
    assert "| VHE as published | 94.4 / 98.3 / 99.4 |  |" in text
    sentences, _, table = text.partition("\n\n")
    assert len(sentences.splitlines()) == 5
    assert len(table.splitlines()) < 12


def test_a_column_in_which_the_pair_model_leads_is_named() -> None:
    text = "\n".join(summary([link("vhe", 0.9), link("pair-vhe", 0.91), link("tadw", 0.8)]))
    assert "measured there, in 0 of 1 columns" in text
    assert "(above it: Cora 15 % `lines`: PairVHE by 1.00)" in text


def test_methods_are_compared_on_common_seeds() -> None:
    """TADW has a higher mean because it has not been measured on the hardest split."""
    tadw = [link("tadw", 0.91, 10), link("tadw", 0.94, 11)]
    vhe = [link("vhe", auc, seed) for seed, auc in ((10, 0.92), (11, 0.96), (12, 0.8))]
    text = summary([*tadw, *vhe])[0]
    assert "there, in 1 of 1 columns (least lead: Cora 15 % `lines`, TADW by 1.50 ± 0.50)" in text
    assert "there, in 1 of 1 columns. Diff" in summary([*vhe, link("tadw", 0.99, 13)])[0]


def test_the_link_posterior_is_compared_with_the_embedding_alone() -> None:
    one = [
        link("vhe-one-scale", 0.9503, mrr=0.5),  # VHE has 0.95 with this seed
        link("vhe-one-scale", 0.92, mrr=0.5, protocol="clean"),
    ]
    both = [{**result, "mrr": 0.6} for result in RESULTS] + one
    text = "\n".join(summary(both))
    assert "AUC in 1 of 2 columns (least: -2.00, Cora 15 % `clean`; lower by" in text
    assert "MRR in 2 of 2 columns (least: +10.00, Cora 15 % " in text
    assert "measured there, in 1 of 2 columns (above it: Cora 15 % `clean`: GCN" in text
    assert "among 2–4 methods measured there, in" in text


@pytest.mark.parametrize(("losses", "below"), [((0.01, 0.02, 0.03), 1), ((-0.04, 0.02, 0.05), 0)])
def test_a_loss_against_the_embedding_alone_is_compared_with_its_standard_error(
    losses: tuple[float, ...], below: int
) -> None:
    pairs = [
        link(method, 0.9 - loss * (method == "vhe"), seed, mrr=0.5)
        for seed, loss in enumerate(losses, start=10)
        for method in ("vhe", "vhe-one-scale")
    ]
    text = "\n".join(summary(pairs))
    assert f"standard errors in {below}) and in MRR" in text


def test_columns_of_other_tasks_are_named_too() -> None:
    labels = {"task": "classify", "ratio": None, "protocol": None}
    more = [
        link("vhe", 0, accuracy=0.8, labelled=0.1, **labels),
        link("tadw", 0, accuracy=0.9, labelled=0.1, **labels),
        link("vhe", 0.8, task="unseen"),
    ]
    first = summary([*RESULTS, *more])[0]
    assert "; classification: 0 of 1 columns (above it: Cora 10 %: TADW by 10.00);" in first
    assert "; unseen vertices: 1 of 1 columns. Differences are means" in first


def test_a_note_has_seeds_commits_and_command() -> None:
    results = [
        link("vhe", 0.9, seed, origin={"git": "abc" if seed < 12 else "xyz"})
        for seed in (10, 11, 12)
    ]
    note = provenance_note(results, "vhe reproduce link")
    assert "3 measurements; seeds 10 to 12; 2 commits, 2 of them at abc." in note
    assert "`vhe reproduce link`" in note
