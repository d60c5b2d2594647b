"""vhe suggest, explain and add with both models: results, files, one-line errors."""

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from vhe.cli import main
from vhe.estimators import load_model

SETTINGS = {
    "graph": ["latent_dim=8", "min_count=1", "max_steps=4", "step_links=16", "validate_every=2"],
    "pair": [
        "word_dim=8", "latent_dim=8", "structure_dim=8", "hidden_dim=8", "kernels=4",
        "kernel_width=3", "min_count=1", "steps=4", "batch_size=16", "near_pairs=8", "contexts=4",
    ],
}  # fmt: skip


@pytest.fixture(scope="module", params=["graph", "pair"])
def model(
    request: pytest.FixtureRequest, files: list[str], tmp_path_factory: pytest.TempPathFactory
) -> str:
    """A folder of each kind of model."""
    out = str(tmp_path_factory.mktemp("questions") / "model")
    options = ["--model", request.param, "--seed", "1", "--threads", "1"]
    assert main(["fit", *files, "--out", out, *options, "--set", *SETTINGS[request.param]]) == 0
    return out


def run_json(capsys: pytest.CaptureFixture[str], *tokens: str) -> dict:
    status = main([*tokens, "--json"])
    printed = capsys.readouterr()
    assert status == 0, printed.err
    return json.loads(printed.out)


def error_line(capsys: pytest.CaptureFixture[str], *tokens: str) -> str:
    """Run an invalid command; return the one line on standard error."""
    status = main(list(tokens))
    printed = capsys.readouterr()
    assert status == 2
    assert printed.out == ""
    (line,) = printed.err.splitlines()
    assert line.startswith("vhe: ")
    return line


def printed(capsys: pytest.CaptureFixture[str], *tokens: str) -> str:
    assert main(list(tokens)) == 0
    return capsys.readouterr().out


# --- suggest


