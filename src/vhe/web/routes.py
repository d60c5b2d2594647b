"""Routes that answer questions about the network; vertices are addressed by number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from vhe.errors import VHEError
from vhe.web import schemas
from vhe.web.explorer import Answer
from vhe.web.guard import JSONResponse, json_bytes
from vhe.web.service import Service
from vhe.web.snapshot import Snapshot
from vhe.web.worker import Worker

MAX_VERTICES_INLINE = 10_000  # up to this, suggestions take milliseconds and need no thread
MAX_TEXT = 100_000  # characters of a new text; the rest is ignored

VertexNumber = Annotated[int, Path(description="vertex number, starting at 0")]
ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": schemas.Error, "description": description}
    for status, description in {
        401: "The access token is missing or wrong",
        403: "Not allowed from this host or site",
        404: "Unknown vertex",
        408: "The client has disconnected",
        413: "The request body is too large",
        415: "The request body is not JSON",
        422: "Invalid value",
        429: "Too many wrong access tokens",
        503: "Busy; try again later",
    }.items()
}


def question_routes(service: Service) -> APIRouter:
    """The routes that read."""
    routes = APIRouter(prefix="/api", responses=ERRORS)
    # The model has its own worker: requests for suggestions do not wait for a text to be embedded,
    # and the model never runs twice at a time. Answers that take a few milliseconds are computed
    # in the event loop, because switching threads would take longer.
    model, index = Worker(), Worker()

    async def run(
        worker: Worker | None,
        request: Request,
        snapshot: Snapshot,
        function: Callable[..., Answer],
        *arguments: Any,
    ) -> JSONResponse:
        def compute() -> bytes:
            return json_bytes(function(*arguments))

        key = repr((function.__name__, arguments)).encode()
        answer = snapshot.cache.get(key)
        if answer is None:
            answer = compute() if worker is None else await worker.run(request, compute)
            snapshot.cache.put(key, answer)
        return JSONResponse(answer)

    def quick(snapshot: Snapshot) -> Worker | None:
        return index if len(snapshot.explorer) > MAX_VERTICES_INLINE else None

    @routes.get("", summary="Name and size of the network", response_model=schemas.Network)
    async def network() -> Response:
        return JSONResponse(service.summary())

    @routes.get(
        "/map",
        summary="All vertices with their map coordinates, compressed with gzip",
        response_model=schemas.Map,
    )
    async def map_(request: Request) -> Response:
        snapshot = service.snapshot
        compressed = snapshot.map_if_compressed() or await model.run(
            request, snapshot.compressed_map
        )
        return JSONResponse(compressed, headers={"content-encoding": "gzip"})

    @routes.get(
        "/layout",
        summary="State of the map's layout, which is final when it has been computed",
        response_model=schemas.LayoutState,
    )
    async def layout() -> Response:
        return JSONResponse(service.snapshot.state)

    @routes.get(
        "/vertices",
        summary="Find vertices by id, or by words in ids and texts",
        response_model=schemas.Vertex | schemas.Found,
    )
    async def find_vertices(
        request: Request,
        q: Annotated[
            str | None, Query(max_length=500, description="words to search for", examples=["graph"])
        ] = None,
        id: Annotated[str | None, Query(description="vertex id, as printed")] = None,
        limit: Annotated[int, Query(ge=0, le=1000, description="vertices to describe")] = 20,
    ) -> Response:
        if (q is None) == (id is None):
            raise VHEError("Give one of the parameters q=WORDS and id=ID.")
        snapshot = service.snapshot
        if id is not None:
            return JSONResponse(snapshot.explorer.find(id))
        return await run(quick(snapshot), request, snapshot, snapshot.explorer.search, q, limit)

    @routes.get(
        "/vertices/{number}",
        summary="A vertex with its text, label and links",
        response_model=schemas.Vertex,
    )
    async def vertex(number: VertexNumber) -> Response:
        return JSONResponse(service.snapshot.explorer.vertex(number))

    @routes.get(
        "/vertices/{number}/links", summary="The links of a vertex", response_model=schemas.Links
    )
    async def links(
        number: VertexNumber,
        offset: Annotated[int, Query(ge=0, le=2**31, description="links to skip")] = 0,
        limit: Annotated[int, Query(ge=0, le=1000, description="links to return")] = 100,
    ) -> Response:
        return JSONResponse(service.snapshot.explorer.links(number, offset, limit))

    @routes.get(
        "/vertices/{number}/embedding",
        summary="The embedding of a vertex, with its standard deviation",
        response_model=schemas.Embedding,
    )
    async def embedding(number: VertexNumber) -> Response:
        return JSONResponse(service.snapshot.explorer.embedding(number))

    @routes.get(
        "/vertices/{number}/nearest",
        summary="The vertices with the nearest embeddings",
        response_model=schemas.Nearest,
    )
    async def nearest(
        request: Request,
        number: VertexNumber,
        k: Annotated[int, Query(ge=1, le=1000, description="number of vertices")] = 10,
    ) -> Response:
        snapshot = service.snapshot
        return await run(quick(snapshot), request, snapshot, snapshot.explorer.nearest, number, k)

    @routes.get(
        "/vertices/{number}/suggestions",
        summary="The most probable missing links of a vertex, without rejected ones",
        response_model=schemas.VertexSuggestions,
    )
    async def vertex_suggestions(
        request: Request,
        number: VertexNumber,
        k: Annotated[int, Query(ge=1, le=1000, description="number of suggestions")] = 10,
    ) -> Response:
        snapshot = service.snapshot
        decided = tuple(sorted(service.review(snapshot).of_vertex(number).items()))
        function = snapshot.explorer.suggestions
        return await run(quick(snapshot), request, snapshot, function, number, k, decided)

    @routes.get(
        "/pairs/{source}/{target}",
        summary="Probability and explanation of a link",
        response_model=schemas.PairExplanation,
    )
    async def pair(request: Request, source: VertexNumber, target: VertexNumber) -> Response:
        snapshot = service.snapshot
        return await run(model, request, snapshot, snapshot.explorer.pair, source, target)

    @routes.get(
        "/paths/{source}/{target}",
        summary="A shortest path between two vertices",
        response_model=schemas.Path,
    )
    async def path(request: Request, source: VertexNumber, target: VertexNumber) -> Response:
        snapshot = service.snapshot
        function = snapshot.explorer.path
        return await run(quick(snapshot), request, snapshot, function, source, target)

    @routes.post(
        "/texts",
        summary="Embed a text that is not in the network",
        response_model=schemas.EmbeddedText,
    )
    async def embed_text(request: Request, new: schemas.NewText) -> Response:
        snapshot = service.snapshot
        function, text = snapshot.explorer.embed_text, new.text[:MAX_TEXT]
        return await run(model, request, snapshot, function, text, new.k)

    return routes
