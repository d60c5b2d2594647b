"""CANE's format: a network is read as it was written, and errors name the file and line."""

from collections.abc import Callable
from pathlib import Path

import pytest

from vhe.data.network import TextNetwork
from vhe.data.readers.cane import read_cane
from vhe.errors import VHEError

Put = Callable[..., dict[str, Path]]  # the fixture


def test_a_cane_folder(tmp_path: Path) -> None:
    folder = tmp_path / "net"
    folder.mkdir()
    (folder / "data.txt").write_text("cats purr\n\ndogs, bark\n")
    (folder / "graph.txt").write_text("0\t1\n2 0\n")
    (folder / "group.txt").write_text("animal\n\n7\n")
    read = TextNetwork.from_folder(folder)
    assert read.ids == (0, 1, 2)
    assert read.texts == ("cats purr", "", "dogs, bark")
    assert (read.labels, read.name) == (("animal", None, "7"), "net")
    assert read.edges.tolist() == [[0, 1], [2, 0]]
    (folder / "group.txt").unlink()
    assert TextNetwork.from_folder(folder).labels is None


def test_invalid_bytes_of_published_files_are_replaced(put: Put) -> None:
    data, graph = put(data_txt=b"caf\xe9\nx\0y\n", graph_txt="0 1\n").values()
    with pytest.raises(VHEError, match=r"data\.txt:1: byte 4 of the line, 0xe9, is not UTF-8"):
        read_cane(data, graph, name="n")
    read = read_cane(data, graph, name="n", replace_invalid=True)
    assert read.texts == ["caf\ufffd", "x\0y"]
    assert read.notes == ["data.txt: bytes that are not UTF-8 replaced"]


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ({"data_txt": "", "graph_txt": "0 0\n"}, r"data\.txt is empty"),
        ({"data_txt": "x\ny\n"}, r"contains no graph\.txt"),
        ({"graph_txt": "0 0\n"}, r"contains no data\.txt"),
        (
            {"data_txt": "x\ny\n", "graph_txt": "0\t1\n\n1\t2\n"},
            r"graph\.txt:3: unknown vertex 2; data\.txt has 2 lines, so vertices .* from 0 to 1",
        ),
        ({"data_txt": "x\n", "graph_txt": "0 0\n0 0 0\n"}, r"graph\.txt:2: 3 values instead"),
        ({"data_txt": "x\n", "graph_txt": "0 0\n0 a\n"}, r"graph\.txt:2: 'a' is not a vertex n"),
        ({"data_txt": "x\n", "graph_txt": "0 -1\n"}, r"graph\.txt:1: '-1' is not"),
        ({"data_txt": "x\n", "graph_txt": f"0 {10**30}\n"}, r"graph\.txt:1: '1000+' is not"),
        ({"data_txt": "x\n", "graph_txt": "", "group_txt": "1\n\n2"}, r"group\.txt:3: more labels"),
    ],
)
def test_cane_errors_name_the_line(tmp_path: Path, put: Put, files: dict, sentence: str) -> None:
    put(**files)
    with pytest.raises(VHEError, match=sentence):
        TextNetwork.from_folder(tmp_path)


def test_blank_lines_at_the_end_of_cane_files(tmp_path: Path, put: Put) -> None:
    put(data_txt="x\ny\n\n\n", graph_txt="0 1\n\n", group_txt="\n1\n")
    read = TextNetwork.from_folder(tmp_path)
    assert read.texts == ("x", "y")
    assert read.labels == (None, "1")
    assert read.notes == ("data.txt: 2 blank lines skipped", "graph.txt: 1 blank line skipped")
    put(graph_txt="0 2\n")  # refers to the first blank line
    read = TextNetwork.from_folder(tmp_path)
    assert read.texts == ("x", "y", "")
    assert read.labels == (None, "1", None)
    assert "group.txt: 1 line missing; these vertices have no label" in read.notes
