"""vhe suggest, explain and add as people meet them: answers, files, refusals with a line."""

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from vhe.cli import main
from vhe.estimators import VHE

TINY = [
    "word_dim=8", "latent_dim=8", "structure_dim=8", "hidden_dim=8", "kernels=4",
    "kernel_width=3", "min_count=1", "steps=4", "batch_size=16", "validate_every=2", "contexts=4",
]  # fmt: skip
TOPICS = ("Cats purr on warm sofas", "trains run on steel rails", "bread rises in hot ovens")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model of 30 vertices in three rings, each about a topic; ids 100 to 129."""
    folder = tmp_path_factory.mktemp("questions")
    vertices = [f"{100 + k},{TOPICS[k // 10]} {'ab'[k % 2]}{k % 5}" for k in range(30)]
    edges = [
        f"{100 + 10 * t + k},{100 + 10 * t + (k + step) % 10}"
        for t in range(3)
        for k in range(10)
        for step in (1, 2)
    ]
    (folder / "vertices.csv").write_text("id,text\n" + "\n".join(vertices) + "\n")
    (folder / "edges.csv").write_text("source,target\n" + "\n".join(edges) + "\n")
    files = ["--vertices", str(folder / "vertices.csv"), "--edges", str(folder / "edges.csv")]
    out = str(folder / "model")
    assert main(["fit", *files, "--out", out, "--seed", "1", "--threads", "1", "--set", *TINY]) == 0
    return out


def answer(capsys: pytest.CaptureFixture[str], *tokens: str) -> dict:
    status = main([*tokens, "--json"])
    printed = capsys.readouterr()
    assert status == 0, printed.err
    return json.loads(printed.out)


def refusal(capsys: pytest.CaptureFixture[str], *tokens: str) -> str:
    """Run something wrong; the one line that says so."""
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
    told = answer(capsys, "suggest", model, "103", "-k", "4")
    assert told["id"] == "103"
    fitted = VHE.load(model)
    wanted = fitted.suggest_links("103", 4)
    assert [link["id"] for link in told["links"]] == [s.id for s in wanted]
    assert [link["text"] for link in told["links"]] == [s.text for s in wanted]
    assert not {"101", "102", "104", "105"} & {link["id"] for link in told["links"]}
    shown = printed(capsys, "suggest", model, "103", "-k", "4")
    assert all(str(s.id) in shown for s in wanted)
    assert "purr" in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert "\x1b" not in shown
    assert len(answer(capsys, "suggest", model, "103")["links"]) == 10


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_links_of_the_whole_network(
    ending: str, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / f"links.{ending}"
    told = answer(capsys, "suggest", model, "--all", "-k", "2", "--out", str(out))
    assert told == {"file": str(out), "links": 60, "vertices": 30}
    rows = {
        "csv": lambda: list(csv.DictReader(out.open())),
        "parquet": lambda: pq.read_table(out).to_pylist(),
        "jsonl": lambda: [json.loads(line) for line in out.open()],
    }[ending]()
    assert list(rows[0]) == ["source", "target", "probability", "text"]
    fitted = VHE.load(model)
    linked = {frozenset(link) for link in fitted.network_.links.tolist()}
    for row in rows:
        ends = fitted.network_.indices([row["source"], row["target"]]).tolist()
        assert frozenset(ends) not in linked
        assert ends[0] != ends[1]
    one = [r for r in rows if r["source"] == "117"]
    wanted = fitted.suggest_links("117", 2)
    assert [r["target"] for r in one] == [s.id for s in wanted]
    assert [float(r["probability"]) for r in one] == pytest.approx([s.probability for s in wanted])


def test_suggest_says_what_is_missing(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "'999'" in refusal(capsys, "suggest", model, "999")
    assert "one vertex, or --all" in refusal(capsys, "suggest", model)
    out = str(tmp_path / "links.csv")
    assert "one vertex, or --all" in refusal(capsys, "suggest", model, "103", "--all", "--out", out)
    assert "belong together" in refusal(capsys, "suggest", model, "--all")
    assert "belong together" in refusal(capsys, "suggest", model, "103", "--out", out)
    assert ".xlsx" in refusal(capsys, "suggest", model, "--all", "--out", str(tmp_path / "a.xlsx"))
    assert "no model folder" in refusal(capsys, "suggest", str(tmp_path / "none"), "103")
    assert refusal(capsys, "suggest", model, "103", "-k", "0")
    assert list(tmp_path.iterdir()) == []


# --- explain


def test_an_explained_link(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = answer(capsys, "explain", model, "100", "104")
    assert told == json.loads(json.dumps(VHE.load(model).explain("100", "104").to_dict()))
    assert [word for word, _ in told["source"]["words"]] == [*TOPICS[0].split(), "a0"]
    page = tmp_path / "link.html"
    shown = printed(capsys, "explain", model, "100", "104", "--html", str(page))
    assert "Cats purr on warm sofas" in shown
    assert "% from the texts" in shown
    assert str(page) in shown.replace("\n", "")
    assert "\x1b" not in shown
    assert page.read_text().startswith("<!doctype html>")


def test_colours_on_a_terminal_only(
    model: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[" in printed(capsys, "explain", model, "100", "104")
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[3" not in printed(capsys, "explain", model, "100", "104")


def test_explain_names_an_unknown_vertex(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "'999'" in refusal(capsys, "explain", model, "100", "999")
    assert refusal(capsys, "explain", model, "100")


# --- add


def test_added_vertices(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    vertices, edges, out = tmp_path / "new.csv", tmp_path / "links.csv", str(tmp_path / "grown")
    vertices.write_text("id,text,label\nn1,cats purr softly,pets\nn2,steel trains,\n")
    edges.write_text("source,target\nn1,100\n112,n2\n")
    files = ("--vertices", str(vertices), "--edges", str(edges), "--out", out)
    told = answer(capsys, "add", model, *files)
    assert (told["added"], told["vertices"], told["links"]) == (2, 32, 62)
    grown, before = VHE.load(out), VHE.load(model)
    assert grown.network_.ids[-2:] == ("n1", "n2")
    assert grown.network_.labels[-2:] == ("pets", None)
    assert len(VHE.load(model).network_) == 30
    texts = {"n1": "cats purr softly", "n2": "steel trains"}
    before.add_vertices(texts, [("n1", "100"), ("112", "n2")])
    np.testing.assert_array_equal(grown.embedding_, before.embedding_)
    found = answer(capsys, "suggest", out, "n1", "-k", "3")["links"]
    assert all(100 < int(link["id"]) < 110 for link in found)
    assert "holds a model already" in refusal(capsys, "add", model, *files)
    shown = printed(capsys, "add", model, *files, "--overwrite", "--method", "paper")
    assert "2 vertices" in shown
    assert np.abs(VHE.load(out).embedding_[-2:] - grown.embedding_[-2:]).max() > 1e-3


@pytest.mark.parametrize(
    ("vertices", "edges", "said"),
    [
        (
            "id,text\nn1,a\n101,b\n",
            None,
            "new.csv:3: duplicate id '101': the network has this vertex",
        ),
        ("id,text\nn1,a\nn1,b\n", None, "new.csv:3: duplicate id 'n1' (first at"),
        ("id,words\nn1,a\n", None, "new.csv:1: no column for the text"),
        ("id,text\nn1,a\n", "source,target\nn1,100\nn1,n9\n", "links.csv:3"),
        (
            "id,text\nn1,a\n",
            "source,target\n100,115\n",
            "links.csv:2: the edge is between two existing vertices",
        ),
    ],
)
def test_files_that_are_wrong(
    vertices: str,
    edges: str | None,
    said: str,
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
    assert said in refusal(capsys, "add", model, *given, "--out", str(out))
    assert not out.exists()


def test_numbers_stay_numbers(hasty, network, tmp_path: Path) -> None:
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
