"""Mutation fuzzing of all readers: the result is a network or a one-line error that names the file;
no other exception, no crash, no hang, bounded memory.

    python fuzz.py FOLDER COUNT SEED

Batches run in forked processes, so that a crash or a hang affects one input and is counted.
"""

import gzip
import json
import os
import random
import re
import resource
import signal
import sqlite3
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

import networkx
import pyarrow.parquet

from vhe.data.network import TextNetwork
from vhe.data.readers.graphml import write_graphml
from vhe.data.readers.network_tables import write_tables
from vhe.data.sources import read
from vhe.data.text import Corpus
from vhe.errors import VHEError

LOADED = (networkx, pyarrow.parquet)
BATCH, HANG_SECONDS, MAX_MEGABYTES = 250, 5, 500
TEXTS = [
    "graph kernels, with commas", 'a "quoted" text', "naïve café 🙂👩‍👩‍👧", "مرحبا بالعالم",
    "图神经网络", "", "x" * 300, "line one\nline two", "tab\there", "\u202eright to left\u202c",
]  # fmt: skip
EDGES = [(0, 1), (1, 2), (2, 2), (3, 4), (4, 3), (0, 1), (9, 5)]
TOKENS = [
    b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\r\n", b"\r", b"\n", b"\0", b'"', b'""', b'"""',
    b"'", b",", b"\t", b";", b"\\", b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf0\x9f\x99\x82",
    b"\xe2\x80\xae", b"\xe2\x80\xa8", b"\xc2\x85", b"-1", b"1e999", b"NaN", b"99999999999999999999",
    b"null", b"{}", b"[[", b"{\"id\": {}", b"\\ud800", b"true", b"id,text\n", b"source,target\n",
    b"<node id=\"n0\"/>", b"<edge source=\"x\" target=\"y\"/>", b"</graph>", b"<graph>", b"]]>",
    b"<!DOCTYPE a [<!ENTITY b \"bb\">]>", b"&b;", b"&#0;", b"<![CDATA[", b"<!--", b"PAR1",
    b"\x15\x00", b"\xff\xff\xff\x7f", b"\x00\x00\x00\x80", b"\x1b[31m", b" " * 50, b"0 1\n",
]  # fmt: skip


PAGE = "# A title\n\nA [link](b.md#x) and [[b|other]], ![no](c.png), <https://example.org>.\n"
REST = (
    "Title\n=====\n\n.. _here:\n\nSee :doc:`b` and `text <b.html>`_ and :ref:`here`.\n\n::\n\n  x\n"
)
HTML = "<html><head><title>T</title></head><body><a href='b.html?x#y'>b</a><p>text &amp; more</p>"
BIB = '@book{%s, title = {A {B}}, abstract = "words # %% \\\'e", cites = {b, a}, year = 2001}\n'
RIS = "TY  - JOUR\nID  - %s\nTI  - A title\nAB  - An abstract\nKW  - graphs\nER  - \n"
CSL = '{"id": "%s", "type": "article", "title": "T", "abstract": "words", "references": ["b"]}'
WORK = (
    '{"id": "https://openalex.org/W%d", "title": "T", "abstract_inverted_index": {"a": [0, 2], '
    '"b": [1]}, "referenced_works": ["https://openalex.org/W1"], '
    '"concepts": [{"display_name": "x", "level": 0, "score": 0.5}]}'
)
SOURCES: dict[str, dict[str, str]] = {
    "markdown": {"a.md": "---\ntags: [x, y]\ntitle: A\n---\n" + PAGE, "b.md": PAGE},
    "restructuredtext": {"a.rst": REST, "b.rst": REST},
    "html": {"a.html": HTML, "b.html": HTML},
    "bibtex": {"l.bib": BIB % "a" + BIB % "b"},
    "ris": {"l.ris": RIS % "a" + RIS % "b"},
    "csl": {"l.json": f"[{CSL % 'a'}, {CSL % 'b'}]"},
    "openalex": {"w.jsonl": WORK % 1 + "\n" + WORK % 2 + "\n"},
    "json": {"r.json": '[{"id": "a", "text": "t", "references": ["b"]}, {"id": "b", "text": ""}]'},
}


def seeds(folder: Path) -> dict[str, dict[str, bytes]]:
    """Return a valid network in each format: file contents by file name."""
    labels = ["a", None, "b", "a", "b", None, "a", "b", "a", "🙂"]
    network = TextNetwork([f"v{k}" for k in range(10)], TEXTS, EDGES, labels)
    formats: dict[str, dict[str, bytes]] = {}

    def collect(name: str) -> None:
        formats[name] = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
        for path in folder.iterdir():
            path.unlink()

    for extension in ("csv", "tsv", "jsonl", "parquet"):
        write_tables(folder / f"v.{extension}", folder / f"e.{extension}", network)
        collect(extension)
    (folder / "data.txt").write_text("".join(f"{text}\n" for text in TEXTS))
    (folder / "graph.txt").write_text("".join(f"{i}\t{j}\n" for i, j in EDGES))
    (folder / "group.txt").write_text("".join(f"{label or ''}\n" for label in labels))
    collect("cane")
    write_graphml(folder / "g.graphml", network)
    collect("graphml")
    formats |= {name: {file: text.encode() for file, text in files.items()}
                for name, files in SOURCES.items()}  # fmt: skip
    with sqlite3.connect(folder / "n.db") as database:
        database.execute("create table vertices (id text, text text, label text)")
        database.execute("create table edges (source text, target text)")
        rows = [(f"v{k}", text, labels[k]) for k, text in enumerate(TEXTS)]
        database.executemany("insert into vertices values (?, ?, ?)", rows)
        links = [(f"v{i}", f"v{j}") for i, j in EDGES]
        database.executemany("insert into edges values (?, ?)", links)
    database.close()
    collect("sqlite")
    for name, form, pack in (("gz", "csv", gzip.compress), ("zst", "jsonl", zstd)):
        formats[name] = {f"{file}.{name}": pack(data) for file, data in formats[form].items()}
    return formats


def zstd(data: bytes) -> bytes:
    return bytes(pyarrow.compress(data, "zstd", asbytes=True))


def mutated(data: bytes, others: list[bytes], draw: random.Random) -> bytes:
    for _ in range(draw.choice((1, 1, 1, 2, 3, 8))):
        a, b = sorted(draw.randrange(len(data) + 1) for _ in range(2))
        b = min(b, a + draw.choice((1, 4, 16, 64, 1000)))
        mutation = draw.randrange(9)
        if mutation == 0 and a < len(data):
            data = data[:a] + bytes([data[a] ^ 1 << draw.randrange(8)]) + data[a + 1 :]
        elif mutation == 1:
            data = data[:a]
        elif mutation == 2:
            data = data[:a] + data[b:]
        elif mutation == 3:
            data = data[:a] + data[a:b] * draw.choice((2, 3, 100)) + data[b:]
        elif mutation == 4:
            other = draw.choice(others)
            data = data[:a] + other[draw.randrange(len(other) + 1) :][:1000] + data[b:]
        elif mutation == 5:
            data = data[:a] + draw.randbytes(draw.choice((1, 2, 8, 100))) + data[b:]
        elif mutation == 6:
            lines = data.split(b"\n")
            draw.shuffle(lines)
            data = b"\n".join(lines)
        else:
            data = data[:a] + draw.choice(TOKENS) * draw.choice((1, 1, 1, 2, 50)) + data[b:]
    return data


def read_mutated(folder: Path, formats: dict[str, dict[str, bytes]], number: int, seed: int) -> str:
    """Read one mutated input; return the outcome."""
    draw = random.Random(f"{seed}/{number}")
    form = draw.choice(sorted(formats))
    files = dict(formats[form])
    others = [data for other in formats.values() for data in other.values()]
    for name in draw.sample(sorted(files), draw.choice((1, 1, len(files)))):
        files[name] = mutated(files[name], others, draw)
    for path in folder.iterdir():
        path.unlink()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    try:
        if form == "cane":
            network = TextNetwork.from_folder(folder)
        elif form == "graphml":
            network = TextNetwork.from_files(folder / "g.graphml")
        elif form in ("markdown", "restructuredtext", "html"):
            network = read(folder)
        elif form in ("gz", "zst"):
            vertices, edges = sorted(files, reverse=True)
            network = read(folder / vertices, folder / edges)
        elif len(files) == 1:
            network = read(folder / next(iter(files)))
        else:
            network = TextNetwork.from_files(folder / f"v.{form}", folder / f"e.{form}")
        Corpus.build(network.texts)
        return "read"
    except VHEError as error:
        message = str(error)
        if "\n" in message or len(message) > 700 or not any(name in message for name in files):
            return f"a poor message for input {number}: {message[:300]!r}"
        named = re.search(r"\.(csv|tsv|jsonl|txt|graphml):\d+: |row \d+", message)
        return "refused, with its line" if named else f"refused: {kind_of(message, folder)}"
    except BaseException:
        return f"input {number} ({form}): {traceback.format_exc()[-600:]}"


def kind_of(message: str, folder: Path) -> str:
    """Return the message without names and numbers, which differ between inputs."""
    return re.sub(r"'[^']*'|\d+", "…", message.replace(str(folder), ""))[:70]


def batch(folder: Path, formats: dict[str, dict[str, bytes]], numbers: range, seed: int) -> None:
    """In a forked process: log the number of each input before reading it, and the outcome."""
    with (folder.parent / "log").open("a") as log:
        for number in numbers:
            log.write(json.dumps({"number": number}) + "\n")
            log.flush()
            # CPU time: a busy machine must not count as a hang
            signal.setitimer(signal.ITIMER_PROF, 2 * HANG_SECONDS)
            signal.alarm(120)
            began = time.process_time()
            outcome = read_mutated(folder, formats, number, seed)
            seconds = time.process_time() - began
            log.write(json.dumps({"outcome": outcome, "seconds": seconds}) + "\n")
        megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        log.write(json.dumps({"megabytes": megabytes}) + "\n")


def fuzz(base: Path, count: int, seed: int) -> dict[str, object]:
    (base / "files").mkdir()
    formats = seeds(base / "files")
    outcomes: Counter[str] = Counter()
    problems: list[str] = []
    exceptions = hangs = crashes = 0
    slowest = peak = 0.0
    done = 0
    while done < count:
        (base / "log").unlink(missing_ok=True)
        numbers = range(done, min(done + BATCH, count))
        child = os.fork()
        if child == 0:
            batch(base / "files", formats, numbers, seed)
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        for line in (base / "log").read_text().splitlines():
            entry = json.loads(line)
            peak = max(peak, entry.get("megabytes", 0))
            if "number" in entry:
                done = entry["number"] + 1
            if "outcome" in entry:
                slowest = max(slowest, entry["seconds"])
                hangs += entry["seconds"] > HANG_SECONDS
                if entry["outcome"].startswith(("input", "a poor message")):
                    exceptions += 1
                    problems.append(entry["outcome"])
                else:
                    outcomes[entry["outcome"]] += 1
        if status:
            stopped = status in (-signal.SIGPROF, -signal.SIGALRM)
            hangs += stopped
            crashes += not stopped
            problems.append(f"input {done - 1} ended its process with {status}")
    if peak > MAX_MEGABYTES:
        problems.append(f"{peak:.0f} MB")
    return {
        "inputs": count,
        "read": outcomes["read"],
        "refused": sum(n for outcome, n in outcomes.items() if outcome.startswith("refused")),
        "refused_with_line": outcomes["refused, with its line"],
        "uncaught": exceptions,
        "crashes": crashes,
        "hangs": hangs,
        "slowest_seconds": round(slowest, 2),
        "most_megabytes": round(peak),
        "problems": problems[:20],
        "without_line": dict(outcomes.most_common(25)),
    }


if __name__ == "__main__":
    print(json.dumps(fuzz(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
