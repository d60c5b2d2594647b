"""`model.explore()`: in a notebook, at a prompt, in a script."""

import json
import subprocess
import sys
import threading
import types
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from vhe.errors import VHEError
from vhe.estimators import VHE


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Addresses that were opened in a browser."""
    found: list[str] = []
    monkeypatch.setattr("webbrowser.open", found.append)
    return found


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    shell = types.SimpleNamespace(kernel=object())
    module = types.ModuleType("IPython")
    module.get_ipython = lambda: shell  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", module)


@pytest.fixture
def shown(fitted: VHE, notebook: None, tmp_path: Path) -> Iterator[Any]:
    running = fitted.explore(state=tmp_path / "decisions.sqlite", height=500)
    yield running
    running.close()


def answer(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=20) as response:
        return json.load(response)


def test_a_notebook_cell_shows_a_frame(shown: Any, opened: list[str]) -> None:
    assert f'<iframe src="{shown.url}" height="500"' in shown._repr_html_()
    assert opened == []
    assert answer(shown.url + "api")["vertices"] == 60
    with urllib.request.urlopen(shown.url) as page:
        assert "frame-ancestors http://localhost:*" in page.headers["content-security-policy"]


@pytest.fixture
def embedding_page(shown: Any) -> Iterator[str]:
    """The address of a page of another server of this machine that shows the frame."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(b"<link rel=icon href=data:,>" + shown._repr_html_().encode())

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://localhost:{server.server_port}/"
        server.shutdown()


def test_the_frame_works(shown: Any, browser: Any, embedding_page: str) -> None:
    page = browser.new_page()
    page.set_default_timeout(20_000)
    messages: list[str] = []
    page.on("console", lambda message: messages.append(message.text))
    page.goto(embedding_page)
    frame = page.frame_locator("iframe")
    frame.locator("#suggestions li > button").first.click()
    frame.locator("#pair article").first.wait_for()
    page.keyboard.press("a")
    frame.locator("#status", has_text="Accepted").wait_for()
    assert messages == []
    assert answer(shown.url + "api/suggestions?state=accepted")["total"] == 1
    page.close()


def test_a_later_change_of_the_model_is_not_shown(fitted: VHE, shown: Any) -> None:
    import copy

    changed = copy.copy(fitted)
    changed.add_vertices({"new": "t2w4 t2w5"})
    assert answer(shown.url + "api")["vertices"] == 60


def test_elsewhere_a_tab_is_opened(fitted: VHE, opened: list[str]) -> None:
    running = fitted.explore(block=False)
    assert opened == [running.url]
    assert repr(running) == f"<explorer at {running.url}; close() stops it>"
    running.close()
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(running.url, timeout=5)


def test_a_script_waits_and_ends(fitted: VHE, tmp_path: Path) -> None:
    fitted.save(tmp_path / "model")
    program = (
        "import os, signal, sys, threading, webbrowser\n"
        "from vhe.fitted import open_model\n"
        "def read(url):\n"
        "    import urllib.request\n"
        "    print(urllib.request.urlopen(url).status, flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "webbrowser.open = lambda url: threading.Timer(0.5, read, [url]).start()\n"
        "open_model(sys.argv[1]).explore()\n"
        "print('after')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "model")],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stdout) == (0, "200\nafter\n"), done.stderr


def test_a_model_that_is_not_fitted() -> None:
    with pytest.raises(VHEError, match="not fitted"):
        VHE().explore()
