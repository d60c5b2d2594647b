"""Tables: a network is read as it was written, and errors name the file and line."""

import datetime
import decimal
import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from vhe.data.network import TextNetwork
from vhe.data.readers.network_tables import write_tables
from vhe.data.sources import read
from vhe.errors import VHEError

VERTICES = "id,text,label\na,red fox,x\nb,brown fox,\nc,blue sky,y\n"
EDGES = "source,target\na,b\nb,c\n"
Put = Callable[..., dict[str, Path]]  # the fixtures
ReadCsv = Callable[..., TextNetwork]


@pytest.fixture
def read_csv(put: Put) -> ReadCsv:
    def read(vertices: str | bytes = VERTICES, edges: str | bytes = EDGES) -> TextNetwork:
        return TextNetwork.from_files(*put(vertices_csv=vertices, edges_csv=edges).values())

    return read


def assert_equal(one: TextNetwork, other: TextNetwork) -> None:
    assert one.ids == other.ids
    assert one.texts == other.texts
    assert one.labels == other.labels
    assert one.edges.tolist() == other.edges.tolist()


@pytest.mark.parametrize("extension", ["csv", "tsv", "jsonl", "parquet"])
def test_tables_round_trip(tmp_path: Path, network: TextNetwork, extension: str) -> None:
    paths = tmp_path / f"v.{extension}", tmp_path / f"e.{extension}"
    write_tables(*paths, network)
    assert_equal(TextNetwork.from_files(*paths), network)
    assert sorted(p.name for p in tmp_path.iterdir()) == [f"e.{extension}", f"v.{extension}"]


WORD = st.text(st.characters(exclude_characters="\0\r", exclude_categories=["Cs"]))


@settings(max_examples=40, deadline=None)
@given(
    st.dictionaries(WORD.map(str.strip).filter(bool), WORD, min_size=1, max_size=5),
    st.sampled_from(["csv", "tsv", "jsonl", "parquet"]),
)
def test_any_ids_and_texts_round_trip(texts: dict[str, str], extension: str) -> None:
    ids = list(texts)
    network = TextNetwork(ids, list(texts.values()), [[0, len(ids) - 1]], [*ids[1:], None])
    with TemporaryDirectory() as folder:
        paths = Path(folder) / f"v.{extension}", Path(folder) / f"e.{extension}"
        write_tables(*paths, network)
        read = TextNetwork.from_files(*paths)
    assert (read.ids, read.texts) == (network.ids, network.texts)
    assert read.edges.tolist() == network.edges.tolist()


@pytest.mark.parametrize("extension", ["jsonl", "parquet"])
def test_integers_stay_integers(tmp_path: Path, extension: str) -> None:
    paths = tmp_path / f"v.{extension}", tmp_path / f"e.{extension}"
    write_tables(*paths, TextNetwork([10, 7], ["x", "y"], [[1, 0]], [3, 4]))
    read = TextNetwork.from_files(*paths)
    assert read.ids == (10, 7)
    assert read.labels == (3, 4)
    assert read.notes == ()


def test_ids_of_two_types_are_compared_as_strings(put: Put) -> None:
    files = put(
        v_jsonl='{"id": 1, "text": "x"}\n{"id": 2, "text": "y"}\n',
        e_csv="source,target\n1,2\n",
        headless_tsv="2\t1\n",
    )
    read = TextNetwork.from_files(files["v_jsonl"], files["e_csv"])
    assert read.ids == (1, 2)
    assert read.edges.tolist() == [[0, 1]]
    assert read.notes == ("ids are int in v.jsonl and str in e.csv; compared as strings",)
    assert TextNetwork.from_files(files["v_jsonl"], files["headless_tsv"]).edges.tolist() == [
        [1, 0]
    ]


def test_repairs_are_noted(read_csv: ReadCsv) -> None:
    read = read_csv(
        b"\xef\xbb\xbf" + VERTICES.replace("\n", "\r\n").encode() + b"d,,\r\n",
        "Source , TARGET\na , b\nb,a\n\nc,c\n\n\n",
    )
    assert read.ids == ("a", "b", "c", "d")
    assert read.labels == ("x", None, "y", None)
    assert read.links.tolist() == [[0, 1]]
    assert read.notes == (
        "edges.csv: 3 blank lines skipped",
        "1 duplicate edge (in either direction) ignored in training",
        "1 self-loop ignored in training",
        "1 vertex without text",
    )


