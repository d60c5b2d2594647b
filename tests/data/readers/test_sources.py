"""From what people have to suggestions: every source by `vhe fit SOURCE`, and how it is chosen."""

from __future__ import annotations

import importlib.util
import io
import json
import pickle
import random
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import networkx
import pytest

import vhe
from vhe.cli import main
from vhe.data.network import TextNetwork
from vhe.data.sources import read
from vhe.errors import VHEError

Put = Callable[..., dict[str, Path]]  # the fixture
TINY = ["--set", "latent_dim=4", "--epochs", "1", "--seed", "0"]


def _notes() -> ModuleType:
    spec = importlib.util.spec_from_file_location("notes", Path(__file__).parent / "notes.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def functions() -> TextNetwork:
    return _notes().linked_functions()  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory, functions: TextNetwork) -> dict[str, Path]:
    """The same network as a folder of notes and as exports of several programs."""
    folder = tmp_path_factory.mktemp("sources")
    notes = _notes()
    notes.write_notes(folder / "notes", functions)
    paths = {"notes": folder / "notes", **notes.write_exports(folder, functions)}
    paths["papers.db"] = folder / "papers.db"
    with sqlite3.connect(paths["papers.db"]) as connection:
        connection.execute("CREATE TABLE vertices (id TEXT, text TEXT)")
        connection.execute("CREATE TABLE edges (source TEXT, target TEXT)")
        rows = list(zip(functions.ids, functions.texts, strict=True))
        connection.executemany("INSERT INTO vertices VALUES (?, ?)", rows)
        pairs = [(functions.ids[i], functions.ids[j]) for i, j in functions.edges.tolist()]
        connection.executemany("INSERT INTO edges VALUES (?, ?)", pairs)
    graph = networkx.DiGraph()
    graph.add_nodes_from((i, {"label": t}) for i, t in rows)
    graph.add_edges_from(pairs)
    paths["graph.gexf"] = folder / "graph.gexf"
    networkx.write_gexf(graph, paths["graph.gexf"])
    return paths


NAMES = ["notes", "a.bib", "a.ris", "a.json", "works.jsonl", "table.csv", "papers.db", "graph.gexf"]


@pytest.mark.parametrize("name", NAMES)
def test_each_source_has_the_same_links(
    sources: dict[str, Path], functions: TextNetwork, name: str
) -> None:
    network = vhe.read(sources[name])
    count = len(functions) + (name == "notes")  # and its index
    assert len(network) == count
    names = {
        str(i): str(functions.ids[int(str(i)[1:])])
        if name == "works.jsonl"
        else str(i).rpartition("/")[2]
        for i in network.ids
    }
    found = {frozenset(names[str(network.ids[k])] for k in pair) for pair in network.links.tolist()}
    wanted = {frozenset(str(functions.ids[k]) for k in pair) for pair in functions.links.tolist()}
    assert found - {frozenset({"index", "numpy.mean"})} == wanted
    assert all(text.strip() for text in network.texts)


