"""Changes of several clients that are saved together: one does not fail for another."""

from concurrent.futures import Future
from pathlib import Path

import pytest
from pydantic import ValidationError

from vhe.errors import VHEError
from vhe.estimators import VHE
from vhe.fitted import FittedModel
from vhe.storage.journal import journal_file, read_journal
from vhe.web.changes import Change
from vhe.web.schemas import NewVertex
from vhe.web.service import Service
from vhe.web.start import start_service


@pytest.fixture
def service(fitted: VHE, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Service:
    monkeypatch.setattr(Service, "_start_missing", lambda self: None)
    fitted.save(tmp_path / "model")
    return start_service(tmp_path / "model", writable=True)


def test_a_change_that_cannot_be_applied_fails_alone(
    service: Service, fitted: VHE, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = FittedModel.add_vertices

    def fail(model, texts, *more):
        if "bad" in texts:
            raise VHEError("a text that this model cannot embed")
        return add(model, texts, *more)

    monkeypatch.setattr(FittedModel, "add_vertices", fail)
    blocked: Future[None] = Future()
    service._keeper.submit(blocked.result)  # so that the changes wait for each other
    results = [
        service.write(Change(texts={"good": ("t1w1 t1w2", None)})),
        service.write(Change(texts={"bad": ("t1w1", None)})),
        service.write(Change(links=[("v0", "good")])),
    ]
    blocked.set_result(None)
    assert results[0].result(30) is not None
    with pytest.raises(VHEError, match="cannot embed"):
        results[1].result(30)
    assert results[2].result(30) is not None
    assert "good" in service.snapshot.explorer.network
    assert "bad" not in service.snapshot.explorer.network
    records, _ = read_journal(journal_file(tmp_path / "model"))
    assert len(records) == 2
    service.close()


def test_a_full_queue_of_changes_is_answered_with_503(
    service: Service, serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vhe.web.write_routes.MAX_PENDING", 2)
    blocked: Future[None] = Future()
    token = "a-long-random-token"
    with serving(service, token=token, hosts=None) as site:
        service._keeper.submit(blocked.result)
        waiting = [service.write(Change(texts={k: ("t1w1", None)})) for k in "ab"]
        body = b'{"vertices": [{"id": "c", "text": "t1w2"}]}'
        headers = {"Authorization": f"Bearer {token}", "Content_Type": "application/json"}
        status, answered, _ = site.raw("POST", "/api/vertices", body, **headers)
        assert (status, answered["retry-after"]) == (503, "1")
        blocked.set_result(None)
        for change in waiting:
            change.result(30)
        assert site.raw("POST", "/api/vertices", body, **headers)[0] == 200


@pytest.mark.parametrize("wrong", [True, 1.0, None, ["a"]])
def test_ids_are_strings_or_integers(wrong: object) -> None:
    with pytest.raises(ValidationError):
        NewVertex.model_validate({"id": wrong, "text": "t1w1"})
