"""How `vhe serve` bears many clients at once: 64 of them ask 10,000 mixed questions.

    python benchmarks/serve.py [MODEL]

Without a model folder a network of Cora's size is made up and learned for a moment: how long an
answer takes depends on the size, not on what was learned. The figure to look at is the 99th
percentile of the suggestions; questions that ask the neural network wait in a line of their own.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import numpy as np

Reader, Writer = asyncio.StreamReader, asyncio.StreamWriter
CLIENTS, QUESTIONS = 64, 10_000
MIX = {"suggestions": 0.5, "vertex": 0.2, "search": 0.1, "pair": 0.1, "text": 0.1}
VERTICES, LINKS, WORDS, VOCABULARY = 2277, 5214, 90, 6000  # Cora


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", type=Path)
    given = parser.parse_args().model
    with tempfile.TemporaryDirectory() as folder:
        model = given or make_model(Path(folder) / "model")
        command = [sys.executable, "-m", "vhe", "serve", str(model), "--port", "0"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
            try:
                print(asyncio.run(measure(port_of(server))))
            finally:
                server.terminate()


def make_model(folder: Path) -> Path:
    """A model of a network of Cora's size, whose words and links are drawn at random."""
    from vhe import VHE, TextNetwork

    rng = np.random.default_rng(0)
    words = rng.zipf(1.3, size=(VERTICES, WORDS)) % VOCABULARY
    texts = [" ".join(f"w{k}" for k in row) for row in words]
    links = rng.integers(VERTICES, size=(LINKS, 2))
    network = TextNetwork(range(VERTICES), texts, links, name="cora-sized")
    VHE(random_state=0, steps=2, epochs=0, contexts=2).fit(network).save(folder)
    return folder


def port_of(server: subprocess.Popen[str]) -> int:
    """The port that a server says it listens at; what else it says is passed on."""
    assert server.stderr is not None
    for line in server.stderr:
        if found := re.match(r"http://[^:]+:(\d+)/", line):
            return int(found[1])
        print(line, end="", file=sys.stderr)
    raise SystemExit("the server did not start")


async def ask(reader: Reader, writer: Writer, path: str, body: bytes = b"") -> tuple[int, bytes]:
    """One question over a connection that stays open: the status and the body of the answer."""
    head = f"{'POST' if body else 'GET'} {path} HTTP/1.1\r\nHost: localhost\r\n"
    if body:
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    writer.write(head.encode() + b"\r\n" + body)
    answer = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", answer)
    assert length is not None
    return int(answer[9:12]), await reader.readexactly(int(length[1]))


async def measure(port: int) -> str:
    """Ask everything; a table of milliseconds a kind of question."""
    rng = np.random.default_rng(1)
    _, about = await ask(*await asyncio.open_connection("127.0.0.1", port), "/api")
    n = json.loads(about)["vertices"]
    kinds = rng.choice(list(MIX), p=list(MIX.values()), size=QUESTIONS).tolist()
    questions = iter(zip(kinds, rng.integers(n, size=(QUESTIONS, 2)).tolist(), strict=True))
    took: dict[str, list[float]] = defaultdict(list)
    failed: list[str] = []

    async def client() -> None:
        connection = await asyncio.open_connection("127.0.0.1", port)
        for kind, (a, b) in questions:
            path, body, good = f"/api/vertices/{a}", b"", {200}
            if kind == "suggestions":
                path += "/suggestions"
            elif kind == "search":
                path = f"/api/vertices?q=w{b}"
            elif kind == "pair":
                path = f"/api/pairs/{a}/{b}"
            elif kind == "text":
                words = " ".join(f"w{k}" for k in range(a % 50, a % 50 + 40))
                path, body = "/api/texts", json.dumps({"text": words}).encode()
                good = {200, 422}  # a model that was given may know none of these words
            began = time.perf_counter()
            try:
                status, _ = await ask(*connection, path, body)
            except (OSError, EOFError):
                status, connection = 0, await asyncio.open_connection("127.0.0.1", port)
            took[kind].append(time.perf_counter() - began)
            if status not in good:
                failed.append(path)

    began = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    seconds = time.perf_counter() - began
    lines = [
        f"{CLIENTS} clients, {QUESTIONS:,} questions, {len(failed)} failed, "
        f"{QUESTIONS / seconds:.0f} a second, {n:,} vertices",
        f"{'milliseconds':<14}{'questions':>10}{'median':>9}{'p95':>9}{'p99':>9}{'longest':>9}",
    ]
    for kind in MIX:
        times = 1000 * np.array(took[kind])
        figures = "".join(f"{q:>9.1f}" for q in np.percentile(times, [50, 95, 99, 100]))
        lines.append(f"{kind:<14}{len(times):>10,}{figures}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