def test_columns_with_synonymous_names(read_csv: ReadCsv) -> None:
    read = read_csv(
        "Title,KEY,Abstract,Subject\nT,k1,long,s\nU,k2,longer,t\n",
        "weight,Cited,citing\n3,k1,k2\n",
    )
    assert read.ids == ("k1", "k2")
    assert read.texts == ("T\nlong", "U\nlonger")
    assert read.labels == ("s", "t")
    assert read.edges.tolist() == [[1, 0]]
    assert read.edge_weights.tolist() == [3.0]
    assert read.notes == (
        "vertices.csv: id: KEY; text: Title + Abstract; label: Subject",
        "edges.csv: source: citing; target: Cited",
        "edges.csv: weights of edges from 3 to 3",
    )


def test_edges_without_a_header(read_csv: ReadCsv) -> None:
    assert read_csv(edges="a,b\nb,c\n").edges.tolist() == [[0, 1], [1, 2]]
    read = read_csv("id,text\nu,x\nv,y\n", "u,v\nv,u\n")
    assert read.edges.tolist() == [[0, 1], [1, 0]]
    assert "read as an edge" in read.notes[0]
    with pytest.raises(VHEError, match=r"edges\.csv:1: no column for the source"):
        read_csv(edges="a,zzz\nb,c\n")


def test_a_network_without_edges(tmp_path: Path, put: Put, read_csv: ReadCsv) -> None:
    assert len(read_csv(edges="source,target\n").links) == 0
    paths = put(v_jsonl='{"id": 1, "text": "x"}\n', e_jsonl="")
    assert len(TextNetwork.from_files(*paths.values()).links) == 0
    put(data_txt="x\n", graph_txt="")
    assert len(TextNetwork.from_folder(tmp_path).edges) == 0


def test_a_long_text_is_read(read_csv: ReadCsv) -> None:
    read = read_csv(f"id,text\na,{'word ' * 100_000}\n", "source,target\n")
    assert len(read.texts[0]) == 500_000


def test_tsv_with_plain_quotation_marks(put: Put) -> None:
    paths = put(v_tsv='id\ttext\na\t"Hello" he said\nb\t"open\n', e_tsv="a\tb\n")
    read = TextNetwork.from_files(*paths.values())
    assert read.texts == ('"Hello" he said', '"open')
    assert read.notes == ("v.tsv: quotation marks read as ordinary characters",)


def test_unpaired_surrogates_are_replaced(put: Put) -> None:
    paths = put(v_jsonl=r'{"id": "a", "text": "\ud83d\ude00 \ud83d"}', e_jsonl="")
    assert TextNetwork.from_files(*paths.values()).texts == ("\U0001f600 \ufffd",)


@pytest.mark.parametrize(
    ("vertices", "edges", "sentence"),
    [
        ("", EDGES, r"vertices\.csv is empty"),
        ("id,text\n", EDGES, r"vertices\.csv contains no vertices"),
        (VERTICES, "", r"edges\.csv is empty"),
        ("id,words\na,b\n", EDGES, r"vertices\.csv:1: no column for the text; .*'id', 'words'"),
        ("id,text\na,x\nb\n", EDGES, r"vertices\.csv:3: 1 cell, but the first row has 2"),
        ("id,text\na,x, y\n", EDGES, r"vertices\.csv:2: 3 cells, but"),
        ("id,text\na,x\nb,y\na,z\n", EDGES, r":4: duplicate id 'a' \(first at .*csv:2\)"),
        ("id,text\na,x\n,y\n", EDGES, r"vertices\.csv:3: the id is empty"),
        ("id,ID,text\na,a,x\n", EDGES, r"vertices\.csv:1: duplicate column 'id'"),
        ('id,text\na,"x\ny', EDGES, r"vertices\.csv:2: the row cannot be parsed"),
        (
            b"id,text\na,sn\xc3\xb6\nb,caf\xe9\n",
            EDGES,
            r"vertices\.csv:3: byte 6 of the line, 0xe9, is not UTF-8",
        ),
        ("id,text\na,x\n".encode("utf-16")[:-1], EDGES, r"vertices\.csv is not UTF-16"),
        (b"id,text\na,x\0y\n", EDGES, r"vertices\.csv:2: byte 4 of the line is NUL"),
        (VERTICES, EDGES + "c,bb\n", r"edges\.csv:4: unknown vertex id 'bb'"),
        (
            "id,text\nmammal,x\nbird,y\n",
            "source,target\nbird,mamal\n",
            r"edges\.csv:2: unknown vertex id 'mamal' \(did you mean 'mammal'\?\)",
        ),
        (VERTICES, EDGES + "a,\n", r"edges\.csv:4: the target is empty"),
        # Quoted texts with line ends do not shift the line numbers.
        (
            'id,text\na,"1\n2\n3"\n\nb,"4\n5"\na,x\n',
            EDGES,
            r"vertices\.csv:8: duplicate id 'a'.*csv:2",
        ),
    ],
)
def test_csv_errors_name_the_line(
    read_csv: ReadCsv, vertices: str | bytes, edges: str, sentence: str
) -> None:
    with pytest.raises(VHEError, match=sentence) as caught:
        read_csv(vertices, edges)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ('{"id": 1, "text": ', r"v\.jsonl:2: not JSON \(Expecting value, column 19\)"),
        ("[1, 2]", r"v\.jsonl:2: a list instead of an object"),
        ("[" * 200_000, r"v\.jsonl:2: JSON that cannot be read"),
        ('{"id": 1}', r"v\.jsonl:2: no key 'text' \(keys found: 'id'\)"),
        ('{"id": null, "text": "x"}', r"v\.jsonl:2: the id is empty"),
        (
            '{"id": 1.5, "text": "x"}',
            r"v\.jsonl:2: the id is of type float; give a string or an int",
        ),
        ('{"id": true, "text": "x"}', r"v\.jsonl:2: the id is of type bool"),
        ('{"id": 1, "text": 5}', r"v\.jsonl:2: the text is of type int"),
        ('{"id": 1, "text": "x", "label": [1]}', r"v\.jsonl:2: the label \[1\] is of type list"),
    ],
)
def test_jsonl_errors_name_the_line(put: Put, line: str, sentence: str) -> None:
    paths = put(v_jsonl='{"id": 0, "text": "x"}\n' + line + "\n", e_jsonl="")
    with pytest.raises(VHEError, match=sentence):
        TextNetwork.from_files(*paths.values())


