"""An explorer of a fitted model, an HTTP server for it, and a browser."""

import contextlib
import http.client
import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from tests.web.review import suggestions

from vhe.estimators import VHE
from vhe.predict.layout import layout
from vhe.storage.decisions import Decisions

fastapi = pytest.importorskip("fastapi", reason="needs the extra web")

from vhe.web.app import make_app  # noqa: E402
from vhe.web.explorer import Explorer  # noqa: E402
from vhe.web.server import LOOPBACK, TimeoutProtocol, bind, server  # noqa: E402
from vhe.web.service import Service  # noqa: E402
from vhe.web.snapshot import Snapshot  # noqa: E402

collect_ignore = ["generated_client.py"]  # a program that a test runs in a separate process

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)


@dataclass(frozen=True)
class Site:
    """A running server and requests to it."""

    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def raw(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        with contextlib.closing(connection):
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, named)
            response = connection.getresponse()
            received = {k.lower(): v for k, v in response.getheaders()}
            return response.status, received, response.read()

    def get(self, path: str, **headers: str) -> tuple[int, Any]:
        status, _, body = self.raw("GET", path, **headers)
        return status, json.loads(body)

    def post(self, path: str, body: bytes, **headers: str) -> tuple[int, Any]:
        headers = {"Content_Type": "application/json", **headers}
        status, _, received = self.raw("POST", path, body, **headers)
        return status, json.loads(received)


Serving = Callable[..., contextlib.AbstractContextManager[Site]]


@pytest.fixture(scope="session")
def serving() -> Serving:
    """A context manager that serves an explorer, or a service, at a free port."""

    @contextlib.contextmanager
    def run(
        served: Explorer | Service,
        protocol: type[TimeoutProtocol] = TimeoutProtocol,
        **settings: Any,
    ) -> Iterator:
        service = served
        if isinstance(served, Explorer):
            service = Service(Snapshot(served))
        else:
            service.start()
        bound = bind("127.0.0.1", 0)
        running = server(make_app(service, **{"hosts": LOOPBACK, **settings}), protocol)
        thread = threading.Thread(target=running.run, kwargs={"sockets": [bound]})
        thread.start()
        while not running.started:
            time.sleep(0.01)
        try:
            yield Site(bound.getsockname()[1])
        finally:
            running.should_exit = True
            thread.join(10)
            service.close()
            assert not thread.is_alive()

    return run


@pytest.fixture(scope="session")
def explorer(fitted: VHE) -> Explorer:
    return Explorer(fitted, layout(fitted.embedding_))


@pytest.fixture(scope="session")
def site(explorer: Explorer, serving: Serving) -> Iterator[Site]:
    with serving(explorer) as running:
        yield running


@pytest.fixture(scope="session")
def reviewed_site(
    explorer: Explorer, serving: Serving, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Any]:
    """A server that saves decisions."""
    file = tmp_path_factory.mktemp("review") / "decisions.sqlite"
    with serving(Service(Snapshot(explorer), decisions=Decisions(file))) as site:
        while not site.get("/api/suggestions")[1]["ready"]:
            time.sleep(0.02)
        yield site


@pytest.fixture
def review_site(reviewed_site: Any) -> Any:
    """The server without decisions."""
    for item in suggestions(reviewed_site, "all"):
        if item["state"] != "open":
            ends = item["source"]["number"], item["target"]["number"]
            reviewed_site.raw("DELETE", "/api/decisions/{}/{}".format(*ends))
    return reviewed_site


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    if BROWSER is None:
        pytest.skip("needs chromium on the PATH: apt-get install chromium")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield opened
        opened.close()
