"""Latency of `vhe serve` under load: 64 clients send 10,000 mixed requests.

    python benchmarks/serve.py [MODEL]

Without a model folder, a model of a random network of the size of Cora is fitted for two steps:
latency depends on the size of the network only. The main result is the 99th percentile of
suggestions.
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
CLIENTS, REQUESTS = 64, 10_000
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
    """Fit a model of a network of the size of Cora with random words and links."""
    from vhe import VHE, TextNetwork

    rng = np.random.default_rng(0)
    words = rng.zipf(1.3, size=(VERTICES, WORDS)) % VOCABULARY
    texts = [" ".join(f"w{k}" for k in row) for row in words]
    links = rng.integers(VERTICES, size=(LINKS, 2))
    network = TextNetwork(range(VERTICES), texts, links, name="cora-sized")
    VHE(random_state=0, max_steps=2).fit(network).save(folder)
    return folder


def port_of(server: subprocess.Popen[str]) -> int:
    """Return the port that a server prints; forward its other output."""
    assert server.stderr is not None
    for line in server.stderr:
        if found := re.match(r"http://[^:]+:(\d+)/", line):
            return int(found[1])
        print(line, end="", file=sys.stderr)
    raise SystemExit("the server did not start")


async def request(
    reader: Reader, writer: Writer, path: str, body: bytes = b""
) -> tuple[int, bytes]:
    """Send a request over a persistent connection; return the status and the body."""
    head = f"{'POST' if body else 'GET'} {path} HTTP/1.1\r\nHost: localhost\r\n"
    if body:
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    writer.write(head.encode() + b"\r\n" + body)
    header = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", header)
    assert length is not None
    return int(header[9:12]), await reader.readexactly(int(length[1]))


async def measure(port: int) -> str:
    """Send all requests; return a table of milliseconds by kind of request."""
    rng = np.random.default_rng(1)
    _, about = await request(*await asyncio.open_connection("127.0.0.1", port), "/api")
    n = json.loads(about)["vertices"]
    kinds = rng.choice(list(MIX), p=list(MIX.values()), size=REQUESTS).tolist()
    requests = iter(zip(kinds, rng.integers(n, size=(REQUESTS, 2)).tolist(), strict=True))
    seconds_by_kind: dict[str, list[float]] = defaultdict(list)
    failed: list[str] = []

    async def client() -> None:
        connection = await asyncio.open_connection("127.0.0.1", port)
        for kind, (a, b) in requests:
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
                good = {200, 422}  # a given model may not know any of these words
            started = time.perf_counter()
            try:
                status, _ = await request(*connection, path, body)
            except (OSError, EOFError):
                status, connection = 0, await asyncio.open_connection("127.0.0.1", port)
            seconds_by_kind[kind].append(time.perf_counter() - started)
            if status not in good:
                failed.append(path)

    started = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    seconds = time.perf_counter() - started
    lines = [
        f"{CLIENTS} clients, {REQUESTS:,} requests, {len(failed)} failed, "
        f"{REQUESTS / seconds:.0f} per second, {n:,} vertices",
        f"{'milliseconds':<14}{'requests':>10}{'median':>9}{'p95':>9}{'p99':>9}{'maximum':>9}",
    ]
    for kind in MIX:
        times = 1000 * np.array(seconds_by_kind[kind])
        figures = "".join(f"{q:>9.1f}" for q in np.percentile(times, [50, 95, 99, 100]))
        lines.append(f"{kind:<14}{len(times):>10,}{figures}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
