"""Decisions on suggested links: saved, undone, exported, and respected by suggestions."""

import json
from pathlib import Path

import numpy as np
import pytest

from vhe.errors import VHEError
from vhe.storage.decisions import Decisions, decisions_file, pair_key
from vhe.web.explorer import Explorer
from vhe.web.ranking import precision, wilson
from vhe.web.service import Service
from vhe.web.snapshot import Snapshot

JSON = {"Content_Type": "application/json"}


@pytest.fixture
def reviewing(explorer: Explorer, serving, tmp_path: Path):
    service = Service(Snapshot(explorer), decisions=Decisions(tmp_path / "decisions.sqlite"))
    service._run("ranking")
    service._keeper.submit(int).result()
    with serving(service) as site:
        yield site


def put(site, pair: tuple[int, int], body: dict) -> tuple[int, dict]:
    path = f"/api/decisions/{pair[0]}/{pair[1]}"
    status, _, received = site.raw("PUT", path, json.dumps(body).encode(), **JSON)
    return status, json.loads(received)


def pairs(answer: dict) -> list[tuple[int, int]]:
    return [(item["source"]["number"], item["target"]["number"]) for item in answer["items"]]


def test_the_ranking_is_that_of_the_model(reviewing, explorer: Explorer) -> None:
    table = explorer.model.suggest_all(20)
    _, answer = reviewing.get("/api/suggestions?limit=20")
    assert answer["ready"]
    assert answer["total"] == answer["counts"]["open"] == 60 * 59 / 2 - len(explorer.network.links)
    assert [item["probability"] for item in answer["items"]] == table["probability"].tolist()
    assert [item["source"]["id"] for item in answer["items"]] == table["source"].tolist()
    _, second = reviewing.get("/api/suggestions?limit=10&offset=10")
    assert pairs(second) == pairs(answer)[10:]
    _, likely = reviewing.get("/api/suggestions?limit=1000&min_probability=0.05")
    assert likely["total"] == (explorer.model.suggest_all(2000)["probability"] >= 0.05).sum()
    _, labelled = reviewing.get("/api/suggestions?limit=1000&label=topic%201")
    labels = explorer.network.labels
    assert labels is not None
    assert all("topic 1" in (labels[i], labels[j]) for i, j in pairs(labelled))


def test_decisions_are_listed_undone_and_exported(reviewing) -> None:
    _, answer = reviewing.get("/api/suggestions?limit=4")
    first, second, third, fourth = pairs(answer)
    status, item = put(reviewing, first, {"state": "accepted"})
    assert (status, item["state"]) == (200, "accepted")
    assert item["decided"].endswith("+00:00")
    assert item["probability"] == pytest.approx(answer["items"][0]["probability"])
    assert put(reviewing, (second[1], second[0]), {"state": "rejected"})[0] == 200
    put(reviewing, third, {"state": "postponed"})
    _, left = reviewing.get("/api/suggestions?limit=1")
    assert pairs(left) == [fourth]
    assert left["reviewed"] == 2
    assert [left["counts"][k] for k in ("accepted", "rejected", "postponed")] == [1, 1, 1]
    assert pairs(reviewing.get("/api/suggestions?state=rejected")[1]) == [second]
    assert pairs(reviewing.get("/api/suggestions?state=all&limit=4")[1]) == pairs(answer)
    _, rows = reviewing.get("/api/decisions")
    assert {row["state"] for row in rows} == {"accepted", "rejected", "postponed"}
    table = reviewing.raw("GET", "/api/decisions?format=csv")[2].decode()
    assert table.splitlines()[0] == "source,target,state,probability,decided"
    assert len(table.splitlines()) == 4
    checklist = reviewing.raw("GET", "/api/decisions?format=markdown")[2].decode()
    assert f"- [x] `v{first[0]}` and `v{first[1]}`" in checklist
    status, _, body = reviewing.raw("DELETE", f"/api/decisions/{first[0]}/{first[1]}")
    assert (status, json.loads(body)["state"]) == (200, "open")
    assert pairs(reviewing.get("/api/suggestions?limit=1")[1]) == [first]
    found = reviewing.get("/api/precision")[1]
    assert (found["reviewed"], found["accepted"]) == (1, 0)