def test_parquet_errors_name_the_row(tmp_path: Path, put: Put) -> None:
    edges = put(e_jsonl="")["e_jsonl"]
    path = tmp_path / "v.parquet"
    for content, sentence in ((b"", "is empty"), (b"PAR1 no PAR1", "not a readable Parquet file")):
        path.write_bytes(content)
        with pytest.raises(VHEError, match=sentence):
            TextNetwork.from_files(path, edges)
    for columns, sentence in (
        ({"id": [1], "words": ["x"]}, "no column for the text; .* found: 'id', 'words'"),
        ({"id": [1, None], "text": ["x", "y"]}, r"v\.parquet \(row 2\): the id is empty"),
        ({"id": [1, 1], "text": ["x", "y"]}, r"\(row 2\): duplicate id 1 .*\(row 1\)"),
        ({"id": [1], "text": [b"x"]}, r"\(row 1\): the text is of type bytes"),
    ):
        parquet.write_table(pyarrow.table(columns), path)
        with pytest.raises(VHEError, match=sentence):
            TextNetwork.from_files(path, edges)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(VHEError, match="not a readable Parquet file"):
        TextNetwork.from_files(path, edges)


@pytest.mark.parametrize(
    ("label", "kind"),
    [
        (datetime.date(2019, 12, 8), "date"),
        (decimal.Decimal("1.50"), "Decimal"),
        (datetime.timedelta(days=1), "timedelta"),
    ],
)
def test_labels_that_cannot_be_saved_are_refused(
    tmp_path: Path, put: Put, label: object, kind: str
) -> None:
    (edges,) = put(e_jsonl="").values()
    path = tmp_path / "v.parquet"
    parquet.write_table(
        pyarrow.table({"id": [1, 2], "text": ["x"] * 2, "label": [None, label]}), path
    )
    with pytest.raises(
        VHEError, match=rf"v\.parquet \(row 2\): the label .* is of type {kind}; give"
    ):
        TextNetwork.from_files(path, edges)


def test_unused_nested_parquet_columns_are_ignored(tmp_path: Path, put: Put) -> None:
    (edges,) = put(e_jsonl="").values()
    columns = {"id": [1, 2], "text": ["x", "y"], "authors": [[{"name": "A"}], []]}
    parquet.write_table(pyarrow.table(columns), tmp_path / "v.parquet")
    assert TextNetwork.from_files(tmp_path / "v.parquet", edges).texts == ("x", "y")


def test_duplicate_keys_in_jsonl_are_noted(put: Put) -> None:
    lines = '{"id": 1, "text": "x"}\n{"id": 2, "text": "y", "text": "z"}\n'
    read = TextNetwork.from_files(*put(v_jsonl=lines, e_jsonl="").values())
    assert read.texts == ("x", "z")
    assert read.notes == ("v.jsonl:2: 1 duplicate key (first 'text'); the last value is used",)


