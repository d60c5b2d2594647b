"""`vhe serve` answers valid and invalid requests for a long time without growing in memory."""

import http.client
import json
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


@pytest.fixture
def server(
    fitted: VHE, times: Callable[[int, int], int], tmp_path: Path
) -> Iterator[tuple[subprocess.Popen[str], int]]:
    if not times(0, 1):
        pytest.skip("tests/web sends the same requests once")
    fitted.save(tmp_path / "model")
    command = [sys.executable, "-m", "vhe", "serve", str(tmp_path / "model"), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
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
            ("POST", "/api/texts", text, 200),
            ("GET", f"/api/vertices/{n + a}", None, 404),
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


def test_server_soak(
    fitted: VHE,
    server: tuple[subprocess.Popen[str], int],
    figures: dict[str, Any],
) -> None:
    process, port = server
    seconds, draw = 1800, random.Random(0)
    failures: list[str] = []
    began = time.monotonic()
    requests, warm = 0, 0.0
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    while (passed := time.monotonic() - began) < seconds:
        if not warm and passed > seconds / 10:
            warm = megabytes(process)
        method, path, body, expected = random_request(draw, len(fitted.network_))
        requests += 1
        try:
            headers = {"Content-Type": "application/json"} if body is not None else {}
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            response.read()
            if response.status != expected:
                failures.append(f"{method} {path}: {response.status} instead of {expected}")
        except (OSError, http.client.HTTPException) as error:
            if expected != 413:  # the connection may be closed while a large body is sent
                failures.append(f"{method} {path}: {error!r}")
            connection.close()
    ended = megabytes(process)
    figures |= {
        "minutes": round(seconds / 60, 2),
        "questions": requests,
        "failures": len(failures),
        "megabytes_warm": round(warm),
        "megabytes_at_the_end": round(ended),
        "growth_percent": round(100 * (ended / warm - 1), 2),
    }
    assert failures == []
    assert process.poll() is None
    assert ended < 1.05 * warm
