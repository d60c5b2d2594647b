"""`vhe serve` under load, and its time to the first answer."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import os
import re
import secrets
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from vhe.bench.measure import synthetic
from vhe.errors import VHEError
from vhe.estimators import VHE

CORA, LARGE = 2277, 63_000  # vertices
CLIENTS, REQUESTS = 64, 20_000
MIX = {"suggestions": 0.45, "vertex": 0.2, "search": 0.1, "pair": 0.1, "text": 0.1, "write": 0.05}
SECONDS_PER_RELOAD = 1.0
TOKEN = secrets.token_hex(16)


def serve(requests: int = REQUESTS) -> dict[str, float]:
    """Time to the first answer and memory of a large network; latencies under load of a small one.

    Clients ask for suggestions, vertices, searches, explanations and new texts, and add vertices,
    while two models are swapped in alternately.
    """
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder))
        return measure(Path(folder), requests)


def prepare(base: Path) -> None:
    """Fit the models; those of the load test get their map and ranking, as a first start does."""
    for name, vertices, seed in (("large", LARGE, 0), ("model-0", CORA, 0), ("model-1", CORA, 1)):
        VHE(random_state=seed, max_steps=2).fit(synthetic(vertices)).save(base / name)
    for name in ("model-0", "model-1"):
        with _server(base / name) as (_, port):
            while not (
                _get(port, "/api/suggestions?limit=1")["ready"]
                and _get(port, "/api/layout")["layout"] == "final"
            ):
                time.sleep(0.2)


def measure(base: Path, requests: int) -> dict[str, float]:
    """The figures of the models of `prepare`."""
    (base / "model").symlink_to("model-0")
    return _first_answer(base / "large") | _under_load(base, requests)


def _get(port: int, path: str) -> Any:
    headers = {"Authorization": f"Bearer {TOKEN}", "Accept-Encoding": "gzip"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=headers)
    with urllib.request.urlopen(request, timeout=60) as response:
        body = response.read()
        encoded = response.headers["content-encoding"] == "gzip"
        return json.loads(gzip.decompress(body) if encoded else body)


def _first_answer(model: Path) -> dict[str, float]:
    began = time.monotonic()
    with _server(model) as (process, port):
        n = _get(port, "/api")["vertices"]
        first = time.monotonic() - began
        _get(port, "/api/map")
        return {
            f"seconds to the first answer, {n:,} vertices": first,
            f"seconds to the map, {n:,} vertices": time.monotonic() - began,
            f"gigabytes of memory then, {n:,} vertices": _gigabytes(process.pid),
        }


def _gigabytes(pid: int) -> float:
    with contextlib.suppress(OSError):
        status = Path(f"/proc/{pid}/status").read_text()
        if found := re.search(r"VmRSS:\s+(\d+) kB", status):
            return int(found[1]) * 1024 / 1e9
    return float("nan")


@contextlib.contextmanager
def _server(model: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A running server and its port."""
    command = [sys.executable, "-m", "vhe", "serve", str(model), "--port", "0", "--writable"]
    environment = os.environ | {"VHE_TOKEN": TOKEN}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stderr is not None
            for line in process.stderr:
                if found := re.match(r"http://[^:]+:(\d+)/", line):
                    yield process, int(found[1])
                    return
            raise VHEError("the server did not start")
        finally:
            process.terminate()


def _under_load(base: Path, requests: int) -> dict[str, float]:
    with _server(base / "model") as (_, port):
        load = Load(port, base, requests)
        asyncio.run(load.run())
    return load.figures()


class Load:
    """Requests of many clients at the same time."""

    def __init__(self, port: int, base: Path, requests: int) -> None:
        rng = np.random.default_rng(1)
        kinds = rng.choice(list(MIX), p=list(MIX.values()), size=requests).tolist()
        numbers = rng.integers(CORA, size=(requests, 2)).tolist()
        self.requests = iter(zip(range(requests), kinds, numbers, strict=True))
        self.port, self.base, self.count = port, base, requests
        self.seconds: dict[str, list[float]] = defaultdict(list)
        self.failed = self.reloads = self.lost = 0
        self.written: list[str] = []
        self.finished = asyncio.Event()

    async def run(self) -> None:
        began = time.perf_counter()
        reloading = asyncio.create_task(self._reload())
        await asyncio.gather(*(self._client() for _ in range(CLIENTS)))
        self.rate = self.count / (time.perf_counter() - began)
        self.finished.set()
        await reloading
        connection = await self._connection()
        for name in self.written:
            status, _ = await _request(connection, "GET", f"/api/vertices?id={name}")
            self.lost += status != 200

    async def _connection(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def _client(self) -> None:
        connection = await self._connection()
        for k, kind, (a, b) in self.requests:
            method, path = "GET", f"/api/vertices/{a}"
            body: dict[str, object] | None = None
            if kind == "suggestions":
                path += "/suggestions"
            elif kind == "search":
                path = f"/api/vertices?q=w{b}"
            elif kind == "pair":
                path = f"/api/pairs/{a}/{b}"
            elif kind == "text":
                words = " ".join(f"w{j}" for j in range(a % 50, a % 50 + 40))
                method, path, body = "POST", "/api/texts", {"text": words}
            elif kind == "write":
                vertex = {"id": f"new-{k}", "text": f"w{a} w{b} w{a % 100}"}
                method, path, body = "POST", "/api/vertices", {"vertices": [vertex]}
            began = time.perf_counter()
            try:
                status, _ = await _request(connection, method, path, body)
            except (OSError, EOFError):
                status, connection = 0, await self._connection()
            self.seconds[kind].append(time.perf_counter() - began)
            self.failed += status != 200
            if kind == "write" and status == 200:
                self.written.append(f"new-{k}")

    async def _reload(self) -> None:
        """Swap in the other model again and again."""
        connection = await self._connection()
        while not self.finished.is_set():
            self.reloads += 1
            link = self.base / "next"
            link.symlink_to(f"model-{self.reloads % 2}")
            link.replace(self.base / "model")
            status, _ = await _request(connection, "POST", "/api/reload")
            self.failed += status != 200
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.finished.wait(), SECONDS_PER_RELOAD)

    def figures(self) -> dict[str, float]:
        found: dict[str, float] = {
            "requests": self.count,
            "requests per second": self.rate,
            "failed requests": self.failed,
            "reloads": self.reloads,
            "acknowledged writes": len(self.written),
            "lost writes": self.lost,
        }
        for kind in MIX:
            median, p99 = 1000 * np.percentile(self.seconds[kind], [50, 99])
            found |= {f"{kind}, median ms": float(median), f"{kind}, p99 ms": float(p99)}
        return found


async def _request(
    connection: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    method: str,
    path: str,
    body: object = None,
) -> tuple[int, bytes]:
    """Send a request over a persistent connection; return the status and the body."""
    reader, writer = connection
    data = b"" if body is None else json.dumps(body).encode()
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
    writer.write(head.encode() + data)
    header = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", header)
    assert length is not None
    return int(header[9:12]), await reader.readexactly(int(length[1]))
