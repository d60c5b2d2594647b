"""Files of any packing and encoding: read, or refused by one sentence that names the file."""

import gzip
import io
import sys
import zipfile
from pathlib import Path

import pyarrow
import pytest

from vhe.data.network import TextNetwork
from vhe.data.readers import inputs
from vhe.data.readers.inputs import Input
from vhe.data.sources import read
from vhe.errors import VHEError

VERTICES = "id;text\na;Gänse\nb;Füchse\n"
EDGES = "source,target\na,b\n"


def zstd(raw: bytes) -> bytes:
    return bytes(pyarrow.compress(raw, "zstd", asbytes=True))


@pytest.fixture
def edges(tmp_path: Path) -> Path:
    (tmp_path / "e.csv").write_text(EDGES)
    return tmp_path / "e.csv"


@pytest.mark.parametrize(
    ("encoding", "note"),
    [
        ("utf-8", ()),
        ("utf-8-sig", ()),
        ("utf-16", ()),
        ("latin-1", ("v.csv: not UTF-8, read as Windows-1252 (Latin-1)",)),
    ],
)
def test_encodings_are_recognised(
    tmp_path: Path, edges: Path, encoding: str, note: tuple[str, ...]
) -> None:
    (tmp_path / "v.csv").write_bytes(VERTICES.replace("\n", "\r\n").encode(encoding))
    network = read(tmp_path / "v.csv", edges)
    assert network.texts == ("Gänse", "Füchse")
    assert network.notes == (*note, "v.csv: delimiter semicolon")


@pytest.mark.parametrize(("extension", "pack"), [("gz", gzip.compress), ("zst", zstd)])
def test_compressed_files(tmp_path: Path, edges: Path, extension: str, pack: object) -> None:
    assert callable(pack)
    path = tmp_path / f"papers.csv.{extension}"
    path.write_bytes(pack(VERTICES.encode()))
    network = read(path, edges)
    assert network.texts == ("Gänse", "Füchse")
    assert network.name == "papers"
    packed = pack(VERTICES.encode() * 1000)
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(VHEError, match=rf"papers\.csv\.{extension} (is damaged|cannot be read)"):
        read(path, edges)


@pytest.mark.parametrize("pack", [gzip.compress, zstd])
def test_archives_that_unpack_to_too_much_are_refused(
    tmp_path: Path, edges: Path, pack: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert callable(pack)
    path = tmp_path / "v.csv.gz"
    path.write_bytes(pack(b"id,text\n" + b"a" * 2**22))
    monkeypatch.setattr(inputs, "SMALL", 2**20)
    with pytest.raises(VHEError, match=r"v\.csv\.gz unpacks to more than 1,0\d\d,\d\d\d bytes"):
        read(path, edges)
    monkeypatch.setattr(inputs, "MAX_RATIO", 10**9)
    monkeypatch.setattr(inputs, "physical_memory", lambda: 2**21)
    with pytest.raises(VHEError, match="unpacks to more than 2,097,152 bytes"):
        read(path, edges)


def test_spreadsheets_that_unpack_to_too_much_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "v.xlsx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", b" " * 2**27)
    with pytest.raises(VHEError, match=r"v\.xlsx unpacks to 134,217,728 bytes"):
        read(path)


def test_the_position_of_an_invalid_byte_is_reported_across_chunks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "v.csv"
    monkeypatch.setattr(inputs, "CHUNK", 4)
    path.write_bytes("id,text\nö,x\n".encode() + b"bcdefghi,\xff\n")
    with pytest.raises(VHEError, match=r"v\.csv:3: byte 10 of the line, 0xff, is not UTF-8"):
        _ = Input(path).encoding
    path.write_bytes(b"id,text\na,x\nbcdefghi,\0\n")
    with pytest.raises(VHEError, match=r"v\.csv:3: byte 10 of the line is NUL"):
        _ = Input(path).encoding
    path.write_bytes("id,text\na,größer\n".encode())
    assert Input(path).encoding == "utf-8"


def from_stdin(monkeypatch: pytest.MonkeyPatch, raw: bytes) -> TextNetwork:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))
    return read("-")


@pytest.mark.parametrize(
    "content",
    [
        "id\ttext\tcites\na\tred fox\tb\nb\tbrown fox\t\n",
        '{"id": "a", "text": "red fox", "cites": ["b"]}\n{"id": "b", "text": "brown fox"}\n',
        '[{"id": "a", "text": "red fox", "cites": ["b"]}, {"id": "b", "text": "brown fox"}]',
        "@misc{a, title = {red fox}, cites = {b}}\n@misc{b, title = {brown fox}}",
        "TY  - JOUR\nID  - a\nTI  - red fox\nCR  - b\nER  - \n"
        "TY  - JOUR\nID  - b\nTI  - brown fox\nER  - \n",
        '<graphml><key id="d" for="node" attr.name="text" attr.type="string"/><graph '
        'edgedefault="directed"><node id="a"><data key="d">red fox</data></node><node id="b">'
        '<data key="d">brown fox</data></node><edge source="a" target="b"/></graph></graphml>',
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_standard_input(monkeypatch: pytest.MonkeyPatch, content: str, packed: bool) -> None:
    raw = gzip.compress(content.encode()) if packed else content.encode()
    network = from_stdin(monkeypatch, raw)
    assert network.ids == ("a", "b")
    assert network.texts == ("red fox", "brown fox")
    assert network.edges.tolist() == [[0, 1]]


def test_errors_in_standard_input_name_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(VHEError, match="<stdin>:3: 3 cells, but the first row has 2"):
        from_stdin(monkeypatch, b"id,text\na,x\nb,y,z\n")
    with pytest.raises(VHEError, match="<stdin> is empty"):
        from_stdin(monkeypatch, b"")


def test_documents_that_are_not_read_say_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "paper.pdf").write_bytes(b"%PDF-1.4\n")
    with pytest.raises(VHEError, match=r"a \.pdf file, which vhe does not read; convert"):
        read(tmp_path / "paper.pdf")
