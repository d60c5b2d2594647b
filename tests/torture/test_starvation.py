"""Cheap requests are answered promptly while another client floods the expensive ones."""

import http.client
import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.waiting import until

from vhe.estimators import VHE

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

LIMIT_MILLISECONDS = 250


@pytest.fixture
def port(fitted: VHE, tmp_path: Path) -> Iterator[int]:
    fitted.save(tmp_path / "model")
    command = [sys.executable, "-m", "vhe", "serve", str(tmp_path / "model"), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        printed = ""
        while not (found := re.search(r"http://127.0.0.1:(\d+)/", printed)):
            line = process.stderr.readline()
            assert line, printed
            printed += line
        yield int(found[1])
        process.terminate()


def flood(port: int, number: int, stop: threading.Event, sent: list[int]) -> None:
    """Post new texts, each another one, without a pause."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    while not stop.is_set():
        sent[number] += 1
        words = " ".join(f"t{k % 5}w{(sent[number] * 7 + k) % 10}" for k in range(2_000))
        try:
            body = json.dumps({"text": f"{number} {sent[number]} {words}", "k": 50})
            connection.request("POST", "/api/texts", body, {"Content-Type": "application/json"})
            connection.getresponse().read()
        except (OSError, http.client.HTTPException):
            connection.close()


def test_starvation(port: int, times: Callable[[int, int], int], figures: dict[str, Any]) -> None:
    """Interleaved with the flood; the limit holds in the long form, on a machine of its own."""
    clients, cheap = 8, times(40, 2_000)
    stop, sent = threading.Event(), [0] * clients
    threads = [threading.Thread(target=flood, args=(port, k, stop, sent)) for k in range(clients)]
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    milliseconds = []
    for thread in threads:
        thread.start()
    try:
        until(lambda: sum(sent) > clients)  # the first answer: every client has sent a text
        for k in range(cheap):
            began = time.perf_counter()
            connection.request("GET", f"/api/vertices/{k % 60}")
            response = connection.getresponse()
            response.read()
            milliseconds.append(1000 * (time.perf_counter() - began))
            assert response.status == 200
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    p99 = float(np.percentile(milliseconds, 99))
    figures |= {"cheap": cheap, "flood": sum(sent), "p99_milliseconds": round(p99)}
    assert sum(sent) > clients
    assert p99 < times(10_000, LIMIT_MILLISECONDS)
