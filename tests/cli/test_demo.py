"""The demonstration on a small network: output, files and returned values."""

import io
import json
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

from vhe.cli import demo
from vhe.cli.demo import present, summary
from vhe.data.network import TextNetwork
from vhe.estimators import VHE, load_model
from vhe.predict.link_posterior import at_density
from vhe.predict.predictor import density
from vhe.web.map_data import subpackages

SUBJECTS = ("matrix", "graph", "table", "signal")
HOSTILE = "evil.</script><img src=x onerror=alert(1)>[bold]"


def small_network(size: int = 14) -> TextNetwork:
    """Four subjects with links mostly within themselves, and a vertex with a malicious id."""
    rng = np.random.default_rng(0)
    words = {
        subject: [f"{subject}{k}" for k in range(12)] + ["the", "of", "returns"]
        for subject in SUBJECTS
    }
    ids, texts, labels = [], [], []
    for subject in SUBJECTS:
        for k in range(size):
            ids.append(f"package.{subject}.function_with_a_rather_long_name_{subject}_{k}")
            texts.append(" ".join(rng.choice(words[subject], size=12)) + ". More.")
            labels.append(f"package.{subject}.sub")
    ids[0], texts[0] = HOSTILE, HOSTILE
    group = np.repeat(np.arange(len(SUBJECTS)), size)
    sources = rng.integers(len(ids), size=160)
    targets = group[sources] * size + rng.integers(size, size=160)
    return TextNetwork(ids, texts, np.column_stack([sources, targets]), labels, name="small")


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict, str, TextNetwork, Path]:
    out, printed, network = tmp_path_factory.mktemp("out"), io.StringIO(), small_network()
    console = Console(file=printed, width=80, highlight=False)
    model = VHE(random_state=0, max_steps=5, verbose=False)
    result = present(network, model, out, seed=0, console=console)
    return result, printed.getvalue(), network, out


def test_scores_of_all_methods(shown: tuple) -> None:
    result, printed, network, _ = shown
    held_out = round(0.15 * len(network.links))
    assert set(result["scores"]) == {"VHE", "Diffused text", "TF-IDF"}
    for method, scores in result["scores"].items():
        assert scores["edges"] == held_out
        assert scores["protocol"] == "clean"
        line = next(line for line in printed.splitlines() if line.strip().startswith(method))
        assert line.split()[-4:] == [
            f"{scores[name]:.3f}" for name in ("auc", "ap", "mrr", "hits10")
        ]
    assert result["scores"]["VHE"]["auc"] > 0.7


def test_suggestions_are_new_and_in_order(shown: tuple) -> None:
    result, printed, network, _ = shown
    linked = {frozenset(link) for link in network.links.tolist()}
    ends = [network.index(s[end]) for s in result["suggestions"] for end in ("source", "target")]
    pairs = [frozenset(pair) for pair in zip(ends[::2], ends[1::2], strict=True)]
    probabilities = [suggestion["probability"] for suggestion in result["suggestions"]]
    assert pairs
    assert not linked & set(pairs)
    assert len(set(ends)) == len(ends)
    assert probabilities == sorted(probabilities, reverse=True)
    assert f"{probabilities[0]:.3f}" in printed
    pairs_per_link = len(network) * (len(network) - 1) / 2 / len(network.links)
    assert f"one of {pairs_per_link:.0f} pairs is a link" in printed


def test_the_report_has_every_vertex_once_and_escapes_ids(shown: tuple) -> None:
    result, _, network, out = shown
    page = result["report"].read_text("utf-8")
    data = json.loads(re.search(r'type="application/json">(.*?)</script>', page, re.S)[1])
    assert result["report"] == out / "report.html"
    assert data["ids"] == list(network.ids)
    assert np.array(data["links"]).reshape(-1, 2).tolist() == network.links.tolist()
    assert data["labels"] == [f"package.{subject}" for subject in sorted(SUBJECTS)]
    assert page.count("</script>") == 2
    assert "<img" not in page
    for word in ("VHE", "Diffused text", "TF-IDF", "Hits@10", "polyline", "torch", "Seed"):
        assert word in page


def test_output_is_plain_and_fits_80_columns(shown: tuple) -> None:
    _, printed, _, out = shown
    tables = printed.split("Drawing the map")[0]
    assert max(map(len, tables.splitlines())) <= 80
    assert "\x1b" not in printed
    for line in (
        f"{out / 'report.html'}",
        f"vhe serve {out / 'model'}  ",
        f"vhe explain {out / 'model'} ",
        f"vhe suggest {out / 'model'} ",
        "vhe fit --vertices ",
    ):
        assert line in printed


def test_next_steps_name_a_command_that_the_shell_finds(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, shown: tuple
) -> None:
    _, _, network, _ = shown
    found = SimpleNamespace(network=network, suggestions=lambda: [(0, 1, 0.5)])
    monkeypatch.setattr("sys.argv", [".venv/bin/vhe", "demo"])
    for installed, program in ((None, ".venv/bin/vhe"), ("/usr/bin/vhe", "vhe")):
        monkeypatch.setattr("shutil.which", lambda name, path=installed: path)
        console = Console(file=io.StringIO(), width=80)
        demo._print_next_steps(console, tmp_path, found)
        assert f"  {program} serve " in console.file.getvalue()


def test_the_saved_model_gives_the_printed_probabilities(shown: tuple) -> None:
    result, _, network, _ = shown
    loaded = load_model(result["model"])
    pairs = [(s["source"], s["target"]) for s in result["suggestions"]]
    expected = [s["probability"] for s in result["suggestions"]]
    balanced = loaded.predict_proba(pairs, balanced=True)
    np.testing.assert_allclose(at_density(balanced, density(network)), expected, rtol=1e-5)
    assert loaded.network_.ids == network.ids


def test_a_second_run_in_the_same_folder_gives_the_same_results(shown: tuple) -> None:
    result, printed, network, out = shown
    console = Console(file=io.StringIO(), width=80, highlight=False)
    model = VHE(random_state=0, max_steps=5, verbose=False)
    again = present(network, model, out, seed=0, console=console)
    assert again["scores"] == result["scores"]
    assert again["suggestions"] == result["suggestions"]
    assert console.file.getvalue() == printed  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("K-Means clustering. Read more.", "K-Means clustering."),
        ("Sum of x parameters x : array", "Sum of x"),
        ("Uses numpy.linalg inside", "Uses numpy.linalg inside"),
        ("", ""),
    ],
)
def test_summary(text: str, first: str) -> None:
    assert summary(text) == first


def test_small_subpackages_go_by_their_package() -> None:
    labels = ["a.x.deep"] * 3 + ["a.x"] * 2 + ["a.y"] * 4 + ["a", "b.z", "c"]
    assert subpackages(labels, 4) == ["a.x"] * 5 + ["a"] * 5 + ["b", "c"]
    assert subpackages(labels, 3) == ["a"] * 10 + ["b", "c"]
    assert subpackages([], 3) == []
