"""Kill a writable server with SIGKILL while clients write; compare what it acknowledged with what
the next server has.

    python kill_server.py FOLDER KILLS SEED
"""

import http.client
import json
import os
import random
import signal
import sys
import threading
import time
import traceback
from pathlib import Path

from vhe.data.network import TextNetwork
from vhe.errors import VHEError
from vhe.estimators import VHE
from vhe.web.app import make_app
from vhe.web.server import bind, serve
from vhe.web.service import Service
from vhe.web.start import start_service

TOKEN = "a-token-of-some-length"
CLIENTS, SECONDS = 4, 0.4  # of writing before a kill, at most
HEADERS = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
WORDS = [f"w{k}" for k in range(20)]


def write_model(folder: Path) -> None:
    """Fit a small network of two topics."""
    draw = random.Random(5)
    texts = [" ".join(draw.choices(WORDS[i % 2 :: 2], k=8)) for i in range(40)]
    edges = [(i, (i + 2 * draw.randrange(1, 9)) % 40) for i in range(40) for _ in range(2)]
    network = TextNetwork([f"v{i}" for i in range(40)], texts, edges)
    settings = {"latent_dim": 8, "max_steps": 2, "min_count": 1, "max_words": 16}
    VHE(random_state=0, verbose=False, **settings).fit(network).save(folder)


def start(folder: Path) -> tuple[int, int]:
    """Start a server in a fork; return its process id and its port."""
    bound = bind("127.0.0.1", 0)
    bound.listen(64)
    child = os.fork()
    if child == 0:
        try:
            service = start_service(folder, writable=True)
            serve(make_app(service, token=TOKEN), bound, service.start)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    port = bound.getsockname()[1]
    bound.close()
    return child, port


class Client(threading.Thread):
    """Adds vertices, links and decisions until the server is gone; remembers what was acknowledged.

    It deletes its own vertices only, and some of them.
    """

    def __init__(self, port: int, name: str, seed: int) -> None:
        super().__init__()
        self.port, self.prefix, self.draw = port, name, random.Random(seed)
        self.present: set[str] = set()
        self.uncertain: set[str] = set()  # a deletion was sent, but not acknowledged
        self.deleted: set[str] = set()
        self.links: set[tuple[str, str]] = set()
        self.decided: dict[tuple[str, str], str] = {}

    def run(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            for k in range(10_000):
                self.write(connection, f"{self.prefix}-{k}")
        except (OSError, http.client.HTTPException):
            pass  # killed
        finally:
            connection.close()

    def request(self, connection, method: str, path: str, body: object = None) -> dict:
        connection.request(method, path, body and json.dumps(body), HEADERS)
        response = connection.getresponse()
        answer = json.loads(response.read())
        assert response.status in (200, 409), answer
        return answer if response.status == 200 else {}

    def write(self, connection, name: str) -> None:
        vertex = {"id": name, "text": " ".join(self.draw.choices(WORDS, k=6))}
        old = f"v{self.draw.randrange(40)}"
        body = {"vertices": [vertex], "links": [[name, old]]}
        self.request(connection, "POST", "/api/vertices", body)
        self.present.add(name)
        self.links.add((name, old))
        choice = self.draw.random()
        if choice < 0.4:
            other = f"v{self.draw.randrange(40)}"
            self.request(connection, "POST", "/api/links", {"links": [[name, other]]})
            self.links.add((name, other))
        elif choice < 0.6:
            a, b = self.draw.sample(range(40), 2)
            state = self.draw.choice(("accepted", "rejected", "postponed"))
            path = f"/api/decisions/{a}/{b}"
            self.decided.pop((f"v{min(a, b)}", f"v{max(a, b)}"), None)
            self.request(connection, "PUT", path, {"state": state})
            self.decided[f"v{min(a, b)}", f"v{max(a, b)}"] = state
        elif choice < 0.8:
            numbering = self.request(connection, "GET", "/api")["numbering"]
            found = self.request(connection, "GET", f"/api/vertices?id={name}")
            self.uncertain.add(name)
            path = f"/api/vertices/{found['number']}?numbering={numbering}"
            if self.request(connection, "DELETE", path):
                self.deleted.add(name)


def lost(service: Service, clients: list[Client]) -> list[str]:
    """What clients were told to be saved, and is not."""
    network = service.snapshot.explorer.network
    linked = {frozenset((network.ids[i], network.ids[j])) for i, j in network.links.tolist()}
    missing = []
    for client in clients:
        missing += [v for v in client.present - client.uncertain if v not in network]
        missing += [f"deletion of {v}" for v in client.deleted if v in network]
        missing += [
            f"link {link}"
            for link in client.links
            if link[0] not in client.uncertain and frozenset(link) not in linked
        ]
    assert service.decisions is not None
    saved = {frozenset((d.source, d.target)) for d in service.decisions.all().values()}
    for client in clients:
        missing += [f"decision {p}" for p in client.decided if frozenset(p) not in saved]
    return missing


def torture(base: Path, count: int, seed: int) -> dict[str, object]:
    folder, draw = base / "model", random.Random(seed)
    write_model(folder)
    kills = unreadable = acknowledged = 0
    problems: list[str] = []
    Service._start_missing = lambda self: None  # type: ignore[method-assign]
    for run in range(count):
        child, port = start(folder)
        clients = [Client(port, f"{run}-{k}", draw.randrange(2**31)) for k in range(CLIENTS)]
        for client in clients:
            client.start()
        while not any(c.present for c in clients) and any(c.is_alive() for c in clients):
            time.sleep(0.01)
        time.sleep(draw.uniform(0, SECONDS))
        os.kill(child, signal.SIGKILL)
        kills += os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        for client in clients:
            client.join()
        acknowledged += sum(
            len(c.present) + len(c.deleted) + len(c.links) + len(c.decided) for c in clients
        )
        try:
            service = start_service(folder, writable=True)
            problems += lost(service, clients)
            service.close()
        except VHEError as error:
            unreadable += 1
            problems.append(str(error))
        if run % 10 == 9:  # so that the time does not grow with the number of runs
            for path in base.glob("model.*"):
                path.unlink()
    return {
        "kills": kills,
        "acknowledged": acknowledged,
        "lost": len(problems) - unreadable,
        "unreadable": unreadable,
        "problems": problems[:10],
    }


if __name__ == "__main__":
    where, kill_count, random_seed = sys.argv[1:]
    print(json.dumps(torture(Path(where), int(kill_count), int(random_seed))))