@pytest.mark.parametrize("name", NAMES)
def test_from_each_source_to_suggestions(
    sources: dict[str, Path], tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "model"
    assert main(["fit", str(sources[name]), "--out", str(model), *TINY]) == 0
    capsys.readouterr()
    vertex = {"notes": "numpy/numpy.mean", "works.jsonl": "W0"}.get(name, "numpy.mean")
    assert main(["suggest", str(model), vertex, "-k", "3", "--json"]) == 0
    links = json.loads(capsys.readouterr().out)["links"]
    assert len(links) == 3
    assert all(0 <= link["probability"] <= 1 for link in links)


def test_notes_report_what_was_chosen(
    sources: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    notes = read(sources["notes"]).notes
    assert notes[0] == "151 Markdown pages"
    assert notes[1] == "label: most common tag"
    assert notes[2].startswith("1 link to missing pages skipped (first: 'A note to write' at ")
    table = read(sources["table.csv"], name="functions")
    assert table.name == "functions"
    assert table.notes[:2] == (
        "table.csv: id: Key; text: Title + Abstract Note; references: Cites",
        "table.csv: delimiter semicolon",
    )
    arguments = ["fit", str(sources["table.csv"]), "--out", str(tmp_path / "m"), "--text", "Title"]
    assert main([*arguments, "--label", "Title", "--name", "titles", "--json", *TINY]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["network"] == "titles"
    assert "note: table.csv: id: Key; text: Title; label: Title; references: Cites" in shown.err


@pytest.mark.parametrize("words", [["/dev/stdin"], ["--", "-"]])
def test_standard_input_of_the_command(
    sources: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    raw = sources["table.csv"].read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))
    assert main(["fit", "--out", str(tmp_path / "m"), *TINY, *words]) == 0


@pytest.mark.parametrize("extension", ["csv", "jsonl", "parquet", "xlsx", "ods"])
def test_a_folder_of_tables(tmp_path: Path, extension: str) -> None:
    pandas = pytest.importorskip("pandas")
    vertices = pandas.DataFrame({"Node ID": [1, 2], "Title": ["red", "blue"]})
    edges = pandas.DataFrame({"from": [1.0], "to": [2.0]})
    for name, frame in (("nodes", vertices), ("links", edges)):
        path = tmp_path / f"{name}.{extension}"
        if extension == "csv":
            frame.to_csv(path, index=False)
        elif extension == "jsonl":
            frame.to_json(path, orient="records", lines=True)
        elif extension == "parquet":
            frame.to_parquet(path)
        else:
            frame.to_excel(str(path), index=False)  # of a Path, pandas ignores the extension
    network = read(tmp_path)
    assert network.texts == ("red", "blue")
    assert network.edges.tolist() == [[0, 1]]
    assert network.name == tmp_path.name


def test_a_workbook_with_two_sheets(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    path = tmp_path / "papers.xlsx"
    with pandas.ExcelWriter(path) as book:
        pandas.DataFrame({"source": ["a"], "target": ["b"]}).to_excel(
            book, sheet_name="Edges", index=False
        )
        frame = pandas.DataFrame({"id": ["a", "b"], "text": ["red", 5], "label": [None, "x"]})
        frame.to_excel(book, sheet_name="Vertices", index=False)
    network = read(path)
    assert network.texts == ("red", "5")
    assert network.labels == (None, "x")
    assert network.edges.tolist() == [[0, 1]]
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(VHEError, match=r"papers\.xlsx is not a readable spreadsheet"):
        read(path)


def test_without_the_packages_for_spreadsheets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pandas = pytest.importorskip("pandas")
    path = tmp_path / "papers.xlsx"
    pandas.DataFrame({"id": ["a"], "text": ["red"]}).to_excel(path, index=False)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(VHEError, match=r"reading \.xlsx needs openpyxl; install vhe\[excel\]"):
        read(path)


SMALL = TextNetwork(
    [f"n{k}" for k in range(5)],
    [f"text {k} [x] {{y}}" for k in range(5)],
    [[0, 1], [1, 2], [3, 4], [4, 0]],
    list("ababa"),
)
PIECES = (b"{", b"}", b"[[", b']"', b"\n", b"\0", b"\xff", b",;", b"null", b"1e999", b"@", b"<![")
PIECES += (b"ER  - ", b"&x", b"`", b"\r", b"\xef\xbb\xbf", b"\xff\xfe", b"---\n", b"..", b"-->")


def test_damaged_files_are_read_or_refused_in_one_sentence(tmp_path: Path) -> None:
    chance = random.Random(0)
    notes = _notes()
    exports = notes.write_exports(tmp_path, SMALL)
    notes.write_notes(tmp_path / "notes", SMALL)
    files = {path: path for path in exports.values()}  # the damaged file, and what is read
    files |= {path: tmp_path / "notes" for path in (tmp_path / "notes").rglob("n0.md")}
    for name, text in (
        ("a.rst", ".. _l:\n\nT\n===\n\n:doc:`b` :ref:`x <l>` `w <a.rst>`_\n\n::\n\n code\n"),
        ("b.html", "<title>x</title><main><h1>H</h1><a href='b.html'>y</a><!-- c --></main>"),
    ):
        (tmp_path / name[0]).mkdir()
        (tmp_path / name[0] / name).write_text(text)
        files[tmp_path / name[0] / name] = tmp_path / name[0]
    read_count = 0
    for path, source in files.items():
        whole = path.read_bytes()
        for _ in range(60):
            raw = bytearray(whole)
            for _ in range(chance.randint(1, 4)):
                k = chance.randrange(len(raw) + 1)
                if chance.random() < 0.5:
                    raw[k:k] = chance.choice(PIECES)
                else:
                    del raw[k : k + chance.choice((1, 30, len(raw)))]
            path.write_bytes(raw)
            try:
                read(source, on_duplicate=chance.choice(("error", "merge", "first")))
                read_count += 1
            except VHEError as error:
                assert "\n" not in str(error)  # noqa: PT017
        path.write_bytes(whole)
    assert read_count > 50


def test_pickles_are_refused(tmp_path: Path) -> None:
    for name in ("graph.gpickle", "graph.csv"):
        path = tmp_path / name
        path.write_bytes(pickle.dumps(networkx.path_graph(3)))
        with pytest.raises(VHEError, match=r"is a pickle, which can run any program .*GraphML"):
            read(path)


@pytest.mark.parametrize(
    ("name", "content", "options", "sentence"),
    [
        ("a_csv", "id,text\na,x\n", {}, r"a\.csv contains only vertices: give a file of edges"),
        ("a_edgelist", "a b\n", {}, r"contains edges without texts; give the texts, too"),
        ("a_md", "# one page", {}, r"a\.md is one page; give the folder"),
        ("a_zip", b"PK\3\4", {}, r"a\.zip is an archive; unpack it"),
        ("a_docx", b"PK\3\4", {}, r"a\.docx is a \.docx file, which vhe does not read; convert"),
        ("a_xml", "<html></html>", {}, "contains no nodes"),
        (
            "a_json",
            '{"nodes": [{"id": 1}], "links": []}',
            {},
            "node-link JSON; write it as GraphML",
        ),
        ("a_json", "5", {}, r"a\.json: a value of type int instead of a list"),
        ("a_csv", "id,text\na,x\n", {"text": "title"}, r"no column 'title' for --text .*'id', 'te"),
        (
            "a_csv",
            "id,text\na,x\n",
            {"on_unknown": "maybe"},
            "on_unknown is 'maybe'; choose one of",
        ),
        ("a_graphml", "<graphml/>", {"id": "x"}, "--id: .* is XML, where this cannot be chosen"),
    ],
)
def test_sources_that_cannot_be_read(
    put: Put, name: str, content: str | bytes, options: dict[str, str], sentence: str
) -> None:
    with pytest.raises(VHEError, match=sentence):
        read(put(**{name: content})[name], **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "no network given: name a dataset"),
        (["--edges", "e.csv"], "--edges FILE requires SOURCE or --vertices FILE"),
        (["seealso", "--vertices", "v.csv"], "SOURCE and --vertices exclude each other"),
        (["a", "--sql", "sqlite:///b.db"], "SOURCE and --sql exclude each other"),
        (["seealso", "--text", "title"], "--text: seealso is a dataset: omit the option"),
        (["nowhere"], "'nowhere' is neither a dataset nor a file or folder"),
    ],
)
def test_command_lines_that_name_no_network(
    arguments: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fit", *arguments, "--out", str(tmp_path / "m")]) == 2
    shown = capsys.readouterr().err
    assert sentence in shown
    assert len(shown.splitlines()) == 1
