"""The HTTP API: answers, error messages, limits and access control."""

import copy
import gzip
import hashlib
import json
import re
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from types import SimpleNamespace
from urllib.parse import quote, urlencode

import pytest
from tests.waiting import until

from vhe.errors import VHEError
from vhe.web.app import STATIC_FILES, make_app
from vhe.web.explorer import Explorer
from vhe.web.guard import MAX_BODY_BYTES, MAX_FAILURES
from vhe.web.login import MAX_FORM_BYTES
from vhe.web.routes import MAX_TEXT
from vhe.web.service import Service
from vhe.web.snapshot import Snapshot
from vhe.web.worker import AnswerCache

SVG_NAMESPACE = "http://www.w3.org/2000/svg"  # a name, not an address


def test_the_network_and_its_vertices(site, explorer: Explorer) -> None:
    status, about = site.get("/api")
    assert status == 200
    assert about.items() >= explorer.summary().items()
    assert site.get("/api/vertices/3") == (200, json.loads(json.dumps(explorer.vertex(3))))
    assert site.get("/api/vertices?id=v3")[1]["number"] == 3
    assert site.get("/api/vertices?q=t1w2&limit=2")[1]["vertices"][0]["number"] >= 0
    status, answer = site.get("/api/vertices/3/suggestions?k=4")
    assert (status, len(answer["links"])) == (200, 4)
    assert site.get("/api/pairs/3/8")[1]["source"]["id"] == "v3"


def test_the_map_is_compressed(site, explorer: Explorer) -> None:
    status, headers, body = site.raw("GET", "/api/map", Accept_Encoding="gzip")
    assert (status, headers["content-encoding"]) == (200, "gzip")
    assert json.loads(gzip.decompress(body))["ids"] == explorer.map["ids"]


def test_a_text_is_embedded(site) -> None:
    status, answer = site.post("/api/texts", b'{"text": "t1w2 t1w3 t1w4", "k": 3}')
    assert status == 200
    assert len(answer["nearest"]) == 3


@pytest.mark.parametrize(
    ("status", "path"),
    [
        (404, "/api/vertices/60"),
        (404, "/api/vertices/-1"),
        (404, "/api/vertices/99999999999999999999"),
        (404, "/api/vertices/60/suggestions"),
        (404, "/api/pairs/0/60"),
        (404, "/api/vertices?id=unknown"),
        (404, "/api/nothing"),
        (404, "/page/explorer.html"),
        (404, "/page/..%2f..%2fapp.py"),
        (404, "/page/%2e%2e/app.py"),
        (422, "/api/vertices/three"),
        (422, "/api/vertices"),
        (422, "/api/vertices?q=a&id=b"),
        (422, "/api/vertices/0/suggestions?k=0"),
        (422, "/api/vertices/0/suggestions?k=1000000"),
    ],
)
def test_an_invalid_request_is_answered_with_one_sentence(site, status: int, path: str) -> None:
    found, answer = site.get(path)
    assert found == status
    assert list(answer) == ["error"]
    assert answer["error"].endswith(".")
    assert "\n" not in answer["error"]


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"{", b"[]", b"null", b'"text"', b"{}", b'{"text": 3}', b'{"text": ""}'),
        *(b"\xff\xfe", b'{"text": "\xff"}', b'{"text": "\\ud800"}', b'{"text": "a", "k": 0}'),
        *(b'{"text": "qqqq"}', b"[" * 100_000),
    ],
)
def test_a_malformed_body_is_422(site, body: bytes) -> None:
    status, answer = site.post("/api/texts", body)
    assert status == 422
    assert list(answer) == ["error"]
    assert len(answer["error"]) < 200


@pytest.mark.parametrize(
    ("path", "body", "error"),
    [
        ("texts", b"[]", "request body: input should be a JSON object."),
        (
            "vertices",
            b'{"vertices": [{"id": [1], "text": "a"}]}',
            "vertices[0].id: input should be a valid string or a valid integer.",
        ),
        ("links", b'{"links": [["a"]]}', "links[0][1]: field required."),
        ("links", b'{"links": []}', "links: list should have at least 1 item, not 0."),
    ],
)
def test_an_error_names_the_place(site, path: str, body: bytes, error: str) -> None:
    assert site.post(f"/api/{path}", body) == (422, {"error": error})


