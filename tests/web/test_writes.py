"""Changes of the network: applied, journaled, replayed, and a new model folder swapped in."""

import json
import os
import shutil
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from vhe.errors import VHEError
from vhe.estimators import VHE
from vhe.storage.journal import Journal, journal_file, read_journal
from vhe.web.service import Service
from vhe.web.start import start_service

TOKEN = "a-long-random-token"
AUTHORISED = {"Authorization": f"Bearer {TOKEN}", "Content_Type": "application/json"}


@pytest.fixture(autouse=True)
def no_background(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests start the processes that they need."""
    monkeypatch.setattr(Service, "_start_missing", lambda self: None)


@pytest.fixture
def model(fitted: VHE, tmp_path: Path) -> Path:
    fitted.save(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def site(model: Path, serving):
    with serving(start_service(model, writable=True), token=TOKEN, hosts=None) as running:
        yield running


def send(site, method: str, path: str, body: object = None) -> tuple[int, dict]:
    data = None if body is None else json.dumps(body).encode()
    status, _, received = site.raw(method, path, data, **AUTHORISED)
    return status, json.loads(received)


NEW = {"vertices": [{"id": "new", "text": "t1w2 t1w3 t1w4", "label": "topic 1"}]}


def test_a_vertex_is_added_as_by_the_model(site, model: Path, fitted: VHE) -> None:
    status, answer = send(site, "POST", "/api/vertices", NEW | {"links": [["new", "v3"]]})
    assert (status, answer["vertices"][0]["number"]) == (200, 60)
    vertex = send(site, "GET", "/api/vertices?id=new")[1]
    assert [link["id"] for link in vertex["links"]] == ["v3"]
    expected = VHE.load(model).add_vertices({"new": NEW["vertices"][0]["text"]}, [("new", "v3")])
    found = send(site, "GET", "/api/vertices/60/embedding")[1]
    assert found["embedding"] == pytest.approx(expected.embedding_[60].tolist())
    likely = send(site, "GET", "/api/vertices/60/suggestions?k=3")[1]["links"]
    assert [link["id"] for link in likely] == [s.id for s in expected.suggest_links("new", 3)]
    map_ = send(site, "GET", "/api/map")[1]
    assert map_["ids"][60] == "new"
    assert (map_["numbering"], map_["version"] > 1) == (answer["numbering"], True)


def test_links_and_deletions(site) -> None:
    pair = send(site, "GET", "/api/vertices/0/suggestions?k=1")[1]["links"][0]
    assert send(site, "POST", "/api/links", {"links": [["v0", pair["id"]]]})[0] == 200
    likely = send(site, "GET", "/api/vertices/0/suggestions?k=60")[1]["links"]
    assert pair["id"] not in [link["id"] for link in likely]
    assert send(site, "GET", f"/api/pairs/0/{pair['number']}")[1]["linked"]
    numbering = send(site, "GET", "/api")[1]["numbering"]
    status, answer = send(site, "DELETE", f"/api/vertices/1?numbering={numbering}")
    assert (status, answer["numbering"]) == (200, numbering + 1)
    assert send(site, "GET", "/api/vertices/1")[1]["id"] == "v2"
    assert send(site, "GET", "/api/vertices?id=v1")[0] == 404
    assert send(site, "DELETE", f"/api/vertices/1?numbering={numbering}")[0] == 409


def test_a_restart_with_other_vertices_has_another_numbering(model: Path, serving) -> None:
    found = []
    for path in (None, "/api/vertices/1", None):
        with serving(start_service(model, writable=True), token=TOKEN, hosts=None) as site:
            found.append(send(site, "GET", "/api")[1]["numbering"])
            if path:
                send(site, "DELETE", path)
    assert found[0] == found[1] != found[2]


def test_answers_name_the_numbering(site) -> None:
    before = send(site, "GET", "/api")[1]["numbering"]
    headers = site.raw("GET", "/api/vertices/0", **AUTHORISED)[1]
    assert headers["vhe-numbering"] == f"{before}, 60"
    send(site, "DELETE", "/api/vertices/5")
    headers = site.raw("GET", "/api/vertices/0", **AUTHORISED)[1]
    assert headers["vhe-numbering"] == f"{before + 1}, 59"


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/api/vertices", {"vertices": []}, 422),
        ("POST", "/api/vertices", {"vertices": [{"id": "v3", "text": "t"}]}, 422),
        ("POST", "/api/vertices", {"vertices": 2 * NEW["vertices"]}, 422),
        ("POST", "/api/vertices", NEW | {"links": [["new", "unknown"]]}, 422),
        ("POST", "/api/vertices", NEW | {"links": [["v1", "v2"]]}, 422),
        ("POST", "/api/links", {"links": [["v1", "v1"]]}, 422),
        ("POST", "/api/links", {"links": [["v1", "nobody"]]}, 422),
        ("DELETE", "/api/vertices/60", None, 404),
    ],
)
def test_an_invalid_change_changes_nothing(site, model, method, path, body, status) -> None:
    assert send(site, method, path, body)[0] == status
    assert send(site, "GET", "/api")[1]["version"] <= 3  # layout and ranking
    assert read_journal(journal_file(model))[0] == []


def test_changes_need_the_option_and_the_token(model: Path, serving) -> None:
    with serving(start_service(model), token=TOKEN, hosts=None) as site:
        assert send(site, "POST", "/api/vertices", NEW)[0] == 403
        assert send(site, "POST", "/api/reload")[0] == 403
    with serving(start_service(model, writable=True), token=TOKEN, hosts=None) as site:
        body = json.dumps(NEW).encode()
        assert site.post("/api/vertices", body)[0] == 401
        assert site.get("/health")[0] == 200
        assert site.get("/ready")[0] in (200, 503)


def test_changes_survive_a_restart_and_a_new_model(model: Path, serving, network) -> None:
    with serving(start_service(model, writable=True), token=TOKEN, hosts=None) as site:
        send(site, "POST", "/api/vertices", NEW | {"links": [["new", "v3"]]})
        send(site, "POST", "/api/links", {"links": [["v0", "v2"]]})
        send(site, "DELETE", "/api/vertices/1")
    with serving(start_service(model, writable=True), token=TOKEN, hosts=None) as site:
        assert send(site, "GET", "/api")[1]["vertices"] == 60
        before = send(site, "GET", "/api/vertices?id=new")[1]
        assert [link["id"] for link in before["links"]] == ["v3"]
        # the folder of a model that knows one of the changes already
        known = network.with_edges(np.concatenate([network.edges, [[0, 2]]]))
        tiny = {"max_steps": 2, "latent_dim": 16, "min_count": 1, "max_words": 16}
        VHE(random_state=1, verbose=False, **tiny).fit(known).save(model)
        version = send(site, "GET", "/api")[1]["version"]
        status, answer = send(site, "POST", "/api/reload")
        assert status == 200
        assert answer["version"] > version
        after = send(site, "GET", "/api/vertices?id=new")[1]
        assert [link["id"] for link in after["links"]] == ["v3"]
        assert send(site, "GET", "/api/vertices?id=v1")[0] == 404
        links = send(site, "GET", "/api/vertices/0/links")[1]["links"]
        assert [link["id"] for link in links].count("v2") == 1


def test_a_hangup_reloads(model: Path, fitted: VHE, tmp_path: Path) -> None:
    from vhe.web.server import reload_on_hangup

    service = start_service(model)
    previous = signal.getsignal(signal.SIGHUP)
    reload_on_hangup(service)
    try:
        VHE.load(model).add_vertices({"more": "t1w1 t1w2"}).save(model)
        os.kill(os.getpid(), signal.SIGHUP)
        service._keeper.submit(int).result()
        assert "more" in service.snapshot.explorer.network
        shutil.rmtree(model)
        os.kill(os.getpid(), signal.SIGHUP)
        service._keeper.submit(int).result()
        assert "more" in service.snapshot.explorer.network  # a failed reload changes nothing
    finally:
        signal.signal(signal.SIGHUP, previous)
        service.close()


def test_the_map_and_the_ranking_are_stored_with_the_model(model: Path) -> None:
    service = start_service(model)
    assert service.snapshot.layout == "quick"
    for task in ("layout", "ranking"):
        service._run(task)
    service._keeper.submit(int).result()
    service.close()
    again = start_service(model)
    assert again.snapshot.layout == "final"
    np.testing.assert_array_equal(
        again.snapshot.explorer.coordinates, service.snapshot.explorer.coordinates
    )
    assert again.snapshot.ranking is not None
    assert again.snapshot.ranking.rows == service.snapshot.ranking.rows
    again.close()
    other = start_service(model, seed=5)
    assert other.snapshot.layout == "quick"  # the stored one has another seed
    other.close()
    VHE.load(model).add_vertices({"more": "t1w1 t1w2"}).save(model)
    changed: Service = start_service(model)
    assert changed.snapshot.layout == "quick"
    changed.close()


def test_etag_head_and_compression(site) -> None:
    path = "/api/vertices/3/suggestions?k=50"
    _, headers, body = site.raw("GET", path, **AUTHORISED)
    assert "content-encoding" not in headers
    again = site.raw("GET", path, If_None_Match=headers["etag"], **AUTHORISED)
    assert (again[0], again[2]) == (304, b"")
    head = site.raw("HEAD", path, **AUTHORISED)
    assert (head[0], head[1]["content-length"], head[2]) == (200, str(len(body)), b"")
    _, packed, small = site.raw("GET", path, Accept_Encoding="gzip", **AUTHORISED)
    assert packed["content-encoding"] == "gzip"
    assert len(small) < len(body)
    assert packed["etag"] == headers["etag"]


def test_the_access_log(site, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "vhe.access")
    site.raw("GET", f"/api/vertices/3?token={TOKEN}")
    for _ in range(100):  # the line follows the response
        if "127.0.0.1 GET /api/vertices/3 401" in caplog.text:
            break
        time.sleep(0.05)
    else:
        pytest.fail(caplog.text)
    assert TOKEN not in caplog.text


# --- the journal


def test_a_torn_tail_is_dropped_and_other_damage_refused(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal(path)
    with pytest.raises(VHEError, match="another server"):
        Journal(path)
    journal.append([{"a": 1}])
    journal.append([{"b": "ä\n"}])
    journal.close()
    whole = path.read_bytes()
    ends = [k + 1 for k in range(len(whole)) if whole[k : k + 1] == b"\n"]
    for size in range(len(whole) + 1):
        path.write_bytes(whole[:size])
        opened = Journal(path)
        assert len(opened.records) == sum(end <= size for end in ends[1:])
        opened.append([{"c": 3}])
        opened.close()
        assert read_journal(path)[0][-1] == {"c": 3}
    for position in range(ends[0], len(whole) - 1):  # records that were acknowledged
        damaged = bytearray(whole)
        damaged[position] ^= 1
        path.write_bytes(damaged)
        with pytest.raises(VHEError, match=r"journal:\d: damaged"):
            Journal(path)
    path.write_bytes(b"something else\n")
    with pytest.raises(VHEError, match="not a journal"):
        Journal(path)


def test_a_failed_flush_stops_the_journal(tmp_path: Path, monkeypatch) -> None:
    journal = Journal(tmp_path / "journal")

    def fail(_: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(VHEError, match="cannot be written"):
            journal.append([{"a": 1}])
    with pytest.raises(VHEError, match="cannot be written"):
        journal.append([{"a": 1}])
    journal.close()
