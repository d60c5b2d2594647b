"""Inputs that are hard to read: long, deep, or made to unfold. Each is read, or refused by one
sentence, in time and memory that its size bounds.

    python hard.py FOLDER MEGABYTES
"""

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import networkx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from forked import measured

from vhe.data.network import TextNetwork

LOADED = networkx
EDGES = "source,target\na,b\n"
GRAPHML = '<graphml><key id="t" for="node" attr.name="text" attr.type="string"/>{}</graphml>'
LAUGHS = "".join(f'<!ENTITY l{k + 1} "{f"&l{k};" * 10}">' for k in range(12))
SECONDS_A_MEGABYTE, MEGABYTES_A_MEGABYTE = 0.5, 40
Case = tuple[str, dict[str, str | bytes], str]  # its name, its files, what has to come of it


def cases(size: int) -> Iterator[Case]:
    long = "a" * size
    words = "word " * (size // 5)

    def csv(name: str, vertices: str | bytes, edges: str = EDGES, wanted: str = "refused") -> Case:
        return f"CSV, {name}", {"v.csv": vertices, "e.csv": edges}, wanted

    def jsonl(name: str, line: str, wanted: str = "refused") -> Case:
        other = '{"id": "b", "text": ""}\n'
        edges = '{"source": "a", "target": "b"}\n'
        return f"JSONL, {name}", {"v.jsonl": line + "\n" + other, "e.jsonl": edges}, wanted

    def cane(name: str, data: str, graph: str = "0 1\n", wanted: str = "refused") -> Case:
        return f"CANE, {name}", {"data.txt": data, "graph.txt": graph}, wanted

    def graphml(name: str, graph: str, wanted: str = "refused", head: str = "") -> Case:
        return f"GraphML, {name}", {"g.graphml": head + GRAPHML.format(graph)}, wanted

    yield csv("a long line", f'id,text\na,"{words}"\nb,\n', wanted="done")
    yield csv("a long word", f"id,text\na,{long}\nb,\n", wanted="done")
    yield csv("lines in a cell", 'id,text\na,"' + "x\n" * (size // 2) + '"\nb,\n', wanted="done")
    yield csv("an open quotation", f'id,text\na,"{words}\nb,\n')
    yield csv("quotation marks", 'id,text\na,"' + '""' * (size // 2) + '"\nb,\n', wanted="done")
    yield csv("an odd quotation mark", 'id,text\na,"' + '"' * (size // 2 * 2) + "\nb,\n")
    yield csv("only a header", "a," * (size // 2) + "id,text\n")
    yield csv("blank lines", "id,text\n" + "\n" * size + "a,\nb,\n", wanted="done")
    yield csv("line ends of Windows", "id,text\r\n" + "\r\n" * (size // 2) + "a,\r\nb,\r\n",
              wanted="done")  # fmt: skip
    yield csv("line ends of old", "id,text\r" + "\r" * size + "a,\rb,\r", wanted="done")
    yield csv("a long id", f"id,text\n{long},\na,\nb,\n", f"source,target\na,{long}\n", "done")
    yield csv("an id almost as long", f"id,text\n{long},\na,\nb,\n", f"source,target\na,{long}b\n")
    yield csv("a repeated long id", f"id,text\n{long[: size // 2]},\n" * 2)
    yield csv("many ids, none of them meant",
              "id,text\n" + "".join(f"vertex number {k},\n" for k in range(size // 25)),
              "source,target\nvertex nvmber 7x,vertex number 1\n")  # fmt: skip
    yield csv("NUL at the end", f"id,text\na,{words}\0\n")
    yield csv("not UTF-8 at the end", f"id,text\na,{words}".encode() + b"\xff\n")
    yield csv("half a file of UTF-16", f"id,text\na,{words}"[: size // 2].encode("utf-16"))
    yield csv("right to left", "id,text\na," + "\u202eمرحبا \u202c" * (size // 20) + "\nb,\n",
              wanted="done")  # fmt: skip
    yield csv("emoji", "id,text\na," + "👩‍👩‍👧 " * (size // 20) + "\nb,\n", wanted="done")
    for extension in ("tsv", "csv"):
        mark = "\t" if extension == "tsv" else ","
        rows = "".join(f"{k}{mark}{mark}\n" for k in range(size // 10))
        yield (
            f"{extension}, rows that are too long",
            {f"v.{extension}": f"id{mark}text\n{rows}", f"e.{extension}": EDGES},
            "refused",
        )
    yield jsonl("a long text", json.dumps({"id": "a", "text": words}), "done")
    yield jsonl("a deep text", '{"id": "a", "text": ' + "[" * size)
    yield jsonl("a deep object", '{"a":' * (size // 5))
    yield jsonl("a long label", '{"id": "a", "text": "", "label": [' + "1," * (size // 2) + "1]}")
    yield jsonl("a long number", '{"id": ' + "1" * size + ', "text": ""}')
    keys = "".join(f'{{"id": {k}, "text": "", "k{k}": 0}}\n' for k in range(size // 40))
    yield jsonl("many keys", keys)
    yield jsonl("escapes", '{"id": "a", "text": "' + "\\ud83d\\ude42" * (size // 12) + '"}', "done")
    yield cane("a long line", f"{words}\nb\n", wanted="done")
    yield cane("a long number", "a\nb\n", "1" * size + " 0\n")
    yield cane("many numbers", "a\nb\n", "1 " * (size // 2) + "\n")
    yield cane("many loops", "a\nb\n", "1 1\n" * (size // 4), "done")
    one = '<graph edgedefault="directed"><node id="a"><data key="t">{}</data></node></graph>'
    yield graphml("a long text", one.format(words), "done")
    yield graphml("a long attribute", f'<graph edgedefault="directed"><node id="{long}"/></graph>')
    yield graphml("deep elements", "<a>" * (size // 7) + "</a>" * (size // 7))
    yield graphml("deep graphs", '<graph edgedefault="directed"><node id="a">' * (size // 50))
    bomb = f'<!DOCTYPE graphml [<!ENTITY l0 "lol">{LAUGHS}]>'
    yield graphml("a billion laughs", one.format("&l12;"), head=bomb)
    quadratic = f'<!DOCTYPE graphml [<!ENTITY l "{long[: size // 2]}">]>'
    yield graphml("quadratic laughs", one.format("&l;" * (size // 6)), head=quadratic)
    outside = '<!DOCTYPE graphml [<!ENTITY l SYSTEM "file:///etc/hostname">]>'
    yield graphml("somebody else's file", one.format("&l;"), head=outside)
    yield graphml("an entity nobody defined", one.format("&l;"))


def parquet_cases(folder: Path) -> Iterator[tuple[str, str]]:
    """Small files that unfold: the name of each, after it was written, and what has to come."""
    n = 300_000
    text = "word " * 200_000
    once = pa.DictionaryArray.from_arrays(np.zeros(n, np.int32), [text])
    options = {"compression": "zstd", "dictionary_pagesize_limit": 1 << 24}
    pq.write_table(pa.table({"source": ["0"], "target": ["1"]}), folder / "e.parquet")
    pq.write_table(pa.table({"id": ["0"] * n, "text": once}), folder / "v.parquet", **options)
    yield "Parquet, one text 300,000 times", "refused"
    table = pa.table({"id": ["0", "1"], "text": [{"a": [{"b": 1}]}, None]})
    pq.write_table(table, folder / "v.parquet")
    yield "Parquet, texts that are lists", "refused"
    table = pa.table({"id": ["0", "1"], "text": pa.array([b"\xff", b"a"], pa.binary())})
    pq.write_table(table, folder / "v.parquet")
    yield "Parquet, texts that are bytes", "refused"


def read(folder: Path) -> Callable[[], object]:
    files = sorted(path.name for path in folder.iterdir())
    if "data.txt" in files:
        return lambda: TextNetwork.from_folder(folder)
    edges, *vertices = (folder / name for name in files)
    paths = [vertices[0], edges] if vertices else [edges]
    return lambda: TextNetwork.from_files(*paths)


def main(base: Path, megabytes: int) -> dict[str, object]:
    problems: list[str] = []
    count, slowest, most, folder = 0, 0.0, 0.0, base / "files"

    def judge(name: str, wanted: str) -> None:
        nonlocal count, slowest, most
        count += 1
        size = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
        found = measured(read(folder), str(folder), most_seconds=300)
        slowest, most = max(slowest, found["seconds"]), max(most, found["megabytes"])
        late = found["seconds"] > 5 + SECONDS_A_MEGABYTE * size
        large = found["megabytes"] > 200 + MEGABYTES_A_MEGABYTE * size
        if found["said"] != wanted or found["did"] or late or large:
            problems.append(f"{name} ({size:.0f} MB): {found}")

    for name, files, wanted in cases(megabytes * 1_000_000):
        folder.mkdir()
        for file, content in files.items():
            data = content if isinstance(content, bytes) else content.encode()
            (folder / file).write_bytes(data)
        judge(name, wanted)
        shutil.rmtree(folder)
    folder.mkdir()
    for name, wanted in parquet_cases(folder):
        judge(name, wanted)
    return {
        "inputs": count,
        "megabytes": megabytes,
        "slowest_seconds": round(slowest, 1),
        "most_megabytes": round(most),
        "problems": problems,
    }


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]))))