def test_invalid_paths(tmp_path: Path, put: Put) -> None:
    (edges,) = put(e_csv=EDGES).values()
    folder = tmp_path / "folder.csv"
    folder.mkdir()
    for path, sentence in (
        (tmp_path / "missing.csv", r"missing\.csv does not exist"),
        (folder, r"folder\.csv is a folder; give a file"),
        (
            tmp_path / "v.docx",
            r"unknown extension '\.docx'; use one of \.csv, \.tsv, \.jsonl",
        ),
        (tmp_path / "v", "no extension; use one of"),
    ):
        if path.name in ("v.docx", "v"):
            path.write_text("id,text\n")
        with pytest.raises(VHEError, match=sentence):
            TextNetwork.from_files(path, edges)
    with pytest.raises(VHEError, match="give a file of edges"):
        TextNetwork.from_files(edges)
    with pytest.raises(VHEError, match=r"contains the edges; omit .*e\.csv"):
        TextNetwork.from_files(tmp_path / "g.graphml", edges)
    with pytest.raises(VHEError, match="is a file; give the folder"):
        TextNetwork.from_folder(edges)
    with pytest.raises(VHEError, match="does not exist; give a folder"):
        TextNetwork.from_folder(tmp_path / "nowhere")


def test_ids_of_any_type_can_be_written(tmp_path: Path) -> None:
    network = TextNetwork([("a", 1), 2**80], ["x", "y"], [[0, 1]])
    for extension in ("jsonl", "parquet", "csv"):
        paths = tmp_path / f"v.{extension}", tmp_path / f"e.{extension}"
        write_tables(*paths, network)
    lines = (tmp_path / "v.jsonl").read_text().splitlines()
    assert json.loads(lines[0])["text"] == "x"
    assert TextNetwork.from_files(tmp_path / "v.parquet", tmp_path / "e.parquet").ids == (
        "('a', 1)",
        str(2**80),
    )


# --- any column names, references, numeric ids, unknown and duplicate ids


def test_columns_are_chosen_by_the_user(put: Put) -> None:
    files = put(
        v_csv="Paper No,Heading,Note,Kind,Year\n1,Red,fox,x,2019\n2,Blue,,y,2020\n",
        e_csv="a,b\n1,2\n",
    )
    read_from = {"id": "paper_no", "text": "Heading, Note", "label": "Kind"}
    network = read(files["v_csv"], files["e_csv"], **read_from, source="a", target="b")
    assert network.texts == ("Red\nfox", "Blue")
    assert network.labels == ("x", "y")
    assert network.edges.tolist() == [[0, 1]]
    assert network.notes == (
        "v.csv: id: Paper No; text: Heading + Note; label: Kind; ignored: Year",
        "e.csv: source: a; target: b",
    )


def test_many_ignored_columns_are_counted(put: Put) -> None:
    extra = ",".join(f"c{k}" for k in range(31))
    path = put(z_csv=f"Key,Title,Abstract Note,Cites,{extra}\nk,T,A,,{',' * 30}\n")["z_csv"]
    assert read(path).notes == (
        "z.csv: id: Key; text: Title + Abstract Note; references: Cites; ignored: 31 columns",
    )


@pytest.mark.parametrize(
    "cell", ["b;c", "b | c", "b c", '["b", "c"]', "['b', 'c']", "b;c; ", '"b,c"', '"b\nc"']
)
def test_references_separated_in_any_way(put: Put, cell: str) -> None:
    if cell.startswith("["):
        cell = '"' + cell.replace('"', '""') + '"'
    path = put(v_csv=f"id,text,cites\na,x,{cell}\nb,y,\nc,z,b\n")["v_csv"]
    network = read(path)
    assert network.edges.tolist() == [[0, 1], [0, 2], [2, 1]]
    assert network.directed


def test_references_with_spaces_in_ids(put: Put) -> None:
    path = put(v_csv="name,text,links\nRed fox,x,Blue sky\nBlue sky,y,Red fox; Blue sky\n")["v_csv"]
    assert read(path).edges.tolist() == [[0, 1], [1, 0], [1, 1]]


def test_references_in_parquet_and_json(tmp_path: Path) -> None:
    columns = {"id": [1, 2, 3], "text": ["x", "y", "z"], "references": [[2, 3], [], None]}
    parquet.write_table(pyarrow.table(columns), tmp_path / "v.parquet")
    assert read(tmp_path / "v.parquet").edges.tolist() == [[0, 1], [0, 2]]
    rows = [{"id": 1, "text": "x", "references": [{"id": 2}, "3", 2.0]}, {"id": 2, "text": "y"}]
    (tmp_path / "v.json").write_text(json.dumps([*rows, {"id": 3, "text": "z"}]))
    assert read(tmp_path / "v.json").edges.tolist() == [[0, 1], [0, 2], [0, 1]]
    (tmp_path / "v.json").write_text(json.dumps([{"id": 1, "text": "x", "references": [[1]]}]))
    with pytest.raises(VHEError, match=r"v\.json \(row 1\): a reference is of type list"):
        read(tmp_path / "v.json")


