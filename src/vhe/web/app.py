"""The explorer as a web application: its page and its HTTP API."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import FastAPI, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, Response

from vhe import __version__
from vhe.errors import VHEError
from vhe.web.explorer import Answer, Explorer, UnknownVertexError
from vhe.web.guard import Guard, JSONResponse, error_response, json_bytes
from vhe.web.map_files import network_size
from vhe.web.pages import EXPLORER_SCRIPTS, SCRIPTS, STYLES, page_file, render

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_VERTICES_INLINE = 10_000  # up to this, suggestions take milliseconds and need no thread
MAX_PENDING = 64  # requests that a worker computes or holds in its queue
MAX_CACHE_BYTES = 2**26
MAX_TEXT = 100_000  # characters of a new text; the rest is ignored
MEDIA_TYPES = {"css": "text/css", "js": "text/javascript"}
STATIC_FILES = (*STYLES, *SCRIPTS, *EXPLORER_SCRIPTS)


class NewText(BaseModel):
    """A text that is not in the network."""

    text: str = Field(min_length=1, description="the text; unknown words are ignored")
    k: int = Field(10, ge=1, le=100, description="number of nearest vertices to return")


VertexNumber = Annotated[int, Path(description="vertex number, starting at 0")]


class Worker:
    """Runs one function at a time in a thread; requests wait for their turn in a bounded queue."""

    def __init__(self) -> None:
        self.turn, self.pending = asyncio.Lock(), 0

    async def run(self, request: Request, function: Callable[[], bytes]) -> bytes:
        """Run a function, unless the queue is full or the client has gone by then."""
        if self.pending >= MAX_PENDING:
            raise HTTPException(503, "The server is busy; try again later.", {"retry-after": "1"})
        self.pending += 1
        try:
            async with self.turn:
                if await request.is_disconnected():
                    raise HTTPException(408, "The client has disconnected.")
                return await asyncio.to_thread(function)
        finally:
            self.pending -= 1


class AnswerCache:
    """The most recently used answers, bounded by the total size of requests and answers."""

    def __init__(self, max_bytes: int = MAX_CACHE_BYTES) -> None:
        self.max_bytes, self.size = max_bytes, 0
        self.answers: dict[bytes, bytes] = {}  # least recently used first

    def get(self, key: bytes) -> bytes | None:
        answer = self.answers.pop(key, None)
        if answer is not None:
            self.answers[key] = answer
        return answer

    def put(self, key: bytes, answer: bytes) -> None:
        if key not in self.answers:
            self.answers[key] = answer
            self.size += len(key) + len(answer)
        while self.size > self.max_bytes:
            oldest = next(iter(self.answers))
            self.size -= len(oldest) + len(self.answers.pop(oldest))


def make_app(
    explorer: Explorer, *, token: str | None = None, hosts: Iterable[str] | None = None
) -> Guard:
    """The ASGI application; `Guard` documents ``token`` and ``hosts``."""
    app = FastAPI(
        title="vhe",
        version=__version__,
        description="Vertices are addressed by number; `/api/vertices?id=` returns that of an id.",
        docs_url=None,
        redoc_url=None,
    )
    # The model has its own worker: requests for suggestions do not wait for a text to be embedded,
    # and the model never runs twice at a time. Answers that take a few milliseconds are computed
    # in the event loop, because switching threads would take longer.
    model = Worker()
    index = Worker() if len(explorer) > MAX_VERTICES_INLINE else None
    cache = AnswerCache()

    async def run(
        worker: Worker | None, request: Request, function: Callable[..., Answer], *arguments: Any
    ) -> JSONResponse:
        def compute() -> bytes:
            return json_bytes(function(*arguments))

        key = repr((function.__name__, arguments)).encode()
        answer = cache.get(key)
        if answer is None:
            answer = compute() if worker is None else await worker.run(request, compute)
            cache.put(key, answer)
        return JSONResponse(answer)

    compressed_map = gzip.compress(json_bytes(explorer.map), 6)
    summary = explorer.summary()
    page = render(
        "explorer.html",
        title=summary["name"],
        size=network_size(explorer.network),
        scripts=(*SCRIPTS[1:], *EXPLORER_SCRIPTS),
    )
    static_files = {name: page_file(name) for name in STATIC_FILES}

    @app.get("/", include_in_schema=False)
    async def explorer_page() -> HTMLResponse:
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
        return HTMLResponse(render("api.html", title="vhe serve: HTTP API", api=app.openapi()))

    @app.get("/api", summary="Name and size of the network")
    async def network() -> JSONResponse:
        return JSONResponse(summary)

    @app.get("/api/map", summary="All vertices with their map coordinates, compressed with gzip")
    async def map_() -> JSONResponse:
        return JSONResponse(compressed_map, headers={"content-encoding": "gzip"})

    @app.get("/api/vertices", summary="Find vertices by id, or by words in ids and texts")
    async def find(
        request: Request,
        q: Annotated[str | None, Query(max_length=500, description="words to search for")] = None,
        id: Annotated[str | None, Query(description="vertex id, as printed")] = None,
        limit: Annotated[int, Query(ge=0, le=1000, description="vertices to describe")] = 20,
    ) -> JSONResponse:
        if (q is None) == (id is None):
            raise VHEError("Give one of the parameters q=WORDS and id=ID.")
        if id is not None:
            return JSONResponse(explorer.find(id))
        return await run(index, request, explorer.search, q, limit)

    @app.get("/api/vertices/{number}", summary="A vertex with its text, label and links")
    async def vertex(number: VertexNumber) -> JSONResponse:
        return JSONResponse(explorer.vertex(number))

    @app.get("/api/vertices/{number}/suggestions", summary="The most probable missing links")
    async def suggestions(
        request: Request,
        number: VertexNumber,
        k: Annotated[int, Query(ge=1, le=1000, description="number of suggestions")] = 10,
    ) -> JSONResponse:
        return await run(index, request, explorer.suggestions, number, k)

    @app.get("/api/pairs/{source}/{target}", summary="Probability and explanation of a link")
    async def pair(request: Request, source: VertexNumber, target: VertexNumber) -> JSONResponse:
        return await run(model, request, explorer.pair, source, target)

    @app.post("/api/texts", summary="Embed a text that is not in the network")
    async def embed_text(request: Request, new: NewText) -> JSONResponse:
        return await run(model, request, explorer.embed_text, new.text[:MAX_TEXT], new.k)

    @app.exception_handler(VHEError)
    async def invalid_value(request: Request, error: VHEError) -> JSONResponse:
        return error_response(404 if isinstance(error, UnknownVertexError) else 422, str(error))

    @app.exception_handler(RequestValidationError)
    async def invalid_request(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        if first["type"] == "json_invalid":
            problem = f"The request body is not valid JSON: {first['ctx']['error'].lower()}."
        else:
            where = " ".join(str(part) for part in first["loc"][1:]) or "request body"
            problem = f"{where}: {first['msg'].lower()}."
        return error_response(422, problem)

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

    return Guard(app, token=token, hosts=hosts)
