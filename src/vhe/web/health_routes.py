"""Routes for whoever watches the server; they need no access token and reveal nothing."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from vhe.web import schemas
from vhe.web.guard import JSONResponse
from vhe.web.service import Service

HEALTH = ("/health", "/ready")


def health_routes(service: Service) -> APIRouter:
    routes = APIRouter()

    @routes.get("/health", summary="Whether the server runs", response_model=schemas.Health)
    async def health() -> Response:
        failed = service.journal is not None and service.journal.failed
        return JSONResponse({"status": "changes cannot be saved" if failed else "ok"})

    @routes.get(
        "/ready",
        summary="Whether the first requests are answered as quickly as later ones",
        response_model=schemas.Health,
        responses={503: {"model": schemas.Health, "description": "Not yet"}},
    )
    async def ready() -> Response:
        if service.ready.is_set():
            return JSONResponse({"status": "ready"})
        return JSONResponse({"status": "starting"}, status_code=503, headers={"retry-after": "1"})

    return routes