def test_numeric_ids_are_reconciled(put: Put) -> None:
    files = put(v_csv="id,text\n1,x\n2,y\n", e_csv="source,target\n1.0,2.0\n", f_csv="u,v\n1.5,2\n")
    network = read(files["v_csv"], files["e_csv"])
    assert network.ids == ("1", "2")
    assert network.edges.tolist() == [[0, 1]]
    assert network.notes == ("e.csv: numeric ids such as 1.0 read as 1",)
    with pytest.raises(VHEError, match=r"f\.csv:2: unknown vertex id '1\.5'"):
        read(files["v_csv"], files["f_csv"])
    versions = put(v_csv="id,text\n1.0,x\nv2,y\n", e_csv="source,target\n1.0,v2\n")
    assert read(*versions.values()).ids == ("1.0", "v2")


def test_unknown_ids(put: Put) -> None:
    files = put(v_csv="id,text\na,x\nb,y\n", e_csv="source,target\na,b\na,c\nd,b\na,c\n")
    paths = list(files.values())
    with pytest.raises(VHEError, match=r"e\.csv:3: unknown vertex id 'c'; .*--on-unknown skip"):
        read(*paths)
    skipped = read(*paths, on_unknown="skip")
    assert skipped.edges.tolist() == [[0, 1]]
    assert skipped.notes == (
        f"3 edges with unknown ids skipped (first: 'c' at {paths[1]}:3, 'd' at {paths[1]}:4)",
    )
    created = read(*paths, on_unknown="create")
    assert created.ids == ("a", "b", "c", "d")
    assert created.texts == ("x", "y", "", "")
    assert created.edges.tolist() == [[0, 1], [0, 2], [3, 1], [0, 2]]
    assert created.notes[0].startswith("2 vertices without text created for 3 edges")


def test_duplicate_ids(put: Put) -> None:
    files = put(
        v_csv="id,text,label\na,x,\nb,y,l\na,z,k\na,x,\na,w,\na,v,\n", e_csv="source,target\na,b\n"
    )
    paths = list(files.values())
    with pytest.raises(VHEError, match=r"v\.csv:4: duplicate id 'a' .*--on-duplicate first"):
        read(*paths)
    first = read(*paths, on_duplicate="first")
    assert first.texts == ("x", "y")
    assert first.labels == (None, "l")
    assert first.notes == (
        f"4 duplicate ids ignored (first: 'a' at {paths[0]}:4, 'a' at {paths[0]}:5, "
        f"'a' at {paths[0]}:6)",
    )
    merged = read(*paths, on_duplicate="merge")
    assert merged.texts == ("x\nz\nw\nv", "y")
    assert merged.labels == ("k", "l")


def test_labels_from_tags(put: Put) -> None:
    path = put(z_csv='key,title,Manual Tags,cites\na,x,"cats; pets",\nb,y,pets,\nc,z,,\n')["z_csv"]
    assert read(path).labels == ("pets", "pets", None)


@pytest.mark.parametrize("name", ["e_edgelist", "e_edges", "e_txt"])
def test_edge_lists(put: Put, name: str) -> None:
    files = put(**{"v_csv": "id,text\na,x\nb b,y\nc,z\n", name: "# comment\na\tb b\t3\n\na c {}\n"})
    network = read(files["v_csv"], files[name])
    assert network.edges.tolist() == [[0, 1], [0, 2]]
    files = put(**{"v_csv": "id,text\na,x\n", name: "a\n"})
    with pytest.raises(VHEError, match=r":1: one value instead of two vertex ids"):
        read(files["v_csv"], files[name])


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("name", ["v_csv", "v_tsv", "v_txt"])
def test_the_delimiter_is_detected(put: Put, name: str, delimiter: str) -> None:
    content = 'id,text,cites\na,"one, two; three\tfour",b\nb,y,a\n'
    cells = [row.replace(",", delimiter) for row in content.splitlines()]
    cells[1] = delimiter.join(["a", '"one, two; three\tfour"', "b"])
    network = read(put(**{name: "\n".join(cells) + "\n"})[name])
    assert network.texts == ("one, two; three\tfour", "y")
    assert network.edges.tolist() == [[0, 1], [1, 0]]
