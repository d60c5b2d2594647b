"""Files: a network comes back as it was written, and what is wrong is named by file and line."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vhe.data.network import TextNetwork
from vhe.data.readers import files as formats
from vhe.errors import VHEError

VERTICES = "id,text,label\na,red fox,x\nb,brown fox,\nc,blue sky,y\n"
EDGES = "source,target\na,b\nb,c\n"


@pytest.fixture
def network() -> TextNetwork:
    texts = ['red, "quick" fox', "brown\nfox\tjumps", "größer 雪", ""]
    return TextNetwork(
        ["a", "b b", 'c"', "d"], texts, [[0, 1], [3, 2], [2, 2]], ["x", None, "y", "x"]
    )


def put(folder: Path, **files: str | bytes) -> dict[str, Path]:
    """Write files, `vertices_csv` for vertices.csv, and return their paths by the same names."""
    paths = {}
    for name, content in files.items():
        paths[name] = folder / name.replace("_", ".")
        data = content if isinstance(content, bytes) else content.encode()
        paths[name].write_bytes(data)
    return paths


def read_csv(
    folder: Path, vertices: str | bytes = VERTICES, edges: str | bytes = EDGES
) -> TextNetwork:
    return TextNetwork.from_files(*put(folder, vertices_csv=vertices, edges_csv=edges).values())


def same(one: TextNetwork, other: TextNetwork) -> None:
    assert one.ids == other.ids
    assert one.texts == other.texts
    assert one.labels == other.labels
    assert one.edges.tolist() == other.edges.tolist()


@pytest.mark.parametrize("extension", ["csv", "tsv", "jsonl", "parquet"])
def test_tables_come_back(tmp_path: Path, network: TextNetwork, extension: str) -> None:
    paths = tmp_path / f"v.{extension}", tmp_path / f"e.{extension}"
    formats.write_files(*paths, network)
    same(formats.read_files(*paths), network)
    assert sorted(p.name for p in tmp_path.iterdir()) == [f"e.{extension}", f"v.{extension}"]


WORD = st.text(st.characters(exclude_characters="\0\r", exclude_categories=["Cs"]))


@settings(max_examples=40, deadline=None)
@given(
    st.dictionaries(WORD.map(str.strip).filter(bool), WORD, min_size=1, max_size=5),
    st.sampled_from(["csv", "tsv", "jsonl", "parquet"]),
)
def test_any_ids_and_texts_come_back(texts: dict[str, str], extension: str) -> None:
    ids = list(texts)
    network = TextNetwork(ids, list(texts.values()), [[0, len(ids) - 1]], [*ids[1:], None])
    with TemporaryDirectory() as folder:
        paths = Path(folder) / f"v.{extension}", Path(folder) / f"e.{extension}"
        formats.write_files(*paths, network)
        read = formats.read_files(*paths)
    assert (read.ids, read.texts) == (network.ids, network.texts)
    assert read.edges.tolist() == network.edges.tolist()


def test_graphml_comes_back(tmp_path: Path, network: TextNetwork) -> None:
    path = tmp_path / "g.graphml"
    formats.write_graphml(path, network.with_edges(network.edges, directed=True))
    read = formats.read_files(path)
    same(read, network.with_edges([[0, 1], [2, 2], [3, 2]]))  # networkx keeps them by source
    assert read.directed
    assert read.name == "g"


def test_cane_folder_comes_back(tmp_path: Path, network: TextNetwork) -> None:
    folder = tmp_path / "net"
    formats.write_folder(folder, network)
    read = TextNetwork.from_folder(folder)
    assert read.ids == (0, 1, 2, 3)
    assert read.texts == tuple(text.replace("\n", " ") for text in network.texts)
    assert (read.labels, read.name) == (network.labels, "net")
    assert read.edges.tolist() == network.edges.tolist()
    formats.write_folder(folder, TextNetwork(["a"], ["x"], []))
    assert TextNetwork.from_folder(folder).labels is None


@pytest.mark.parametrize("extension", ["jsonl", "parquet"])
def test_integers_stay_integers(tmp_path: Path, extension: str) -> None:
    paths = tmp_path / f"v.{extension}", tmp_path / f"e.{extension}"
    formats.write_files(*paths, TextNetwork([10, 7], ["x", "y"], [[1, 0]], [3, 4]))
    read = formats.read_files(*paths)
    assert read.ids == (10, 7)
    assert read.labels == (3, 4)
    assert read.notes == ()


def test_ids_of_two_types_are_compared_as_strings(tmp_path: Path) -> None:
    files = put(
        tmp_path,
        v_jsonl='{"id": 1, "text": "x"}\n{"id": 2, "text": "y"}\n',
        e_csv="source,target\n1,2\n",
        headless_tsv="2\t1\n",
    )
    read = TextNetwork.from_files(files["v_jsonl"], files["e_csv"])
    assert read.ids == (1, 2)
    assert read.edges.tolist() == [[0, 1]]
    assert read.notes == ("the ids are int in v.jsonl and str in e.csv; compared as strings",)
    assert TextNetwork.from_files(files["v_jsonl"], files["headless_tsv"]).edges.tolist() == [
        [1, 0]
    ]


def test_mended_and_said(tmp_path: Path) -> None:
    read = read_csv(
        tmp_path,
        b"\xef\xbb\xbf" + VERTICES.replace("\n", "\r\n").encode() + b"d,,\r\n",
        "Source , TARGET\na , b\nb,a\n\nc,c\n\n\n",
    )
    assert read.ids == ("a", "b", "c", "d")
    assert read.labels == ("x", None, "y", None)
    assert read.links.tolist() == [[0, 1]]
    assert read.notes == (
        "vertices.csv: a byte order mark (BOM) at the start was dropped",
        "vertices.csv: 5 Windows line ends (CRLF) read as plain",
        "edges.csv: 3 blank lines skipped",
        "1 repeated edge line (in either direction) ignored in training",
        "1 self loop ignored in training",
        "1 vertex without text",
    )


def test_columns_by_other_names(tmp_path: Path) -> None:
    read = read_csv(
        tmp_path,
        "Title,KEY,Abstract,Subject\nT,k1,long,s\nU,k2,longer,t\n",
        "weight,Cited,citing\n3,k1,k2\n",
    )
    assert read.ids == ("k1", "k2")
    assert read.texts == ("long", "longer")
    assert read.labels == ("s", "t")
    assert read.edges.tolist() == [[1, 0]]
    assert read.notes == ("vertices.csv: the text is column 'Abstract', not 'Title'",)


def test_edges_without_a_header(tmp_path: Path) -> None:
    assert read_csv(tmp_path, edges="a,b\nb,c\n").edges.tolist() == [[0, 1], [1, 2]]
    read = read_csv(tmp_path, "id,text\nu,x\nv,y\n", "u,v\nv,u\n")
    assert read.edges.tolist() == [[0, 1], [1, 0]]
    assert "is read as an edge" in read.notes[0]
    with pytest.raises(VHEError, match=r"edges\.csv:1: no column holds the source"):
        read_csv(tmp_path, edges="a,zzz\nb,c\n")


def test_a_network_may_have_no_edges(tmp_path: Path) -> None:
    assert len(read_csv(tmp_path, edges="source,target\n").links) == 0
    paths = put(tmp_path, v_jsonl='{"id": 1, "text": "x"}\n', e_jsonl="")
    assert len(TextNetwork.from_files(*paths.values()).links) == 0
    put(tmp_path, data_txt="x\n", graph_txt="")
    assert len(TextNetwork.from_folder(tmp_path).edges) == 0


def test_a_long_text_is_no_mistake(tmp_path: Path) -> None:
    read = read_csv(tmp_path, f"id,text\na,{'word ' * 100_000}\n", "source,target\n")
    assert len(read.texts[0]) == 500_000


def test_tsv_with_plain_quotation_marks(tmp_path: Path) -> None:
    paths = put(tmp_path, v_tsv='id\ttext\na\t"Hello" he said\nb\t"open\n', e_tsv="a\tb\n")
    read = TextNetwork.from_files(*paths.values())
    assert read.texts == ('"Hello" he said', '"open')
    assert read.notes == ("v.tsv: quotation marks are read as plain characters",)


def test_half_an_escaped_pair_is_replaced(tmp_path: Path) -> None:
    paths = put(tmp_path, v_jsonl=r'{"id": "a", "text": "\ud83d\ude00 \ud83d"}', e_jsonl="")
    assert TextNetwork.from_files(*paths.values()).texts == ("\U0001f600 \ufffd",)


def test_bytes_that_were_published_so_are_replaced(tmp_path: Path) -> None:
    data, graph = put(tmp_path, data_txt=b"caf\xe9\nx\0y\n", graph_txt="0 1\n").values()
    with pytest.raises(VHEError, match=r"data\.txt:1: byte 4 of the line, 0xe9, is not UTF-8"):
        formats.read_cane(data, graph, name="n")
    read = formats.read_cane(data, graph, name="n", forgiving=True)
    assert read.texts == ("caf\ufffd", "x\0y")
    assert read.notes == ("data.txt: bytes that are not UTF-8 were replaced",)


@pytest.mark.parametrize(
    ("vertices", "edges", "sentence"),
    [
        ("", EDGES, r"vertices\.csv is empty"),
        ("id,text\n", EDGES, r"vertices\.csv holds no vertex"),
        (VERTICES, "", r"edges\.csv is empty"),
        ("id,words\na,b\n", EDGES, r"vertices\.csv:1: no column holds the text .*'id', 'words'"),
        ("id,text\na,x\nb\n", EDGES, r"vertices\.csv:3: 1 cell where the first row has 2"),
        ("id,text\na,x, y\n", EDGES, r"vertices\.csv:2: 3 cells where"),
        ("id,text\na,x\nb,y\na,z\n", EDGES, r":4: the id 'a' is there already, at .*csv:2"),
        ("id,text\na,x\n,y\n", EDGES, r"vertices\.csv:3: the id is empty"),
        ("id,ID,text\na,a,x\n", EDGES, r"vertices\.csv:1: the column 'id' is there twice"),
        ('id,text\na,"x\ny', EDGES, r"vertices\.csv:2: the row cannot be taken apart"),
        (b"id,text\na,x\nb,caf\xe9\n", EDGES, r"vertices\.csv:3: byte 6 of the line, 0xe9, is not"),
        ("id,text\n".encode("utf-16"), EDGES, r"vertices\.csv:1: byte 1 of the line, 0xff"),
        (b"id,text\na,x\0y\n", EDGES, r"vertices\.csv:2: byte 4 of the line is NUL"),
        (
            VERTICES,
            EDGES + "c,bb\n",
            r"edges\.csv:4: the edge names .* 'bb' \(did you mean 'b'\?\)",
        ),
        (VERTICES, EDGES + "a,\n", r"edges\.csv:4: the target is empty"),
        # The line is the file's, however many lines a quoted text above takes.
        ('id,text\na,"1\n2\n3"\n\nb,"4\n5"\na,x\n', EDGES, r"vertices\.csv:8: the id 'a'.*csv:2"),
    ],
)
def test_what_is_wrong_in_csv_is_named(
    tmp_path: Path, vertices: str | bytes, edges: str, sentence: str
) -> None:
    with pytest.raises(VHEError, match=sentence) as caught:
        read_csv(tmp_path, vertices, edges)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ('{"id": 1, "text": ', r"v\.jsonl:2: not JSON \(Expecting value, column 19\)"),
        ("[1, 2]", r"v\.jsonl:2: a list instead of an object"),
        ("[" * 200_000, r"v\.jsonl:2: JSON that cannot be read"),
        ('{"id": 1}', r"v\.jsonl:2: no 'text'; the keys found are 'id'"),
        ('{"id": null, "text": "x"}', r"v\.jsonl:2: the id is empty"),
        (
            '{"id": 1.5, "text": "x"}',
            r"v\.jsonl:2: the id is of type float; give a string or an int",
        ),
        ('{"id": true, "text": "x"}', r"v\.jsonl:2: the id is of type bool"),
        ('{"id": 1, "text": 5}', r"v\.jsonl:2: the text is of type int"),
        ('{"id": 1, "text": "x", "label": [1]}', r"v\.jsonl:2: the label \[1\]"),
    ],
)
def test_what_is_wrong_in_jsonl_is_named(tmp_path: Path, line: str, sentence: str) -> None:
    paths = put(tmp_path, v_jsonl='{"id": 0, "text": "x"}\n' + line + "\n", e_jsonl="")
    with pytest.raises(VHEError, match=sentence):
        TextNetwork.from_files(*paths.values())


def test_what_is_wrong_in_parquet_is_named(tmp_path: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    edges = put(tmp_path, e_jsonl="")["e_jsonl"]
    path = tmp_path / "v.parquet"
    for content, sentence in ((b"", "is empty"), (b"PAR1 no PAR1", "not a readable Parquet file")):
        path.write_bytes(content)
        with pytest.raises(VHEError, match=sentence):
            TextNetwork.from_files(path, edges)
    for columns, sentence in (
        ({"id": [1], "words": ["x"]}, "no column holds the text .* found are 'id', 'words'"),
        ({"id": [1, None], "text": ["x", "y"]}, r"v\.parquet \(row 2\): the id is empty"),
        ({"id": [1, 1], "text": ["x", "y"]}, r"\(row 2\): the id 1 .* at .*\(row 1\)"),
        ({"id": [1], "text": [b"x"]}, r"\(row 1\): the text is of type bytes"),
    ):
        parquet.write_table(pyarrow.table(columns), path)
        with pytest.raises(VHEError, match=sentence):
            TextNetwork.from_files(path, edges)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(VHEError, match="not a readable Parquet file"):
        TextNetwork.from_files(path, edges)


GRAPHML = """<?xml version="1.0" encoding="UTF-8"?>{doctype}
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="d0" for="node" attr.name="abstract" attr.type="string"/>
<graph edgedefault="undirected">
<node id="a"><data key="d0">red fox</data></node>
<node id="b"/>
{more}
<edge source="a" target="b"/>
</graph></graphml>
"""


def test_graphml_attributes_by_other_names(tmp_path: Path) -> None:
    (path,) = put(tmp_path, g_graphml=GRAPHML.format(doctype="", more="")).values()
    read = TextNetwork.from_files(path)
    assert read.texts == ("red fox", "")
    assert read.edges.tolist() == [[0, 1]]
    assert not read.directed


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "is empty"),
        ("<graphml><graph></graphml>", r"g\.graphml:1: not XML \(mismatched tag\)"),
        ("<graphml/>", "holds no node"),
        (
            GRAPHML.format(doctype='<!DOCTYPE x [<!ENTITY e "e">]>', more=""),
            r"g\.graphml:1: a DOCTYPE is not read",
        ),
        (
            GRAPHML.format(doctype="", more='<node id="a"/>'),
            r"g\.graphml:7: the id 'a' is there already, on line 5",
        ),
        (
            GRAPHML.format(doctype="", more='<edge source="a" target="q"/>'),
            r"g\.graphml:7: the edge names a vertex that is not there: 'q'",
        ),
        (GRAPHML.format(doctype="", more="<node/>"), r"g\.graphml:7: the node has no id"),
        (
            GRAPHML.format(doctype="", more="").replace("abstract", "weight"),
            "no column holds the text .* found are 'weight'",
        ),
    ],
)
def test_what_is_wrong_in_graphml_is_named(tmp_path: Path, content: str, sentence: str) -> None:
    (path,) = put(tmp_path, g_graphml=content).values()
    with pytest.raises(VHEError, match=sentence):
        TextNetwork.from_files(path)


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ({"data_txt": "", "graph_txt": "0 0\n"}, r"data\.txt is empty"),
        ({"data_txt": "x\ny\n"}, r"holds no graph\.txt"),
        ({"graph_txt": "0 0\n"}, r"holds no data\.txt"),
        (
            {"data_txt": "x\ny\n", "graph_txt": "0\t1\n\n1\t2\n"},
            r"graph\.txt:3: there is no vertex 2; data\.txt has 2 lines, so the numbers are 0 to 1",
        ),
        ({"data_txt": "x\n", "graph_txt": "0 0\n0 0 0\n"}, r"graph\.txt:2: 3 values instead"),
        ({"data_txt": "x\n", "graph_txt": "0 0\n0 a\n"}, r"graph\.txt:2: 'a' is not a vertex n"),
        ({"data_txt": "x\n", "graph_txt": "0 -1\n"}, r"graph\.txt:1: '-1' is not"),
        ({"data_txt": "x\n", "graph_txt": f"0 {10**30}\n"}, r"graph\.txt:1: '1000+' is not"),
        ({"data_txt": "x\n", "graph_txt": "", "group_txt": "1\n\n2"}, r"group\.txt:3: a label bey"),
    ],
)
def test_what_is_wrong_in_a_folder_is_named(tmp_path: Path, files: dict, sentence: str) -> None:
    put(tmp_path, **files)
    with pytest.raises(VHEError, match=sentence):
        TextNetwork.from_folder(tmp_path)


def test_blank_lines_at_the_end_of_a_folders_files(tmp_path: Path) -> None:
    put(tmp_path, data_txt="x\ny\n\n\n", graph_txt="0 1\n\n", group_txt="\n1\n")
    read = TextNetwork.from_folder(tmp_path)
    assert read.texts == ("x", "y")
    assert read.labels == (None, "1")
    assert read.notes == ("data.txt: 2 blank lines skipped", "graph.txt: 1 blank line skipped")
    put(tmp_path, graph_txt="0 2\n")  # says that the first blank line is a vertex
    read = TextNetwork.from_folder(tmp_path)
    assert read.texts == ("x", "y", "")
    assert read.labels == (None, "1", None)
    assert "group.txt: 1 line short; these vertices have no label" in read.notes


def test_paths_that_are_no_files(tmp_path: Path) -> None:
    (edges,) = put(tmp_path, e_csv=EDGES).values()
    folder = tmp_path / "folder.csv"
    folder.mkdir()
    for path, sentence in (
        (tmp_path / "missing.csv", r"missing\.csv does not exist"),
        (folder, r"folder\.csv is a folder; give a file"),
        (
            tmp_path / "v.xlsx",
            r"the extension '\.xlsx' is not known; use one of \.csv, \.tsv, \.jsonl",
        ),
        (tmp_path / "v", "no extension; use one of"),
    ):
        with pytest.raises(VHEError, match=sentence):
            TextNetwork.from_files(path, edges)
    with pytest.raises(VHEError, match="give a file of edges"):
        TextNetwork.from_files(edges)
    with pytest.raises(VHEError, match=r"leave .* out"):
        TextNetwork.from_files(tmp_path / "g.graphml", edges)
    with pytest.raises(VHEError, match="is a file; give the folder"):
        TextNetwork.from_folder(edges)
    with pytest.raises(VHEError, match="does not exist; give a folder"):
        TextNetwork.from_folder(tmp_path / "nowhere")


MEAN = np.array([[1.5, -2.25, 0.1], [1e-9, 3.0, 7.0]], dtype=np.float32)


def test_embedding_to_parquet(tmp_path: Path) -> None:
    from pyarrow import parquet

    path = tmp_path / "new" / "z.parquet"
    formats.write_embedding(path, ["a", "b"], MEAN, MEAN * 2)
    table = parquet.read_table(path)
    assert table.column_names == ["id", "mean", "std"]
    assert table["id"].to_pylist() == ["a", "b"]
    assert np.array_equal(np.array(table["mean"].to_pylist(), dtype=np.float32), MEAN)
    assert np.array_equal(np.array(table["std"].to_pylist(), dtype=np.float32), MEAN * 2)
    formats.write_embedding(path, [3, 4], MEAN[:, ::-1])
    assert parquet.read_table(path)["id"].to_pylist() == [3, 4]
    assert parquet.read_table(path)["mean"].to_pylist()[0] == MEAN[0, ::-1].tolist()


def test_embedding_to_csv(tmp_path: Path) -> None:
    import pandas

    formats.write_embedding(tmp_path / "z.csv", ['a,"b"', "b"], MEAN, MEAN * 2)
    table = pandas.read_csv(tmp_path / "z.csv", index_col="id")
    assert list(table.index) == ['a,"b"', "b"]
    assert list(table.columns) == [f"{part}_{k}" for part in ("mean", "std") for k in range(3)]
    assert np.array_equal(table.iloc[:, :3].to_numpy(dtype=np.float32), MEAN)


def test_embedding_to_npy(tmp_path: Path) -> None:
    formats.write_embedding(tmp_path / "z.npy", ["a", "b"], MEAN)
    assert np.array_equal(np.load(tmp_path / "z.npy"), MEAN)
    formats.write_embedding(tmp_path / "z.npy", ["a", "b"], MEAN, MEAN * 2)
    assert np.array_equal(np.load(tmp_path / "z.npy"), np.stack([MEAN, MEAN * 2]))


def test_embedding_to_word2vec(tmp_path: Path) -> None:
    path = tmp_path / "z.txt"
    formats.write_embedding(path, ['a "b', 7], MEAN)
    first, *lines = path.read_text().splitlines()
    assert first == "2 3"
    assert [line.split(" ")[0] for line in lines] == ['a_"b', "7"]
    values = np.array([line.split(" ")[1:] for line in lines], dtype=np.float32)
    assert np.array_equal(values, MEAN)
    for ids, std, sentence in (
        (["a b", "a_b"], None, "are the same or empty"),
        (["a", "b"], MEAN, "has no deviations"),
    ):
        with pytest.raises(VHEError, match=sentence):
            formats.write_embedding(path, ids, MEAN, std)


def test_a_failed_write_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "z.txt"
    formats.write_embedding(path, ["a", "b"], MEAN)
    before = path.read_bytes()
    with pytest.raises(VHEError, match="same or empty"):
        formats.write_embedding(path, ["", "b"], MEAN)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    (tmp_path / "z.npy").mkdir()
    with pytest.raises(VHEError, match="is a folder; name a file"):
        formats.write_embedding(tmp_path / "z.npy", ["a", "b"], MEAN)
    with pytest.raises(VHEError, match="cannot be written"):
        formats.write_embedding(path / "z.npy", ["a", "b"], MEAN)
    with pytest.raises(VHEError, match=r"extension '\.bin'"):
        formats.write_embedding(tmp_path / "z.bin", ["a", "b"], MEAN)
    with pytest.raises(VHEError, match=r"3 vertices cannot have the shape \(2, 3\)"):
        formats.write_embedding(tmp_path / "y.npy", ["a", "b", "c"], MEAN)


def test_an_id_of_any_kind_can_be_written(tmp_path: Path) -> None:
    network = TextNetwork([("a", 1), 2**80], ["x", "y"], [[0, 1]])
    for extension in ("jsonl", "parquet", "csv"):
        paths = tmp_path / f"v.{extension}", tmp_path / f"e.{extension}"
        formats.write_files(*paths, network)
    lines = (tmp_path / "v.jsonl").read_text().splitlines()
    assert json.loads(lines[0])["text"] == "x"
    assert formats.read_files(tmp_path / "v.parquet", tmp_path / "e.parquet").ids == (
        "('a', 1)",
        str(2**80),
    )
