"""Vectors of vertices and weights of edges in files."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pandas
import pytest

import vhe
from vhe.data.network import TextNetwork
from vhe.data.readers.graphml import write_graphml
from vhe.data.readers.network_tables import write_tables
from vhe.errors import VHEError

IDS = ["a", "b", "c"]
VECTORS = [[1.0, 2.5], None, [0.25, -3.0]]
FILLED = [[1.0, 2.5], [0.0, 0.0], [0.25, -3.0]]
EDGES = "source,target,weight,type,year\na,b,2,cites,2001\nb,c,0.5,mentions,2002\n"


def vertices(folder: Path, kind: str, rows: list[Any] = VECTORS, **columns: list[Any]) -> Path:
    """A file of vertices without texts."""
    path = folder / f"vertices.{kind}"
    table = {"id": IDS, **columns, "vector": rows}
    if kind == "parquet":
        pandas.DataFrame(table).to_parquet(path)
    elif kind == "jsonl":
        rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        cells = ["" if row is None else json.dumps(row) for row in rows]
        pandas.DataFrame(table | {"vector": cells}).to_csv(path, index=False)
    return path


def edges(folder: Path, content: str = EDGES) -> Path:
    path = folder / "edges.csv"
    path.write_text(content)
    return path


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_a_column_of_vectors_replaces_texts(tmp_path: Path, kind: str) -> None:
    found = vhe.read(vertices(tmp_path, kind), edges(tmp_path))
    assert found.vectors.tolist() == FILLED
    assert found.texts == ("", "", "")
    assert found.edge_weights.tolist() == [2.0, 0.5]
    assert "edges.csv: ignored: type, year" in found.notes
    assert "edges.csv: weights of edges from 0.5 to 2" in found.notes
    assert "1 vertex without vector" in found.notes
    with_texts = vertices(tmp_path, kind, text=["red fox", "blue sky", ""])
    assert vhe.read(with_texts, edges(tmp_path)).texts == ("red fox", "blue sky", "")


@pytest.mark.parametrize("spelling", ["[1, 2.5]", "1 2.5", "1;2.5", "[1.  2.5]", "(1, 2.5)"])
def test_spellings_of_vectors(tmp_path: Path, spelling: str) -> None:
    path = tmp_path / "v.csv"
    path.write_text(f'id,text,vector\na,red fox,"{spelling}"\nb,blue sky,\nc,,"{spelling}"\n')
    found = vhe.read(path, edges(tmp_path))
    assert found.vectors.tolist() == [[1.0, 2.5], [0.0, 0.0], [1.0, 2.5]]


def test_several_numeric_columns_are_a_vector(tmp_path: Path) -> None:
    path = tmp_path / "v.csv"
    path.write_text("id,age,height\na,1,2.5\nb,3,4\nc,5,6\n")
    found = vhe.read(path, edges(tmp_path), vector="age,height")
    assert found.vectors.tolist() == [[1.0, 2.5], [3.0, 4.0], [5.0, 6.0]]
    assert "v.csv: vector: age + height" in found.notes
    path.write_text("id,age,height\na,1,2.5\nb,3,\nc,5,6\n")
    with pytest.raises(VHEError, match=r"v\.csv:3, column 1 is nan"):
        vhe.read(path, edges(tmp_path), vector=["age", "height"])


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize(
    ("rows", "place", "sentence"),
    [
        ([[1.0, 2.0], [1.0], [1.0, 2.0]], 1, "has 1 value but .*{first} has 2"),
        ([[1.0, 2.0], [3.0, float("nan")], [1.0, 2.0]], 1, ", column 1 is nan"),
        ([[1.0, 2.0], [1.0, 2.0], [float("inf"), 0.0]], 2, ", column 0 is inf"),
        ([[1.0, 2.0], [1.0, 2.0], [1e39, 0.0]], 2, ", column 0 is inf|, column 0 is 1e"),
    ],
)
def test_wrong_vectors_are_reported_by_file_row_and_column(
    tmp_path: Path, kind: str, rows: list[Any], place: int, sentence: str
) -> None:
    path = vertices(tmp_path, kind, rows)
    line = {"csv": 2, "jsonl": 1}.get(kind)
    wheres = [
        rf"vertices\.{kind}:{row + line}" if line else rf"vertices\.{kind} \(row {row + 1}\)"
        for row in range(3)
    ]
    alternatives = sentence.format(first=wheres[0]).split("|")
    with pytest.raises(VHEError, match="|".join(f"{wheres[place]}.*{s}" for s in alternatives)):
        vhe.read(path, edges(tmp_path))


def test_a_column_that_is_no_vector(tmp_path: Path) -> None:
    """Mosquitoes are vectors, too."""
    path = tmp_path / "v.csv"
    path.write_text("id,text,vector\na,malaria,mosquito\nb,plague,flea\nc,typhus,louse\n")
    found = vhe.read(path, edges(tmp_path))
    assert found.vectors is None
    assert "v.csv: vector ignored: 'mosquito' is not a list of numbers" in found.notes
    with pytest.raises(VHEError, match=r"v\.csv:2: the vector 'mosquito' is not a list of numbers"):
        vhe.read(path, edges(tmp_path), vector="vector")
    path.write_text("id,text,vector\na,malaria,1 2\nb,plague,flea\nc,typhus,3 4\n")
    with pytest.raises(VHEError, match=r"v\.csv:3: the vector 'flea' is not a list of numbers"):
        vhe.read(path, edges(tmp_path))
    path.write_text("id,vector\na,mosquito\nb,flea\nc,louse\n")
    with pytest.raises(VHEError, match="neither texts nor vectors"):
        vhe.read(path, edges(tmp_path))


def test_weights(tmp_path: Path) -> None:
    path = vertices(tmp_path, "csv")

    def read(rows: str, **options: Any) -> TextNetwork:
        return vhe.read(path, edges(tmp_path, f"source,target,strength,weight\n{rows}"), **options)

    found = read("a,b,7,\nb,c,8,3\n")
    assert found.edge_weights.tolist() == [1.0, 3.0]
    assert "edges.csv: 1 edge without weight read as weight 1" in found.notes
    assert read("a,b,7,2\nb,c,8,3\n", weight="strength").edge_weights.tolist() == [7.0, 8.0]
    assert read("a,b,7,2\nx,c,8,3\n", on_unknown="skip").edge_weights.tolist() == [2.0]
    created = read("a,b,7,2\nx,c,8,3\n", on_unknown="create")
    assert created.edge_weights.tolist() == [2.0, 3.0]
    assert created.vectors.tolist() == [*FILLED, [0.0, 0.0]]
    for wrong in ("0", "-1", "inf"):
        with pytest.raises(VHEError, match=r"edges\.csv:3: the weight is .* positive and finite"):
            read(f"a,b,7,2\nb,c,8,{wrong}\n")
    with pytest.raises(VHEError, match=r"edges\.csv:3: the weight 'much' is not a number"):
        read("a,b,7,2\nb,c,8,much\n")
    ignored = read("a,b,7,much\nb,c,8,3\n")
    assert ignored.edge_weights is None
    assert "edges.csv: weight ignored: 'much' is not a number" in ignored.notes


def test_edges_without_header_and_edge_lists_have_no_weights(tmp_path: Path) -> None:
    path = vertices(tmp_path, "csv")
    assert vhe.read(path, edges(tmp_path, "a,b\nb,c\n")).edge_weights is None
    listed = tmp_path / "graph.edgelist"
    listed.write_text("a b 2.5\nb c 1\n")
    found = vhe.read(path, listed)
    assert found.edge_weights is None
    assert "graph.edgelist: values after the two ids ignored" in found.notes


def test_a_file_of_vectors_makes_texts_optional(tmp_path: Path) -> None:
    path = tmp_path / "v.csv"
    path.write_text("id\na\nb\nc\n")
    with pytest.raises(VHEError, match="no column for the text"):
        vhe.read(path, edges(tmp_path))
    np.save(tmp_path / "x.npy", np.array(FILLED))
    found = vhe.read(path, edges(tmp_path), vectors=tmp_path / "x.npy")
    assert found.vectors.tolist() == FILLED
    assert found.edge_weights.tolist() == [2.0, 0.5]
    np.save(tmp_path / "x.npy", np.ones((2, 2)))
    with pytest.raises(VHEError, match=r"x\.npy: 3 vertices but 2 vectors"):
        vhe.read(path, edges(tmp_path), vectors=tmp_path / "x.npy")


def test_duplicate_ids(tmp_path: Path) -> None:
    path = tmp_path / "v.csv"
    path.write_text("id,text,vector\na,red,\na,fox,1 2\nb,sky,3 4\nc,,5 6\nc,,7 8\n")
    merged = vhe.read(path, edges(tmp_path), on_duplicate="merge")
    assert merged.vectors.tolist() == [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    first = vhe.read(path, edges(tmp_path), on_duplicate="first")
    assert first.vectors.tolist() == [[0.0, 0.0], [3.0, 4.0], [5.0, 6.0]]


@pytest.mark.parametrize("directed", [False, True])
def test_graphml(tmp_path: Path, directed: bool) -> None:
    graph = (networkx.MultiDiGraph if directed else networkx.MultiGraph)()
    for vertex, row in zip(IDS, VECTORS, strict=True):
        graph.add_node(vertex, **({} if row is None else {"vector": json.dumps(row)}))
    graph.add_edge("a", "b", weight=2.0, kind="cites")
    graph.add_edge("b", "c", weight=0.5, kind="cites")
    graph.add_edge("b", "a", weight=4.0, kind="cites")
    networkx.write_graphml(graph, tmp_path / "g.graphml")
    found = vhe.read(tmp_path / "g.graphml")
    assert found.vectors.tolist() == FILLED
    assert sorted(found.edge_weights) == [0.5, 2.0, 4.0]
    assert found.link_weights.tolist() == [6.0, 0.5]
    assert "g.graphml, edges: ignored: kind" in found.notes


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "graphml"])
def test_what_is_written_is_read(tmp_path: Path, kind: str) -> None:
    network = TextNetwork(
        IDS, ["red fox", "sky", ""], [[0, 1], [1, 2]], vectors=FILLED, edge_weights=[2.0, 0.5]
    )
    path, other = tmp_path / f"v.{kind}", tmp_path / f"e.{kind}"
    if kind == "graphml":
        write_graphml(path, network)
        found = vhe.read(path)
    else:
        write_tables(path, other, network)
        found = vhe.read(path, other)
    assert found.vectors.tolist() == FILLED
    assert found.edge_weights.tolist() == [2.0, 0.5]


def test_edges_of_a_file_in_addition(tmp_path: Path) -> None:
    """Vectors and weights of a network survive further edges."""
    graph = networkx.Graph()
    for vertex, row in zip(IDS, FILLED, strict=True):
        graph.add_node(vertex, text="fox", vector=json.dumps(row))
    graph.add_edge("a", "c", weight=3.0)
    networkx.write_graphml(graph, tmp_path / "g.graphml")
    found = vhe.read(tmp_path / "g.graphml", edges(tmp_path))
    assert found.vectors.tolist() == FILLED
    assert found.edge_weights.tolist() == [3.0, 2.0, 0.5]


def test_databases(tmp_path: Path) -> None:
    pytest.importorskip("sqlalchemy")
    with sqlite3.connect(tmp_path / "n.db") as database:
        database.execute("CREATE TABLE vertices (id TEXT, vector TEXT)")
        cells = [None if row is None else json.dumps(row) for row in VECTORS]
        database.executemany("INSERT INTO vertices VALUES (?, ?)", zip(IDS, cells, strict=True))
        database.execute("CREATE TABLE edges (source TEXT, target TEXT, weight REAL)")
        database.execute("INSERT INTO edges VALUES ('a', 'b', 2.0), ('b', 'c', 0.5)")
    found = vhe.read(tmp_path / "n.db")
    assert found.vectors.tolist() == FILLED
    assert found.edge_weights.tolist() == [2.0, 0.5]
