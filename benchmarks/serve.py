"""How `vhe serve` bears many clients at once: 64 of them ask 10,000 mixed questions.

    python benchmarks/serve.py [MODEL]

Without a model folder a network of Cora's size is made up and learned for a moment: how long an
answer takes depends on the size, not on what was learned. The figure to look at is the 99th
percentile of the suggestions; questions that ask the neural network wait in a line of their own.
"""

from __future__ import annotations

import argparse
import http.client
import json
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from pathlib import Path

import numpy as np

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
                print(measure(port_of(server)))
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


def measure(port: int) -> str:
    """Ask everything; a table of milliseconds a kind of question."""
    rng = np.random.default_rng(1)
    first = http.client.HTTPConnection("127.0.0.1", port)
    first.request("GET", "/api")
    n = json.load(first.getresponse())["vertices"]
    kinds = iter(rng.choice(list(MIX), p=list(MIX.values()), size=QUESTIONS).tolist())
    numbers = iter(rng.integers(n, size=(QUESTIONS, 2)).tolist())
    lock = threading.Lock()
    took: dict[str, list[float]] = defaultdict(list)
    failed: list[str] = []

    def client() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        while True:
            with lock:
                kind, (a, b) = next(kinds, ""), next(numbers, (0, 0))
            if not kind:
                return
            body = None
            path = {
                "suggestions": f"/api/vertices/{a}/suggestions",
                "vertex": f"/api/vertices/{a}",
                "search": f"/api/vertices?q=w{b}",
                "pair": f"/api/pairs/{a}/{b}",
                "text": "/api/texts",
            }[kind]
            if kind == "text":
                body = json.dumps({"text": " ".join(f"w{k}" for k in range(a % 50, a % 50 + 40))})
            began = time.perf_counter()
            try:
                headers = {"Content-Type": "application/json"} if body else {}
                connection.request("POST" if body else "GET", path, body, headers)
                answer = connection.getresponse()
                answer.read()
                # A model given by hand may know none of these words, which is an answer too.
                wrong = answer.status not in ((200, 422) if body else (200,))
            except OSError:
                wrong = True
                connection.close()
            with lock:
                took[kind].append(time.perf_counter() - began)
                if wrong:
                    failed.append(path)

    began = time.perf_counter()
    threads = [threading.Thread(target=client) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - began
    done = sum(map(len, took.values()))
    lines = [
        f"{CLIENTS} clients, {done:,} questions, {len(failed)} failed, "
        f"{done / seconds:.0f} a second, {n:,} vertices",
        f"{'milliseconds':<14}{'questions':>10}{'median':>9}{'p95':>9}{'p99':>9}{'longest':>9}",
    ]
    for kind in MIX:
        times = 1000 * np.array(took[kind])
        figures = "".join(f"{q:>9.1f}" for q in np.percentile(times, [50, 95, 99, 100]))
        lines.append(f"{kind:<14}{len(times):>10,}{figures}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
