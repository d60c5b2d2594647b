"""Generated requests to every route of the OpenAPI document: no server error, valid responses."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from vhe.estimators import VHE
from vhe.web.app import make_app
from vhe.web.service import Service
from vhe.web.start import start_service

schemathesis = pytest.importorskip("schemathesis")

TOKEN = "a-long-random-token"
EXAMPLES = 5  # per route


def test_generated_requests(fitted: VHE, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import response_schema_conformance

    monkeypatch.setattr(Service, "_start_missing", lambda self: None)
    fitted.save(tmp_path / "model")
    service = start_service(tmp_path / "model", writable=True)
    service._run("ranking")
    service.start().result()
    headers = {"authorization": f"Bearer {TOKEN}"}
    app = make_app(service, token=TOKEN)
    schema = schemathesis.openapi.from_asgi("/openapi.json", app, headers=headers)
    routes = 0
    try:
        for operation in schema.get_all_operations():
            routes += 1

            @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
            @given(case=operation.ok().as_strategy())
            def check(case) -> None:
                response = case.call(headers=headers)
                checks = [not_a_server_error, response_schema_conformance]
                case.validate_response(response, checks=checks)

            check()
    finally:
        service.close()
    assert routes >= 20
