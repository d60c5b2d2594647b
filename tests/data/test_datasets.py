"""Named datasets: downloads are verified, cached once, and discarded if damaged."""

import hashlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from vhe.data import datasets
from vhe.data.datasets import Dataset
from vhe.data.network import TextNetwork
from vhe.data.readers.graphml import write_graphml
from vhe.errors import VHEError

DATA, GRAPH, GROUP = b"red fox\nbrown fox\nblue sky\n", b"0\t1\n1\t0\n2\t2\n", b"x\n\ny"


def blob(content: bytes) -> str:
    return "git:" + hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class Mirror:
    """A web server with the three files, which can serve damaged ones."""

    def __init__(self) -> None:
        self.files = {
            "/Tiny/data.txt": DATA,
            "/Tiny/graph.txt": GRAPH,
            "/Tiny/group.txt": GROUP,
        }
        self.requests: list[str] = []
        self.announce_more = 0
        mirror = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                mirror.requests.append(self.path)
                content = mirror.files.get(self.path)
                if content is None:
                    self.send_error(404)
                    return
                self.send_response(200)
                self.send_header("Content-Length", str(len(content) + mirror.announce_more))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Mirror]:
    tiny = Dataset(
        "a tiny network",
        "Tiny",
        {
            "data.txt": blob(DATA),
            "graph.txt": hashlib.sha256(GRAPH).hexdigest(),
            "group.txt": hashlib.sha256(GROUP).hexdigest(),
        },
    )
    monkeypatch.setattr(datasets, "DATASETS", {**datasets.DATASETS, "tiny": tiny})
    monkeypatch.setenv("VHE_CACHE", str(tmp_path / "cache"))
    for variable in ("VHE_DATA_DIR", "VHE_DATA_URL", "http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(variable, raising=False)
    mirror = Mirror()
    thread = threading.Thread(target=mirror.server.serve_forever, args=(0.01,))
    thread.start()
    yield mirror
    mirror.server.shutdown()
    mirror.server.server_close()
    thread.join()


def files_in(tmp_path: Path) -> list[str]:
    return sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file())


def test_a_download_is_cached(mirror: Mirror, tmp_path: Path) -> None:
    network = datasets.load("tiny", base_url=mirror.url + "/")
    assert repr(network) == "TextNetwork('tiny': 3 vertices, 1 link, 2 labels)"
    assert network.labels == ("x", None, "y")
    assert files_in(tmp_path) == [f"cache/tiny/{f}.txt" for f in ("data", "graph", "group")]
    assert len(mirror.requests) == 3
    datasets.load("tiny", base_url=mirror.url)
    assert len(mirror.requests) == 3


