"""Mutate files of every format that is read, and read them: a network, or one sentence that names
the file; no other exception, no crash, no hang, no memory beyond a bound.

    python fuzz.py FOLDER HOW_MANY SEED

Batches run in forks, so that a crash or a hang costs one input and is told as such.
"""

import json
import os
import random
import re
import resource
import signal
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

import networkx
import pyarrow.parquet

from vhe.data.network import TextNetwork
from vhe.data.readers.files import read_files, read_folder, write_files, write_folder, write_graphml
from vhe.data.text import Corpus
from vhe.errors import VHEError

LOADED = (networkx, pyarrow.parquet)
BATCH, HANG_SECONDS, MOST_MEGABYTES = 250, 5, 500
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


def seeds(folder: Path) -> dict[str, dict[str, bytes]]:
    """A sound network in each format: the files by their names."""
    labels = ["a", None, "b", "a", "b", None, "a", "b", "a", "🙂"]
    network = TextNetwork([f"v{k}" for k in range(10)], TEXTS, EDGES, labels)
    made: dict[str, dict[str, bytes]] = {}

    def keep(name: str) -> None:
        made[name] = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
        for path in folder.iterdir():
            path.unlink()

    for extension in ("csv", "tsv", "jsonl", "parquet"):
        write_files(folder / f"v.{extension}", folder / f"e.{extension}", network)
        keep(extension)
    write_folder(folder, network)
    keep("cane")
    write_graphml(folder / "g.graphml", network)
    keep("graphml")
    return made


def mutated(data: bytes, others: list[bytes], draw: random.Random) -> bytes:
    for _ in range(draw.choice((1, 1, 1, 2, 3, 8))):
        a, b = sorted(draw.randrange(len(data) + 1) for _ in range(2))
        b = min(b, a + draw.choice((1, 4, 16, 64, 1000)))
        way = draw.randrange(9)
        if way == 0 and a < len(data):
            data = data[:a] + bytes([data[a] ^ 1 << draw.randrange(8)]) + data[a + 1 :]
        elif way == 1:
            data = data[:a]
        elif way == 2:
            data = data[:a] + data[b:]
        elif way == 3:
            data = data[:a] + data[a:b] * draw.choice((2, 3, 100)) + data[b:]
        elif way == 4:
            other = draw.choice(others)
            data = data[:a] + other[draw.randrange(len(other) + 1) :][:1000] + data[b:]
        elif way == 5:
            data = data[:a] + draw.randbytes(draw.choice((1, 2, 8, 100))) + data[b:]
        elif way == 6:
            lines = data.split(b"\n")
            draw.shuffle(lines)
            data = b"\n".join(lines)
        else:
            data = data[:a] + draw.choice(TOKENS) * draw.choice((1, 1, 1, 2, 50)) + data[b:]
    return data


def one(folder: Path, made: dict[str, dict[str, bytes]], number: int, seed: int) -> str:
    """Read one mutated input; what came of it."""
    draw = random.Random(f"{seed}/{number}")
    form = draw.choice(sorted(made))
    files = dict(made[form])
    others = [data for other in made.values() for data in other.values()]
    for name in draw.sample(sorted(files), draw.choice((1, 1, len(files)))):
        files[name] = mutated(files[name], others, draw)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    try:
        if form == "cane":
            network = read_folder(folder)
        elif form == "graphml":
            network = read_files(folder / "g.graphml")
        else:
            network = read_files(folder / f"v.{form}", folder / f"e.{form}")
        Corpus.build(network.texts)
        return "read"
    except VHEError as error:
        said = str(error)
        if "\n" in said or len(said) > 700 or not any(name in said for name in files):
            return f"a poor message for input {number}: {said[:300]!r}"
        named = re.search(r"\.(csv|tsv|jsonl|txt|graphml):\d+: |row \d+", said)
        return "refused, with its line" if named else f"refused: {kind_of(said, folder)}"
    except BaseException:
        return f"input {number} ({form}): {traceback.format_exc()[-600:]}"


def kind_of(said: str, folder: Path) -> str:
    """The sentence without what differs from input to input."""
    return re.sub(r"'[^']*'|\d+", "…", said.replace(str(folder), ""))[:70]


def batch(folder: Path, made: dict[str, dict[str, bytes]], numbers: range, seed: int) -> None:
    """In a fork: each number before its input is read, and what came of it after."""
    with (folder.parent / "told").open("a") as told:
        for number in numbers:
            told.write(json.dumps({"number": number}) + "\n")
            told.flush()
            # seconds of work: a machine that is busy elsewhere is no hang
            signal.setitimer(signal.ITIMER_PROF, 2 * HANG_SECONDS)
            signal.alarm(120)
            began = time.process_time()
            came = one(folder, made, number, seed)
            seconds = time.process_time() - began
            told.write(json.dumps({"came": came, "seconds": seconds}) + "\n")
        megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        told.write(json.dumps({"megabytes": megabytes}) + "\n")


def fuzz(base: Path, count: int, seed: int) -> dict[str, object]:
    (base / "files").mkdir()
    made = seeds(base / "files")
    came: Counter[str] = Counter()
    problems: list[str] = []
    exceptions = hangs = crashes = 0
    slowest = most = 0.0
    done = 0
    while done < count:
        (base / "told").unlink(missing_ok=True)
        numbers = range(done, min(done + BATCH, count))
        child = os.fork()
        if child == 0:
            batch(base / "files", made, numbers, seed)
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        for line in (base / "told").read_text().splitlines():
            told = json.loads(line)
            most = max(most, told.get("megabytes", 0))
            if "number" in told:
                done = told["number"] + 1
            if "came" in told:
                slowest = max(slowest, told["seconds"])
                hangs += told["seconds"] > HANG_SECONDS
                if told["came"].startswith(("input", "a poor message")):
                    exceptions += 1
                    problems.append(told["came"])
                else:
                    came[told["came"]] += 1
        if status:
            stopped = status in (-signal.SIGPROF, -signal.SIGALRM)
            hangs += stopped
            crashes += not stopped
            problems.append(f"input {done - 1} ended its process with {status}")
    if most > MOST_MEGABYTES:
        problems.append(f"{most:.0f} MB")
    return {
        "inputs": count,
        "read": came["read"],
        "refused": sum(n for what, n in came.items() if what.startswith("refused")),
        "refused_with_line": came["refused, with its line"],
        "uncaught": exceptions,
        "crashes": crashes,
        "hangs": hangs,
        "slowest_seconds": round(slowest, 2),
        "most_megabytes": round(most),
        "problems": problems[:20],
        "without_line": dict(came.most_common(25)),
    }


if __name__ == "__main__":
    print(json.dumps(fuzz(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