def test_suggested_links(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = run_json(capsys, "suggest", model, "103", "-k", "4")
    assert found["id"] == "103"
    fitted = load_model(model)
    wanted = fitted.suggest_links("103", 4)
    assert [link["id"] for link in found["links"]] == [s.id for s in wanted]
    assert [link["text"] for link in found["links"]] == [s.text for s in wanted]
    assert not {"101", "102", "104", "105"} & {link["id"] for link in found["links"]}
    shown = printed(capsys, "suggest", model, "103", "-k", "4")
    assert all(str(s.id) in shown for s in wanted)
    assert "purr" in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert "\x1b" not in shown
    assert len(run_json(capsys, "suggest", model, "103")["links"]) == 10
    least = wanted[1].probability
    options = ("-k", "4", "--min-probability", f"{least:.12f}")
    links = run_json(capsys, "suggest", model, "103", *options)["links"]
    assert 1 <= len(links) <= 2
    assert printed(capsys, "suggest", model, "103", "--min-probability", "1") == (
        "no missing links with probability 1 or more\n"
    )


def test_the_best_links_of_the_network(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fitted = load_model(model)
    links = run_json(capsys, "suggest", model, "-k", "12")["links"]
    table = fitted.suggest_all(12)
    assert [link["source"] for link in links] == table["source"].tolist()
    assert [link["probability"] for link in links] == table["probability"].tolist()
    assert len({frozenset((link["source"], link["target"])) for link in links}) == 12
    assert len(run_json(capsys, "suggest", model)["links"]) == 100

    shown = printed(capsys, "suggest", model, "-k", "3")
    assert max(map(len, shown.splitlines())) <= 80
    assert f"{links[0]['probability']:.3f}" in shown
    assert ("nearly the same texts" in shown) == any(table["duplicate"][:3])

    distinct = run_json(capsys, "suggest", model, "-k", "9", "--no-duplicates")["links"]
    assert not any(link["duplicate"] for link in distinct)

    lines = printed(capsys, "suggest", model, "-k", "3", "--format", "markdown").splitlines()
    first = links[0]
    assert lines[0].startswith(f"- [ ] `{first['source']}` and `{first['target']}`: 0.")
    assert len(lines) == 3
    rows = list(csv.DictReader(printed(capsys, "suggest", model, "--format", "csv").splitlines()))
    assert len(rows) == 100
    assert list(rows[0]) == list(links[0])
    for name in ("links.csv", "links.md", "links.json", "links.parquet"):
        out = tmp_path / name
        found = run_json(capsys, "suggest", model, "-k", "5", "--out", str(out))
        assert found == {"file": str(out), "links": 5, "vertices": 30}
    assert json.loads((tmp_path / "links.json").read_text())["links"] == links[:5]
    assert (tmp_path / "links.md").read_text().splitlines()[:3] == lines
    assert pq.read_table(tmp_path / "links.parquet").column("source").to_pylist() == [
        link["source"] for link in links[:5]
    ]


def test_a_checklist_escapes_ids() -> None:
    from vhe.cli.suggest import _text

    columns = {"source": ["a`b\n# c"], "target": ["*d*"], "probability": [0.5], "duplicate": [True]}
    expected = "- [ ] `a'b # c` and `*d*`: 0.500 (nearly the same text)\n"
    assert _text(columns, "markdown", raw=False) == expected


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_links_of_the_whole_network(
    ending: str, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / f"links.{ending}"
    found = run_json(capsys, "suggest", model, "--all", "-k", "2", "--out", str(out))
    assert found == {"file": str(out), "links": 60, "vertices": 30}
    rows = {
        "csv": lambda: list(csv.DictReader(out.open())),
        "parquet": lambda: pq.read_table(out).to_pylist(),
        "jsonl": lambda: [json.loads(line) for line in out.open()],
    }[ending]()
    assert list(rows[0]) == ["source", "target", "probability", "text"]
    fitted = load_model(model)
    linked = {frozenset(link) for link in fitted.network_.links.tolist()}
    for row in rows:
        ends = fitted.network_.indices([row["source"], row["target"]]).tolist()
        assert frozenset(ends) not in linked
        assert ends[0] != ends[1]
    one = [r for r in rows if r["source"] == "117"]
    wanted = fitted.suggest_links("117", 2)
    assert [r["target"] for r in one] == [s.id for s in wanted]
    assert [float(r["probability"]) for r in one] == pytest.approx([s.probability for s in wanted])


def test_invalid_suggest_commands_are_refused(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "'999'" in error_line(capsys, "suggest", model, "999")
    out = str(tmp_path / "links.csv")
    assert "ID and --all exclude" in error_line(
        capsys, "suggest", model, "103", "--all", "--out", out
    )
    assert "--no-duplicates" in error_line(capsys, "suggest", model, "103", "--no-duplicates")
    assert "--all requires --out" in error_line(capsys, "suggest", model, "--all")
    assert "from 0 to 1" in error_line(capsys, "suggest", model, "--min-probability", "30")
    assert "exclude" in error_line(capsys, "suggest", model, "--json", "--format", "csv")
    assert "omit it or --out" in error_line(
        capsys, "suggest", model, "--format", "table", "--out", out
    )
    assert "--format" in error_line(capsys, "suggest", model, "--format", "xml")
    assert ".xlsx" in error_line(
        capsys, "suggest", model, "--all", "--out", str(tmp_path / "a.xlsx")
    )
    assert "no such model folder" in error_line(capsys, "suggest", str(tmp_path / "none"), "103")
    assert error_line(capsys, "suggest", model, "103", "-k", "0")
    assert list(tmp_path.iterdir()) == []


# --- explain


def test_explain(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = run_json(capsys, "explain", model, "100", "104")
    assert found == json.loads(json.dumps(load_model(model).explain("100", "104").to_dict()))
    words = [word for word, _ in found["source"]["words"]]
    assert words == ["Cats", "purr", "on", "warm", "sofas", "a0"]
    page = tmp_path / "link.html"
    shown = printed(capsys, "explain", model, "100", "104", "--html", str(page))
    assert "Cats purr on warm sofas" in shown
    assert "% from the words" in shown
    assert "texts" in shown.split("from the links")[1]  # the parts of the score
    assert "links" in shown
    assert str(page) in shown.replace("\n", "")
    assert "\x1b" not in shown
    assert page.read_text().startswith("<!doctype html>")


def test_colours_are_used_on_a_terminal_only(
    model: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[" in printed(capsys, "explain", model, "100", "104")
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[3" not in printed(capsys, "explain", model, "100", "104")


def test_explain_names_an_unknown_vertex(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "'999'" in error_line(capsys, "explain", model, "100", "999")
    assert error_line(capsys, "explain", model, "100")


# --- add


def test_add(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    vertices, edges, out = tmp_path / "new.csv", tmp_path / "links.csv", str(tmp_path / "grown")
    vertices.write_text("id,text,label\nn1,cats purr softly,pets\nn2,steel trains,\n")
    edges.write_text("source,target\nn1,100\n112,n2\n")
    files = ("--vertices", str(vertices), "--edges", str(edges), "--out", out)
    found = run_json(capsys, "add", model, *files)
    assert (found["added"], found["vertices"], found["links"]) == (2, 32, 62)
    grown, before = load_model(out), load_model(model)
    assert grown.network_.ids[-2:] == ("n1", "n2")
    assert grown.network_.labels[-2:] == ("pets", None)
    assert len(load_model(model).network_) == 30
    texts = {"n1": "cats purr softly", "n2": "steel trains"}
    before.add_vertices(texts, [("n1", "100"), ("112", "n2")])
    np.testing.assert_array_equal(grown.embedding_, before.embedding_)
    links = run_json(capsys, "suggest", out, "n1", "-k", "3")["links"]
    assert all(100 < int(link["id"]) < 110 for link in links)
    assert "already contains a model" in error_line(capsys, "add", model, *files)
    overwrite = ("add", model, *files, "--overwrite", "--method", "paper")
    if grown.result_["model"] == "graph":
        assert "paper" in error_line(capsys, *overwrite)
        return
    assert "2 vertices" in printed(capsys, *overwrite)
    assert np.abs(load_model(out).embedding_[-2:] - grown.embedding_[-2:]).max() > 1e-3


@pytest.mark.parametrize(
    ("vertices", "edges", "message"),
    [
        (
            "id,text\nn1,a\n101,b\n",
            None,
            "new.csv:3: duplicate id '101'",
        ),
        ("id,text\nn1,a\nn1,b\n", None, "new.csv:3: duplicate id 'n1' (first at"),
        ("id,words\nn1,a\n", None, "new.csv:1: no column for the text"),
        ("id,text\nn1,a\n", "source,target\nn1,100\nn1,n9\n", "links.csv:3"),
        (
            "id,text\nn1,a\n",
            "source,target\n100,115\n",
            "links.csv:2: the edge is between",
        ),
    ],
)
def test_invalid_files_are_refused(
    vertices: str,
    edges: str | None,
    message: str,
    model: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "new.csv").write_text(vertices)
    given = ["--vertices", str(tmp_path / "new.csv")]
    if edges is not None:
        (tmp_path / "links.csv").write_text(edges)
        given += ["--edges", str(tmp_path / "links.csv")]
    out = tmp_path / "grown"
    assert message in error_line(capsys, "add", model, *given, "--out", str(out))
    assert not out.exists()


def test_numeric_ids_stay_numeric(network, tmp_path: Path) -> None:
    from vhe.data.network import TextNetwork
    from vhe.data.readers.network_tables import read_new_vertices

    numbered = TextNetwork(range(60), network.texts, network.edges)
    (tmp_path / "new.csv").write_text("id,text\n77,a\n78,b\n")
    (tmp_path / "links.csv").write_text("source,target\n77,3\n")
    found = read_new_vertices(tmp_path / "new.csv", tmp_path / "links.csv", numbered)
    assert found.texts == {77: "a", 78: "b"}
    assert found.edges == [(77, 3)]
    (tmp_path / "new.csv").write_text("id,text\n77,a\nx,b\n")
    assert list(read_new_vertices(tmp_path / "new.csv", None, numbered).texts) == ["77", "x"]
