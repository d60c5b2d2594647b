"""`vhe serve` answers valid and invalid requests, writes and reloads without growing in memory."""

import copy
import http.client
import json
import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from vhe.estimators import VHE

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")
if not Path("/proc/self/status").exists():
    pytest.skip("memory is read from /proc", allow_module_level=True)

Request = tuple[str, str, str | None, int]  # method, path, body, expected status
TOKEN = "a-token-of-some-length"
RELOAD_SECONDS = 60


@pytest.fixture
def server(
    fitted: VHE, times: Callable[[int, int], int], tmp_path: Path
) -> Iterator[tuple[subprocess.Popen[str], int]]:
    if not times(0, 1):
        pytest.skip("tests/web sends the same requests once")
    for name in ("first", "second"):  # two models with different fingerprints
        fitted.save(tmp_path / name)
        fitted = copy.copy(fitted)
        fitted.remove_vertices([fitted.network_.ids[-1]])
    (tmp_path / "model").symlink_to("first")
    command = [sys.executable, "-m", "vhe", "serve", str(tmp_path / "model"), "--port", "0"]
    command += ["--writable"]
    environment = {**os.environ, "VHE_TOKEN": TOKEN}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        printed = ""
        while not (found := re.search(r"http://127.0.0.1:(\d+)/", printed)):
            line = process.stderr.readline()
            assert line, printed
            printed += line
        yield process, int(found[1])
        process.terminate()


def random_request(draw: random.Random, n: int) -> Request:
    a, b = draw.randrange(n), draw.randrange(n)
    words = " ".join(f"t{draw.randrange(5)}w{draw.randrange(10)}" for _ in range(20))
    text = json.dumps({"text": words, "k": draw.randrange(1, 20)})
    vertex = {"vertices": [{"id": "new", "text": words}], "links": [["new", f"v{a}"]]}
    return draw.choice(
        [
            ("GET", "/", None, 200),
            ("GET", "/api", None, 200),
            ("GET", "/api/map", None, 200),
            ("GET", f"/api/vertices/{a}", None, 200),
            ("GET", f"/api/vertices/{a}/suggestions?k={1 + b}", None, 200),
            ("GET", f"/api/vertices?q=t{a % 5}w{b % 10}", None, 200),
            ("GET", f"/api/vertices?id=v{a}", None, 200),
            ("GET", f"/api/pairs/{a}/{(a + 1) % n}", None, 200),
            ("GET", f"/api/suggestions?offset={a}&limit=20", None, 200),
            ("PUT", f"/api/decisions/{a}/{(a + 1) % n}", '{"state": "rejected"}', 200),
            ("DELETE", f"/api/decisions/{a}/{(a + 1) % n}", None, 200),
            ("PUT", f"/api/decisions/{a}/{a}", '{"state": "rejected"}', 422),
            ("POST", "/api/vertices", json.dumps(vertex), 200),
            ("POST", "/api/texts", text, 200),
            ("GET", f"/api/vertices/{n + 2 + a}", None, 404),
            ("GET", "/api/vertices/seven", None, 422),
            ("GET", f"/nothing/{a}", None, 404),
            ("POST", "/api/texts", text[: draw.randrange(len(text))], 422),
            ("POST", "/api/texts", json.dumps({"text": "unknown words"}), 422),
            ("POST", "/api/texts", json.dumps({"text": "x" * 2**21}), 413),
        ]
    )


def megabytes(process: subprocess.Popen[str]) -> float:
    status = Path(f"/proc/{process.pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) / 1024


class Client:
    """Sends requests over one connection and collects those with an unexpected status."""

    def __init__(self, port: int) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self.requests = self.writes = self.reloads = 0
        self.failures: list[str] = []

    def send(self, method: str, path: str, body: str | None, expected: int) -> dict[str, Any]:
        self.requests += 1
        headers = {"Authorization": f"Bearer {TOKEN}"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            self.connection.request(method, path, body, headers)
            response = self.connection.getresponse()
            content = response.read()
            if response.status != expected:
                self.failures.append(f"{method} {path}: {response.status} instead of {expected}")
            elif path.startswith("/api") and expected == 200:
                self.writes += method in ("PUT", "DELETE") or path == "/api/vertices"
                answer: dict[str, Any] = json.loads(content)
                return answer
        except (OSError, http.client.HTTPException) as error:
            if expected != 413:  # the connection may be closed while a large body is sent
                self.failures.append(f"{method} {path}: {error!r}")
            self.connection.close()
        return {}

    def reload(self, link: Path) -> None:
        """Point the link of the model to the other folder, and have it read."""
        other = "second" if os.readlink(link) == "first" else "first"
        (link.parent / "following").symlink_to(other)
        (link.parent / "following").replace(link)
        self.send("POST", "/api/reload", None, 200)
        self.reloads += 1


def test_server_soak(
    fitted: VHE,
    server: tuple[subprocess.Popen[str], int],
    figures: dict[str, Any],
    tmp_path: Path,
) -> None:
    process, port = server
    seconds, draw = 1800, random.Random(0)
    n = len(fitted.network_) - 1  # vertices that both models have
    client = Client(port)
    began = time.monotonic()
    warm = 0.0
    while (passed := time.monotonic() - began) < seconds:
        if not warm and passed > seconds / 10:
            warm = megabytes(process)
        if passed > (1 + client.reloads) * RELOAD_SECONDS:
            client.reload(tmp_path / "model")
        method, path, body, expected = random_request(draw, n)
        answer = client.send(method, path, body, expected)
        if method == "POST" and path == "/api/vertices" and answer:
            number, numbering = answer["vertices"][0]["number"], answer["numbering"]
            client.send("DELETE", f"/api/vertices/{number}?numbering={numbering}", None, 200)
    ended = megabytes(process)
    figures |= {
        "minutes": round(seconds / 60, 2),
        "questions": client.requests,
        "writes": client.writes,
        "reloads": client.reloads,
        "failures": len(client.failures),
        "megabytes_warm": round(warm),
        "megabytes_at_the_end": round(ended),
        "growth_percent": round(100 * (ended / warm - 1), 2),
    }
    assert client.failures == []
    assert process.poll() is None
    assert ended < 1.05 * warm
