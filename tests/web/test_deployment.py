"""The files of examples/deployment: behind nginx, as a systemd unit, and the nightly update."""

import contextlib
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from vhe.data.readers.tables import write_table
from vhe.estimators import VHE

FILES = Path(__file__).parents[2] / "examples" / "deployment"
TOKEN, NAME = "a-long-random-secret", "papers.example.org"
NGINX = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin")


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


def command() -> list[str]:
    """The command of the systemd unit, without the program and the model."""
    text = (FILES / "vhe.service").read_text().replace("\\\n", "")
    found = re.search(r"ExecStart=\S+ serve \S+(.*)", text)
    assert found
    return found[1].split()


@contextlib.contextmanager
def served(model: Path, log: Path) -> Iterator[int]:
    """`vhe serve` as in the systemd unit, and its port."""
    arguments = [sys.executable, "-m", "vhe", "serve", str(model), "--port", "0", *command()]
    environment = os.environ | {"VHE_TOKEN": TOKEN}
    with (
        log.open("w") as stderr,
        subprocess.Popen(arguments, stderr=stderr, env=environment) as process,
    ):
        try:
            while not (found := re.search(r"http://127.0.0.1:(\d+)/", log.read_text())):
                assert process.poll() is None, log.read_text()
                time.sleep(0.05)
            yield int(found[1])
        finally:
            process.terminate()


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[Callable[[int], int]]:
    """Starts nginx with the example, in front of a port; returns the port of nginx."""
    if NGINX is None or shutil.which("openssl") is None:
        pytest.skip("needs nginx and openssl")
    started: list[subprocess.Popen[bytes]] = []

    def start(upstream: int) -> int:
        port, key, pem = free_port(), tmp_path / "papers.key", tmp_path / "papers.pem"
        certificate = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1"]
        certificate += ["-subj", f"/CN={NAME}", "-keyout", str(key), "-out", str(pem)]
        subprocess.run(certificate, check=True, capture_output=True)
        text = (FILES / "nginx.conf").read_text()
        for old, new in (
            ("listen 443", f"listen 127.0.0.1:{port}"),
            ("127.0.0.1:8765", f"127.0.0.1:{upstream}"),
            ("/etc/ssl/papers.pem", str(pem)),
            ("/etc/ssl/papers.key", str(key)),
        ):
            assert old in text
            text = text.replace(old, new)
        folders = "".join(
            f"{kind}_temp_path {tmp_path / kind};"
            for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        whole = tmp_path / "nginx.conf"
        whole.write_text(
            f"daemon off; pid {tmp_path / 'pid'}; error_log {tmp_path / 'error.log'};\n"
            f"events {{}}\nhttp {{ access_log off; {folders}\n{text}}}\n"
        )
        assert NGINX is not None
        started.append(subprocess.Popen([NGINX, "-p", str(tmp_path), "-c", str(whole)]))
        for _ in range(100):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                return port
            time.sleep(0.05)
        raise AssertionError("nginx does not listen")

    yield start
    for process in started:
        process.terminate()
        process.wait(10)


class Response:
    def __init__(self, status: int, headers: Any, body: bytes) -> None:
        self.status, self.headers, self.body = status, headers, body


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def get(
    port: int, path: str, scheme: str = "https", body: bytes | None = None, **headers: str
) -> Response:
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    opener = urllib.request.build_opener(
        urllib.request.HTTPSHandler(context=trusting), NoRedirect()
    )
    given = {name.replace("_", "-"): value for name, value in ({"Host": NAME} | headers).items()}
    request = urllib.request.Request(f"{scheme}://127.0.0.1:{port}{path}", body, given)
    try:
        with opener.open(request, timeout=20) as response:
            return Response(response.status, response.headers, response.read())
    except urllib.error.HTTPError as error:
        return Response(error.code, error.headers, error.read())


def test_behind_nginx(
    fitted: VHE, proxy: Callable[[int], int], tmp_path: Path, browser: Any
) -> None:
    fitted.save(tmp_path / "model")
    with served(tmp_path / "model", tmp_path / "log") as upstream:
        port = proxy(upstream)
        assert get(port, "/papers").headers["location"].endswith("/papers/")
        assert get(port, "/papers/health").status == 200
        assert get(port, "/papers/api").status == 401
        opened = get(port, "/papers/", body=f"token={TOKEN}".encode())
        assert (opened.status, opened.headers["location"]) == (303, "/papers/")
        cookie = opened.headers["set-cookie"]
        assert "Path=/papers" in cookie
        assert "Secure" in cookie  # the proxy says that the connection is encrypted
        cookie = cookie.partition(";")[0]
        assert json.loads(get(port, "/papers/api", Cookie=cookie).body)["vertices"] == 60
        page = get(port, "/papers/", Cookie=cookie).body.decode()
        for script in re.findall(r'(?:src|href)="([^"#:]+)"', page):
            assert get(port, f"/papers/{script}", Cookie=cookie).status == 200
        bearer = {"Authorization": f"Bearer {TOKEN}"}
        assert get(upstream, "/api", "http", Host="other.example.org", **bearer).status == 403
        context = browser.new_context(ignore_https_errors=True)
        tab, problems = context.new_page(), []
        tab.goto(f"https://127.0.0.1:{port}/papers/")
        tab.on("console", lambda message: problems.append(message.text))
        tab.on("response", lambda r: r.status < 400 or problems.append(f"{r.status} {r.url}"))
        tab.keyboard.type(TOKEN)
        tab.keyboard.press("Enter")
        tab.locator("#suggestions li > button").first.click()
        tab.locator("#pair article").first.wait_for()
        assert tab.url.startswith(f"https://127.0.0.1:{port}/papers/#")
        assert problems == []
        context.close()


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("needs systemd-analyze")
    unit = tmp_path / "vhe.service"
    text = (FILES / "vhe.service").read_text()
    unit.write_text(text.replace("/opt/vhe/bin/vhe", sys.executable))  # it must exist
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert str(unit) not in done.stderr


def test_nightly_update(network: Any, fitted: VHE, tmp_path: Path) -> None:
    state, log = tmp_path / "state", tmp_path / "log"
    (state / "models").mkdir(parents=True)
    fitted.save(state / "models" / "first")
    for earlier in ("20200101-031500", "20200102-031500", "20200103-031500"):
        (state / "models" / earlier).mkdir()
    (state / "current").symlink_to("models/first")
    texts = [*network.texts, "t2w4 t2w5 t2w6"]
    write_table(tmp_path / "vertices.csv", {"id": [*network.ids, "newest"], "text": texts})
    ends = [[network.ids[k] for k in column] for column in network.links.T.tolist()]
    write_table(tmp_path / "edges.csv", dict(zip(("source", "target"), ends, strict=True)))
    program = tmp_path / "vhe"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m vhe "$@"\n')
    program.chmod(0o755)
    with served(state / "current", log) as port:
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
        decision = urllib.request.Request(
            f"http://127.0.0.1:{port}/api/decisions/0/7",
            b'{"state": "accepted"}',
            headers,
            method="PUT",
        )
        urllib.request.urlopen(decision, timeout=20).close()
        environment = os.environ | {"VHE": str(program), "VHE_TOKEN": TOKEN}
        environment |= {"VHE_URL": f"http://127.0.0.1:{port}"}
        source = ["--vertices", "vertices.csv", "--edges", "edges.csv", "--seed", "0"]
        settings = ["--set", "latent_dim=8", "min_count=1", "max_words=16", "max_steps=0"]
        done = subprocess.run(
            ["sh", str(FILES / "nightly.sh"), str(state), *source, *settings],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        assert "1 accepted link" in done.stderr
        current = Path(os.readlink(state / "current")).name
        remaining = sorted(path.name for path in (state / "models").iterdir())
        assert remaining == ["20200102-031500", "20200103-031500", current, "first"]
        answer = get(port, "/api/vertices?id=newest", "http", **headers)
        assert json.loads(answer.body)["text"] == texts[-1]
        layout = get(port, "/api/layout", "http", **headers)
        assert json.loads(layout.body)["layout"] == "final"
