"""The server: addresses, timeouts, interrupts, and the command that starts it."""

import contextlib
import copy
import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

import pytest

from vhe.cli import main
from vhe.errors import VHEError
from vhe.estimators import VHE
from vhe.web.explorer import Explorer
from vhe.web.server import TimeoutProtocol, bind, is_loopback, server

TOKEN = "a-long-random-token"

COMPLETE = b"GET /api HTTP/1.1\r\nHost: localhost\r\n\r\n"
PARTIAL_BODY = b"POST /api/texts HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n{"


class ShortTimeout(TimeoutProtocol):
    timeout = 0.5


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET /api HTTP/1.1\r\nHost: loc",
        PARTIAL_BODY,
        COMPLETE + PARTIAL_BODY,
        COMPLETE + COMPLETE + b"GET /api",
    ],
    ids=["nothing", "partial header", "partial body", "pipelined body", "pipelined header"],
)
def test_slow_clients_are_disconnected(explorer: Explorer, serving, sent: bytes) -> None:
    with (
        serving(explorer, protocol=ShortTimeout) as site,
        socket.create_connection(("127.0.0.1", site.port), timeout=10) as client,
    ):
        began = time.monotonic()
        client.sendall(sent)
        with contextlib.suppress(ConnectionResetError):
            while client.recv(4096):
                pass
        assert time.monotonic() - began < 5
        assert site.get("/api")[0] == 200


def test_keep_alive_and_timeout_of_a_partial_request(explorer: Explorer, serving) -> None:
    with (
        serving(explorer, protocol=ShortTimeout) as site,
        contextlib.closing(http.client.HTTPConnection("127.0.0.1", site.port)) as client,
    ):
        client.connect()
        opened = client.sock
        for _ in range(4):
            client.request("GET", "/api")
            assert client.getresponse().read()
            time.sleep(0.3)
        assert client.sock is opened
        opened.settimeout(10)
        opened.sendall(b"GET /api HTTP/1.1\r\n")
        with contextlib.suppress(ConnectionResetError):
            assert opened.recv(4096) == b""


def test_a_client_that_does_not_read_is_disconnected(explorer: Explorer, serving) -> None:
    changed = copy.copy(explorer)
    changed.summary = lambda: {"name": "x" * 2**24}  # type: ignore[method-assign]
    with (
        serving(changed, protocol=ShortTimeout) as site,
        socket.create_connection(("127.0.0.1", site.port), timeout=10) as client,
    ):
        client.sendall(COMPLETE)
        time.sleep(3)
        received = 0
        with contextlib.suppress(ConnectionResetError):
            while part := client.recv(2**20):
                received += len(part)
        assert 0 < received < 2**24


def test_is_loopback() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.3.2.1", "::1", "localhost", "LOCALHOST")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "192.168.0.1", "example.org", "")))


def test_a_port_in_use_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(VHEError, match=f"port {port} is in use"):
            bind("127.0.0.1", port)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--host", "0.0.0.0"], "--token"),
        (["--token", " "], "token is empty"),
        (["--token", "secret"], "6 characters"),
        (["--port", "70000"], "port 70000"),
        (["--host", "no.such.host.invalid", "--token", TOKEN], "not an address of this machine"),
        (["--host", "192.0.2.1", "--token", TOKEN], "not an address of this machine"),
    ],
)
def test_an_invalid_address_is_rejected_before_the_model_is_read(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(["serve", "no-such-model", *arguments]) == 2
    printed = capsys.readouterr().err
    assert message in printed
    assert len(printed.splitlines()) == 1


def test_a_missing_package_is_reported_with_the_extra(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fastapi", None)
    assert main(["serve", "model"]) == 2
    assert "pip install 'vhe[web]'" in capsys.readouterr().err


def test_the_command_serves_until_interrupted(fitted: VHE, tmp_path: Path) -> None:
    fitted.save(tmp_path / "model")
    command = [sys.executable, "-m", "vhe", "serve", str(tmp_path / "model"), "--port", "0"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env=environment, cwd=tmp_path
    ) as running:
        assert running.stderr is not None
        try:
            printed = ""
            while not (url := re.search(r"http://\S+", printed)):
                line = running.stderr.readline()
                assert line, printed
                printed += line
            with urllib.request.urlopen(f"{url[0]}api", timeout=20) as response:
                assert response.status == 200
            running.send_signal(signal.SIGINT)
            rest = running.stderr.read()
            assert running.wait(20) == 0
            assert rest == "stopped\n"
            left = {path.name for path in tmp_path.iterdir()}
            assert left <= {"model", "model.decisions.sqlite"}
        finally:
            running.kill()


def test_the_work_in_the_background_starts_after_the_server() -> None:
    running = server(lambda scope, receive, send: None)
    started: list[bool] = []

    def on_start() -> None:
        started.append(running.started)
        running.should_exit = True

    running.on_start = on_start
    with bind("127.0.0.1", 0) as bound:
        # in a thread: browser tests in this process leave an event loop in the main thread
        thread = threading.Thread(target=running.run, kwargs={"sockets": [bound]})
        thread.start()
        thread.join(20)
    assert started == [True]


def test_the_token_is_not_printed_to_a_log(fitted: VHE, tmp_path: Path) -> None:
    fitted.save(tmp_path / "model")
    command = [sys.executable, "-m", "vhe", "serve", str(tmp_path / "model"), "--port", "0"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "VHE_TOKEN": "a-long-random-token"}
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env=environment, cwd=tmp_path
    ) as running:
        assert running.stderr is not None
        printed = ""
        while "Ctrl-C" not in printed:
            line = running.stderr.readline()
            assert line, printed
            printed += line
        running.terminate()
        printed += running.stderr.read()
    assert "a-long-random-token" not in printed