def test_a_rejected_pair_is_not_suggested_again(reviewing) -> None:
    best, second, third = reviewing.get("/api/vertices/3/suggestions?k=3")[1]["links"]
    put(reviewing, (3, best["number"]), {"state": "rejected"})
    put(reviewing, (3, third["number"]), {"state": "postponed"})
    links = reviewing.get("/api/vertices/3/suggestions?k=3")[1]["links"]
    assert [link["number"] for link in links[:2]] == [second["number"], third["number"]]
    assert [link["state"] for link in links] == ["open", "postponed", "open"]
    of_other = reviewing.get(f"/api/vertices/{best['number']}/suggestions?k=60")[1]["links"]
    assert 3 not in [link["number"] for link in of_other]


@pytest.mark.parametrize(
    ("pair", "body", "status"),
    [
        ((0, 60), {"state": "accepted"}, 404),
        ((3, 3), {"state": "accepted"}, 422),
        ((0, 5), {"state": "open"}, 422),
        ((0, 5), {"state": "accepted", "numbering": 7}, 409),
        ((0, 5), {"state": "accepted", "other": 1}, 422),
    ],
)
def test_an_invalid_decision_is_refused(reviewing, pair, body, status: int) -> None:
    assert put(reviewing, pair, body)[0] == status
    assert reviewing.get("/api/decisions")[1] == []


def test_decisions_of_other_sites_are_refused(reviewing) -> None:
    body = b'{"state": "accepted"}'
    own = f"http://127.0.0.1:{reviewing.port}"
    for headers in (
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "null"},
        {"Content_Type": "text/plain"},
    ):
        status, _, _ = reviewing.raw("PUT", "/api/decisions/0/5", body, **{**JSON, **headers})
        assert status in (403, 415), headers
    status, _, _ = reviewing.raw("PUT", "/api/decisions/0/5", body, Origin=own, **JSON)
    assert status == 200


def test_without_a_file_nothing_is_decided(site) -> None:
    assert put(site, (0, 5), {"state": "accepted"})[0] == 503
    assert site.get("/api/decisions") == (200, [])


def test_decisions_survive_and_are_shared(tmp_path: Path) -> None:
    path = decisions_file(tmp_path / "model")
    first = Decisions(path)
    first.decide("b", ("a", 1), "accepted", 0.5)
    second = Decisions(path)
    second.decide(("a", 1), "b", "rejected", 0.25)
    (decision,) = first.all().values()
    assert (decision.state, decision.probability) == ("rejected", 0.25)
    assert {decision.source, decision.target} == {"b", ("a", 1)}
    assert first.pairs("rejected") != []
    assert first.undo("b", ("a", 1))
    assert not first.undo("b", ("a", 1))
    assert second.all() == {}
    assert pair_key(1, "1") == pair_key("1", 1)


def test_another_file_is_not_used_for_decisions(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no database, but long enough to be read as one" * 20)
    with pytest.raises(VHEError, match="cannot be read"):
        Decisions(tmp_path / "text")
    import sqlite3

    with sqlite3.connect(tmp_path / "other") as other:
        other.execute("CREATE TABLE t (x)")
    other.close()
    with pytest.raises(VHEError, match="not a file of decisions"):
        Decisions(tmp_path / "other")
    with pytest.raises(VHEError, match="no such file"):
        Decisions(tmp_path / "missing", create=False)


def test_precision_by_predicted_probability(tmp_path: Path) -> None:
    decisions = Decisions(tmp_path / "d")
    for k in range(10):
        decisions.decide(k, "x", "accepted" if k < 3 else "rejected", 0.31)
    decisions.decide("p", "q", "postponed", 0.31)
    decisions.decide("p", "r", "accepted", 1.0)
    found = precision(decisions.all().values())
    inside = found["bins"][3]
    assert (inside["reviewed"], inside["precision"]) == (10, pytest.approx(0.3))
    assert found["bins"][9]["accepted"] == 1
    # Wilson's interval holds the proportions whose score test does not reject the observation
    low, high = wilson(3, 10)
    assert (inside["low"], inside["high"]) == (low, high)
    for p in (low, high):
        assert abs(0.3 - p) / np.sqrt(p * (1 - p) / 10) == pytest.approx(1.96, abs=1e-3)