def test_a_large_body_is_413(site) -> None:
    for size in (MAX_BODY_BYTES // 2, 4 * MAX_BODY_BYTES):
        text = b'{"text": "%s"}' % (b"a " * size)
        status, answer = site.post("/api/texts", text)
        assert (status, answer) == (413, {"error": "The request body is larger than 1 MB."})


def test_a_large_body_without_a_length_is_413(site) -> None:
    with socket.create_connection(("127.0.0.1", site.port), timeout=20) as client:
        client.sendall(
            b"POST /api/texts HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
        )
        chunk = b"10000\r\n" + b"a" * 0x10000 + b"\r\n"
        answer = b""
        for _ in range(MAX_BODY_BYTES // 0x10000 + 2):
            try:
                client.sendall(chunk)
            except OSError:
                break
        while b"}" not in answer:
            got = client.recv(4096)
            assert got
            answer += got
    assert answer.startswith(b"HTTP/1.1 413")


def test_other_methods_are_not_allowed(site) -> None:
    for method in ("PUT", "POST", "PATCH"):
        status, _, body = site.raw(method, "/api/vertices/1")
        assert (status, json.loads(body)) == (405, {"error": "Method not allowed."})


def test_other_host_names_are_rejected(site) -> None:
    """DNS rebinding: a name of another site that resolves to this machine."""
    assert site.get("/api", Host="evil.example")[0] == 403
    assert site.get("/api", Host="localhost:1234")[0] == 200
    assert site.get("/api", Host="[::1]:80")[0] == 200


def test_every_response_has_a_strict_policy(site) -> None:
    for path in ("/", "/docs", "/api", "/nothing", "/page/map.css"):
        _, headers, _ = site.raw("GET", path)
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'")
        assert "unsafe" not in policy
        assert "*" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in headers


def test_pages_refer_only_to_local_files(site) -> None:
    for path in ("/", "/docs"):
        status, _, body = site.raw("GET", path)
        page = body.decode()
        assert status == 200
        references = re.findall(r'(?:src|href)="([^"]*)"', page)
        assert references
        for reference in references:
            assert not re.match(r"\w+:|//", reference) or reference == "data:,"
            if reference.startswith("page/"):
                assert site.raw("GET", f"/{reference}")[0] == 200
        assert "<script>" not in page
        assert not re.search(r"\sstyle=|\son\w+=", page)
    folder = files("vhe.web").joinpath("page")
    for name in STATIC_FILES:
        code = folder.joinpath(name).read_text("utf-8").replace(SVG_NAMESPACE, "")
        assert not re.search(r"https?://|@import|\beval\(|new Function|innerHTML", code), name


def test_the_api_page_describes_every_route(site) -> None:
    status, described = site.get("/openapi.json")
    assert status == 200
    page = site.raw("GET", "/docs")[2].decode()
    for path, methods in described["paths"].items():
        assert path in page
        for method, route in methods.items():
            section = page.split(f"<span>{method.upper()}</span> {path}</h2>")[1].split(
                "</section>"
            )[0]
            names = re.findall("<tr><td>(.*?)</td>", section)
            body = route.get("requestBody", {"content": {"application/json": {"schema": {}}}})
            schema = body["content"]["application/json"]["schema"].get("$ref", "/").split("/")[-1]
            fields = described["components"]["schemas"].get(schema, {}).get("properties", {})
            assert names == [*(p["name"] for p in route.get("parameters", [])), *fields]
            assert ("-d" in section) == bool(fields)
            assert (f"-X {method.upper()}" in section) == (method != "get")
    assert len(described["paths"]) >= 14


TOKEN = "päss word& of 21 letters"
BEARER = f"Bearer {TOKEN}".encode().decode("latin-1")


def test_a_token_is_required_everywhere(explorer: Explorer, serving) -> None:
    with serving(explorer, token=TOKEN, hosts=None) as site:
        for path in (
            "/",
            "/api",
            "/docs",
            "/openapi.json",
            "/page/map.css",
            f"/?token={quote(TOKEN)}",
        ):
            status, headers, body = site.raw("GET", path)
            assert status == 401, path
            assert headers["www-authenticate"] == "Bearer"
            assert "token" in json.loads(body)["error"]
        assert site.get("/api", Authorization="Bearer wrong")[0] == 401
        assert site.get("/api", Cookie=f"vhe-{site.port}=wrong; ;=")[0] == 401
        assert site.get("/api", Authorization=BEARER)[0] == 200


FORM = {"Content_Type": "application/x-www-form-urlencoded"}


def test_a_browser_is_asked_for_the_token(
    explorer: Explorer, serving, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    with serving(explorer, token=TOKEN, hosts=None) as site:
        status, headers, body = site.raw("GET", "/docs", Accept="text/html,*/*")
        assert status == 401
        assert "form-action 'self'" in headers["content-security-policy"]
        assert b'<form method="post">' in body
        status, headers, body = site.raw("POST", "/docs", b"token=wrong", **FORM)
        assert status == 401
        assert "set-cookie" not in headers
        assert b"not the access token" in body
        form = urlencode({"token": TOKEN}).encode()
        status, headers, _ = site.raw("POST", "/docs", form, **FORM)
        assert (status, headers["location"]) == (303, "/docs")
        assert headers["referrer-policy"] == "no-referrer"
        cookie, *attributes = headers["set-cookie"].lower().split("; ")
        assert cookie == f"vhe-{site.port}={hashlib.sha256(TOKEN.encode()).hexdigest()}"
        assert {"httponly", "samesite=strict"} <= set(attributes)
        assert site.get("/api", Cookie=cookie)[0] == 200
        # Cookies of other programs on this machine, also malformed ones, do not matter.
        assert site.get("/api", Cookie=f'a="b; @[]{{}}=; {cookie}; vhe-1=2')[0] == 200
        assert site.get("/api", Cookie=f"{cookie}; {cookie}x")[0] == 401
        assert site.get("/api", Cookie=cookie.replace(str(site.port), "1"))[0] == 401
        padded = b"x" * MAX_FORM_BYTES + b"&" + form
        assert site.raw("POST", "/docs", padded, **FORM)[0] == 401
        others = {"Sec_Fetch_Site": "cross-site", **FORM}
        assert site.raw("POST", "/docs", form, **others)[0] == 403
    assert TOKEN not in caplog.text
    assert quote(TOKEN) not in caplog.text


def test_a_server_without_a_token_takes_no_forms(site) -> None:
    assert site.raw("POST", "/docs", b"token=x", **FORM)[0] == 415


@pytest.mark.parametrize("path", ["//evil.example/", "/%2Fevil.example/", "///evil.example"])
def test_no_redirect_to_another_host(explorer: Explorer, serving, path: str) -> None:
    with serving(explorer, token=TOKEN, hosts=None) as site:
        form = urlencode({"token": TOKEN}).encode()
        status, headers, _ = site.raw("POST", path, form, **FORM)
        assert status == 404
        assert "location" not in headers


def test_a_short_token_is_rejected(explorer: Explorer) -> None:
    with pytest.raises(VHEError, match="15 characters; give a random string of at least 16"):
        make_app(Service(Snapshot(explorer)), token="x" * 15)


def test_wrong_tokens_are_limited(
    explorer: Explorer, serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(explorer, token=TOKEN, hosts=None) as site:
        for _ in range(2 * MAX_FAILURES):  # without any token: not a guess
            assert site.get("/api")[0] == 401
        guesses = [site.get("/api", Authorization=f"Bearer {k}")[0] for k in range(MAX_FAILURES)]
        assert set(guesses) == {401}
        form = urlencode({"token": TOKEN}).encode()
        assert site.raw("POST", "/", form, **FORM)[0] == 429
        status, headers, _ = site.raw("GET", "/api", Authorization=BEARER)
        assert (status, headers["retry-after"]) == (429, "60")
        monkeypatch.setattr("vhe.web.guard.FAILURE_WINDOW", 0)
        assert site.get("/api", Authorization=BEARER)[0] == 200


def test_requests_by_pages_of_other_sites_are_refused(site) -> None:
    for path in ("/api", "/api/map", "/api/vertices/3"):
        status, _, body = site.raw("GET", path, Sec_Fetch_Site="cross-site")
        assert status == 403
        assert "other sites" in json.loads(body)["error"]
    body = b'{"text": "t1w2 t1w3 t1w4"}'
    assert site.post("/api/texts", body, Sec_Fetch_Site="cross-site")[0] == 403
    assert site.raw("GET", "/", Sec_Fetch_Site="cross-site")[0] == 200  # a link to the page
    for origin in ("same-origin", "none"):
        assert site.get("/api", Sec_Fetch_Site=origin)[0] == 200


@pytest.fixture
def slow(explorer: Explorer, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """An explorer whose explanations wait for `finish`; `calls` are those that started."""
    calls, finish = [], threading.Event()

    def pair(source: int, target: int) -> dict:
        calls.append((source, target))
        assert finish.wait(20)
        return {}

    changed = copy.copy(explorer)
    monkeypatch.setattr(changed, "pair", pair, raising=False)
    monkeypatch.setattr("vhe.web.worker.MAX_PENDING", 4)
    return SimpleNamespace(explorer=changed, calls=calls, finish=finish)


def test_a_full_queue_is_answered_with_503(slow: SimpleNamespace, serving) -> None:
    with serving(slow.explorer) as site, ThreadPoolExecutor(8) as pool:
        requests = [pool.submit(site.raw, "GET", f"/api/pairs/0/{k}") for k in range(1, 9)]
        until(lambda: sum(request.done() for request in requests) == 4, seconds=10)
        refused = [request.result() for request in requests if request.done()]
        for status, headers, body in refused:
            assert (status, headers["retry-after"]) == (503, "1")
            assert json.loads(body) == {"error": "The server is busy; try again later."}
        assert site.get("/api/vertices/3")[0] == 200  # other requests are answered
        slow.finish.set()
        assert sorted(request.result()[0] for request in requests) == [200] * 4 + [503] * 4


def test_requests_of_disconnected_clients_are_skipped(slow: SimpleNamespace, serving) -> None:
    with serving(slow.explorer) as site, ThreadPoolExecutor(2) as pool:
        first = pool.submit(site.get, "/api/pairs/0/1")
        until(lambda: slow.calls, seconds=10)
        for target in (2, 3):
            with socket.create_connection(("127.0.0.1", site.port)) as client:
                client.sendall(b"GET /api/pairs/0/%d HTTP/1.1\r\nHost: localhost\r\n\r\n" % target)
                time.sleep(0.2)
        last = pool.submit(site.get, "/api/pairs/0/4")
        time.sleep(0.2)
        slow.finish.set()
        assert (first.result()[0], last.result()[0]) == (200, 200)
    assert slow.calls == [(0, 1), (0, 4)]


def test_a_long_text_is_cut_before_it_is_queued(
    explorer: Explorer, serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    received, changed = [], copy.copy(explorer)

    def embed_text(text: str, k: int) -> dict:
        received.append(len(text))
        return {}

    monkeypatch.setattr(changed, "embed_text", embed_text, raising=False)
    with serving(changed) as site:
        text = "word " * (MAX_TEXT // 4)
        assert site.post("/api/texts", json.dumps({"text": text}).encode())[0] == 200
    assert received == [MAX_TEXT]


def test_the_cache_is_bounded_by_bytes() -> None:
    cache = AnswerCache(max_bytes=1000)
    for k in range(50):
        cache.put(b"%d" % k, b"x" * 98)
        cache.put(b"%d" % k, b"x" * 98)
        cache.get(b"0")
        assert cache.size == sum(len(a) + len(b) for a, b in cache.answers.items()) <= 1000
    assert list(cache.answers) == [*(b"%d" % k for k in range(41, 50)), b"0"]
    cache.put(b"large", b"x" * 2000)
    assert (cache.size, cache.answers) == (0, {})


def test_concurrent_requests(site) -> None:
    def request(k: int) -> int:
        if k % 5 == 0:
            return site.post("/api/texts", b'{"text": "t1w2 t2w3"}')[0]
        return site.get(f"/api/vertices/{k % 60}/suggestions?k={1 + k % 7}")[0]

    with ThreadPoolExecutor(32) as pool:
        assert set(pool.map(request, range(300))) == {200}