def test_the_url_can_be_set_in_the_environment(
    mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VHE_DATA_URL", mirror.url)
    assert len(datasets.load("tiny")) == 3


def test_a_damaged_download_is_discarded(mirror: Mirror, tmp_path: Path) -> None:
    mirror.files["/Tiny/graph.txt"] = GRAPH[:-2]
    with pytest.raises(
        VHEError, match=r"tiny/graph\.txt was downloaded .* checksum is wrong and it was discarded"
    ):
        datasets.load("tiny", base_url=mirror.url)
    assert files_in(tmp_path) == ["cache/tiny/data.txt"]


def test_a_partial_download_is_discarded(mirror: Mirror, tmp_path: Path) -> None:
    mirror.announce_more = 10
    with pytest.raises(VHEError, match=r"tiny/data\.txt could not be downloaded .*VHE_DATA_DIR"):
        datasets.load("tiny", base_url=mirror.url)
    assert files_in(tmp_path) == []


def test_a_damaged_file_in_the_cache_is_downloaded_again(mirror: Mirror, tmp_path: Path) -> None:
    datasets.load("tiny", base_url=mirror.url)
    (tmp_path / "cache/tiny/data.txt").write_bytes(b"something else\n")
    assert datasets.load("tiny", base_url=mirror.url).texts[0] == "red fox"
    assert mirror.requests[3:] == ["/Tiny/data.txt"]
    assert (tmp_path / "cache/tiny/data.txt").read_bytes() == DATA


def test_a_missing_file_is_named(mirror: Mirror) -> None:
    del mirror.files["/Tiny/group.txt"]
    with pytest.raises(VHEError, match=r"tiny/group\.txt could not be downloaded .*Not Found"):
        datasets.load("tiny", base_url=mirror.url)


def test_the_error_without_a_connection_explains_offline_use(mirror: Mirror) -> None:
    mirror.server.shutdown()
    mirror.server.server_close()
    with pytest.raises(VHEError) as caught:
        datasets.load("tiny", base_url=mirror.url)
    sentence = str(caught.value)
    assert "put the file at tiny/data.txt in a folder and set VHE_DATA_DIR to the folder" in (
        sentence
    )
    assert mirror.url in sentence
    assert "\n" not in sentence
    with pytest.raises(VHEError, match="could not be downloaded"):
        datasets.load("tiny", base_url="nonsense")


@pytest.mark.parametrize("folder", ["tiny", "Tiny"])
def test_a_local_folder_takes_precedence_and_is_verified(
    mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    local = tmp_path / "local" / folder
    local.mkdir(parents=True)
    (local / "data.txt").write_bytes(DATA)
    (local / "graph.txt").write_bytes(GRAPH)
    monkeypatch.setenv("VHE_DATA_DIR", str(tmp_path / "local"))
    datasets.load("tiny", base_url=mirror.url)
    assert mirror.requests == ["/Tiny/group.txt"]  # the file missing in the folder
    (local / "graph.txt").write_bytes(GRAPH + b"0\t2\n")
    with pytest.raises(VHEError, match=r"graph\.txt is not the published file"):
        datasets.load("tiny", base_url=mirror.url)


def test_load_reads_folders_and_graphml(tmp_path: Path) -> None:
    (tmp_path / "data.txt").write_bytes(DATA)
    (tmp_path / "graph.txt").write_bytes(GRAPH)
    network = datasets.load(tmp_path)
    assert len(network) == 3
    write_graphml(tmp_path / "n.graphml", network)
    assert datasets.load(str(tmp_path / "n.graphml")).texts == network.texts


def test_an_unknown_source_is_refused() -> None:
    with pytest.raises(VHEError, match=r"'Coras' is neither .*'cora'.* seealso, cora, hepth"):
        datasets.load("Coras")
    with pytest.raises(VHEError, match="'nothing' is neither"):
        datasets.describe("nothing")
    with pytest.raises(VHEError, match=r"unknown extension '\.py'; use one of"):
        datasets.load(__file__)


def test_every_dataset_has_a_description() -> None:
    assert tuple(datasets.DATASETS) == ("seealso", "cora", "hepth", "zhihu", "debian")
    assert all(map(datasets.describe, datasets.DATASETS))


def test_reading_imports_no_heavy_package() -> None:
    script = "import sys, vhe.data.datasets; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    heavy = {"torch", "pandas", "sklearn", "networkx", "scipy", "pyarrow"}
    assert not heavy & set(done.stdout.split())


def test_statistics() -> None:
    network = TextNetwork(
        range(4), ["a b c", "a", "", "a b"], [[0, 1], [1, 0], [2, 2]], ["x", None, "x", "y"]
    )
    assert datasets.statistics(network) == {
        "name": "network",
        "vertices": 4,
        "edge_lines": 3,
        "loops": 1,
        "repeated": 1,
        "links": 1,
        "isolated": 2,
        "density": pytest.approx(1 / 6),
        "words_mean": 1.5,
        "words_median": 1.5,
        "words_p90": pytest.approx(2.7),
        "words_max": 3,
        "labels": 2,
        "labelled": 3,
    }
    assert datasets.statistics(TextNetwork(["a"], ["x"], []))["density"] == 0


published = pytest.mark.skipif(not os.environ.get("VHE_DATA_DIR"), reason="VHE_DATA_DIR is not set")


@published
def test_cora_as_published() -> None:
    network = datasets.load("cora")
    found = datasets.statistics(network)
    assert [found[k] for k in ("vertices", "edge_lines", "loops", "repeated", "links")] == [
        2277,
        5214,
        230,
        213,
        4771,
    ]
    assert (found["labels"], found["labelled"], found["words_max"]) == (7, 2211, 410)
    assert repr(network) == "TextNetwork('cora': 2,277 vertices, 4,771 links, 7 labels)"
    assert network.notes == (
        "213 duplicate edges (in either direction) ignored in training",
        "230 self-loops ignored in training",
    )


@published
def test_hepth_as_published() -> None:
    found = datasets.statistics(datasets.load("hepth"))
    assert [found[k] for k in ("vertices", "edge_lines", "links", "isolated", "words_max")] == [
        1038,
        1990,
        1974,
        0,
        147,
    ]
