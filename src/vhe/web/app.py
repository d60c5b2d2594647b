"""The explorer as a web application: its pages, its HTTP API, and its error messages."""

from __future__ import annotations

from collections.abc import Iterable

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp

from vhe import __version__
from vhe.errors import VHEError
from vhe.web.access_log import AccessLog
from vhe.web.api_page import described_routes
from vhe.web.conditional import Conditional
from vhe.web.explorer import UnknownVertexError
from vhe.web.guard import Guard, JSONResponse, error_response
from vhe.web.health_routes import HEALTH, health_routes
from vhe.web.invalid import described_error
from vhe.web.map_files import network_size
from vhe.web.numbering import NumberingHeader
from vhe.web.pages import EXPLORER_SCRIPTS, SCRIPTS, STYLES, page_file, render
from vhe.web.review_routes import review_routes
from vhe.web.routes import question_routes
from vhe.web.service import ConflictError, ReadOnlyError, Service, UnavailableError
from vhe.web.write_routes import write_routes

MEDIA_TYPES = {"css": "text/css", "js": "text/javascript"}
STATIC_FILES = (*STYLES, *SCRIPTS, *EXPLORER_SCRIPTS)
STATUS = {UnknownVertexError: 404, ReadOnlyError: 403, ConflictError: 409, UnavailableError: 503}


def make_app(
    service: Service,
    *,
    token: str | None = None,
    hosts: Iterable[str] | None = None,
    framed: bool = False,
) -> ASGIApp:
    """The ASGI application; `Guard` documents ``token``, ``hosts`` and ``framed``."""
    app = FastAPI(
        title="vhe",
        version=__version__,
        description="Vertices are addressed by number; `/api/vertices?id=` returns that of an id.",
        docs_url=None,
        redoc_url=None,
        generate_unique_id_function=lambda route: route.name.rstrip(
            "_"
        ),  # names in generated clients
    )
    app.include_router(question_routes(service))
    app.include_router(review_routes(service))
    app.include_router(write_routes(service))
    app.include_router(health_routes(service))
    _add_pages(app, service)
    _add_error_handlers(app)
    guarded = Guard(
        Conditional(NumberingHeader(app, service)),
        token=token,
        hosts=hosts,
        public=HEALTH,
        framed=framed,
    )
    return AccessLog(guarded)


def _add_pages(app: FastAPI, service: Service) -> None:
    static_files = {name: page_file(name) for name in STATIC_FILES}

    @app.get("/", include_in_schema=False)
    async def explorer_page() -> HTMLResponse:
        network = service.snapshot.explorer.network
        page = render(
            "explorer.html",
            title=network.name,
            size=network_size(network),
            scripts=(*SCRIPTS[1:], *EXPLORER_SCRIPTS),
        )
        return HTMLResponse(page)

    @app.get("/page/{name}", include_in_schema=False)
    async def static_file(name: str) -> Response:
        if name not in static_files:
            raise HTTPException(404)
        media_type = MEDIA_TYPES[name.rpartition(".")[2]]
        headers = {"cache-control": "no-cache"}
        return Response(static_files[name], media_type=media_type, headers=headers)

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        routes = described_routes(app.openapi())
        return HTMLResponse(render("api.html", title="vhe serve: HTTP API", routes=routes))


def _add_error_handlers(app: FastAPI) -> None:
    @app.exception_handler(VHEError)
    async def invalid_value(request: Request, error: VHEError) -> JSONResponse:
        return error_response(STATUS.get(type(error), 422), str(error))

    @app.exception_handler(RequestValidationError)
    async def invalid_request(request: Request, error: RequestValidationError) -> JSONResponse:
        return error_response(422, described_error(error.errors()))

    @app.exception_handler(HTTPException)
    async def http_error(request: Request, error: HTTPException) -> JSONResponse:
        if error.status_code == 400:  # raised for a body that is not UTF-8
            return error_response(422, "The request body is not valid JSON.")
        detail = str(error.detail)
        message = detail if detail.endswith(".") else f"{detail.capitalize()}."
        return error_response(error.status_code, message, error.headers)

    @app.exception_handler(Exception)
    async def internal_error(request: Request, error: Exception) -> JSONResponse:
        return error_response(500, "Internal server error (see the log of vhe serve).")
