"""Tables as CSV and LaTeX: the figures of the Markdown report."""

import csv
import io
import shutil
import subprocess

import pytest

from vhe.paper.export import all_tables, as_csv, as_latex


def link(method: str, auc: float, seed: int, **changes) -> dict:
    fields = {"task": "link", "dataset": "cora", "method": method, "ratio": 0.55, "seed": seed}
    scores = {"auc": auc, "ap": 0.5, "mrr": 0.25, "hits10": 0.75, "seconds": 1.0}
    return {**fields, "protocol": "lines", **scores, **changes}


@pytest.fixture
def tables() -> list:
    found = [link("vhe", 0.97, 0), link("vhe", 0.98, 1), link("gcn-ncn", 0.9, 0)]
    found.append(link("pair-vhe", 0.9, 0, task="lambda", settings={"homophily": 0.99}))
    return list(all_tables(found))


def test_csv_has_one_row_per_figure_with_the_published_one(tables) -> None:
    rows = list(csv.DictReader(io.StringIO(as_csv(tables))))
    first = rows[0]
    assert (first["task"], first["method"], first["measure"]) == ("link", "vhe", "auc")
    assert float(first["mean"]) == pytest.approx(0.975)
    assert (first["seeds"], first["paper"], first["column"]) == ("2", "0.983", "0.55")
    assert {row["name"] for row in rows} == {"VHE", "GCN, common neighbours", "PairVHE"}
    assert len(rows) == 3 * 4  # four measures


def test_latex_has_a_table_per_measure_and_escapes(tables) -> None:
    text = as_latex(tables)
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == 8
    assert r"VHE & \textbf{97.5 $\pm$ 0.7} \\" in text
    assert r"VHE as published & 98.3 $\pm$ 0.2 \\" in text
    assert r"55 \%" in text
    assert r"$\lambda$ = 0.99" in text


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_latex_compiles(tables, tmp_path) -> None:
    body = r"\documentclass{article}\begin{document}" + as_latex(tables) + r"\end{document}"
    (tmp_path / "t.tex").write_text(body, encoding="utf-8")
    command = ["pdflatex", "-halt-on-error", "t.tex"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
