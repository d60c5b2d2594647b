"""The HTTP API: answers, error messages, limits and access control."""

import gzip
import hashlib
import json
import re
import socket
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files

import pytest

from vhe.web.app import STATIC_FILES
from vhe.web.explorer import Explorer
from vhe.web.guard import MAX_BODY_BYTES


def test_the_network_and_its_vertices(site, explorer: Explorer) -> None:
    assert site.get("/api") == (200, explorer.summary())
    assert site.get("/api/vertices/3") == (200, json.loads(json.dumps(explorer.vertex(3))))
    assert site.get("/api/vertices?id=v3")[1]["number"] == 3
    assert site.get("/api/vertices?q=t1w2&limit=2")[1]["vertices"][0]["number"] >= 0
    status, answer = site.get("/api/vertices/3/suggestions?k=4")
    assert (status, len(answer["links"])) == (200, 4)
    assert site.get("/api/pairs/3/8")[1]["source"]["id"] == "v3"


def test_the_map_is_compressed(site, explorer: Explorer) -> None:
    status, headers, body = site.raw("GET", "/api/map")
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
    for method in ("PUT", "DELETE", "PATCH"):
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
        code = folder.joinpath(name).read_text("utf-8")
        assert not re.search(r"https?://|@import|\beval\(|new Function|innerHTML", code), name


def test_the_api_page_describes_every_route(site) -> None:
    status, described = site.get("/openapi.json")
    assert status == 200
    page = site.raw("GET", "/docs")[2].decode()
    for path in described["paths"]:
        assert path in page
    assert len(described["paths"]) == 7


def test_a_token_is_required_everywhere(explorer: Explorer, serving) -> None:
    token = "päss word&"
    with serving(explorer, token=token, hosts=None) as site:
        for path in ("/", "/api", "/docs", "/openapi.json", "/page/map.css", "/?token=wrong"):
            status, headers, body = site.raw("GET", path)
            assert status == 401, path
            assert headers["www-authenticate"] == "Bearer"
            assert "token" in json.loads(body)["error"]
        assert site.get("/api", Authorization="Bearer wrong")[0] == 401
        assert site.get("/api", Cookie="vhe=wrong; ;=")[0] == 401
        bearer = f"Bearer {token}".encode().decode("latin-1")
        assert site.get("/api", Authorization=bearer)[0] == 200
        status, headers, _ = site.raw("GET", "/?token=p%C3%A4ss%20word%26")
        assert (status, headers["location"]) == (303, "/")
        cookie = headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "samesite=strict" in cookie.lower()
        assert hashlib.sha256(token.encode()).hexdigest() in cookie
        assert site.get("/api", Cookie=cookie.split(";")[0])[0] == 200


def test_concurrent_requests(site) -> None:
    def request(k: int) -> int:
        if k % 5 == 0:
            return site.post("/api/texts", b'{"text": "t1w2 t2w3"}')[0]
        return site.get(f"/api/vertices/{k % 60}/suggestions?k={1 + k % 7}")[0]

    with ThreadPoolExecutor(32) as pool:
        assert set(pool.map(request, range(300))) == {200}
