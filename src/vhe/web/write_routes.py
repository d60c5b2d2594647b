"""Routes that change the network; they need ``--writable`` and an access token."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter
from starlette.responses import Response

from vhe.errors import VHEError
from vhe.web import schemas
from vhe.web.changes import Change, Texts
from vhe.web.guard import JSONResponse
from vhe.web.review_routes import CONFLICT, Numbering
from vhe.web.routes import ERRORS, MAX_TEXT, VertexNumber
from vhe.web.service import ReadOnlyError, Service
from vhe.web.worker import MAX_PENDING, busy


def write_routes(service: Service) -> APIRouter:
    routes = APIRouter(prefix="/api", responses=ERRORS)

    @routes.post(
        "/vertices",
        summary="Add texts to the network, with their links",
        response_model=schemas.Changed,
        responses=CONFLICT,
    )
    async def add_vertices(new: schemas.NewVertices) -> Response:
        explorer = service.snapshot.explorer
        texts: Texts = {v.id: (v.text[:MAX_TEXT], v.label) for v in new.vertices}
        if len(texts) < len(new.vertices):
            raise VHEError("Two of the new vertices have the same id.")
        links = [
            tuple(end if end in texts else explorer.id_of(end) for end in link)
            for link in new.links
        ]
        if any(not texts.keys() & {*link} for link in links):
            raise VHEError("Each link must have at least one new id; others go to /api/links.")
        return await changed(Change(texts, [(a, b) for a, b in links]))

    @routes.delete(
        "/vertices/{number}",
        summary="Remove a vertex with its links",
        response_model=schemas.Changed,
        responses=CONFLICT,
    )
    async def remove_vertex(
        number: VertexNumber,
        numbering: Numbering = None,
    ) -> Response:
        snapshot = service.snapshot
        service.check_numbering(snapshot, numbering)
        snapshot.explorer.vertex(number)
        return await changed(Change(removed=[snapshot.explorer.network.ids[number]]))

    @routes.post(
        "/links",
        summary="Add links between vertices of the network",
        response_model=schemas.Changed,
        responses=CONFLICT,
    )
    async def add_links(new: schemas.NewLinks) -> Response:
        id_of = service.snapshot.explorer.id_of
        return await changed(Change(links=[(id_of(a), id_of(b)) for a, b in new.links]))

    async def changed(change: Change) -> Response:
        if service.waiting_changes >= MAX_PENDING:
            raise busy()
        snapshot = await asyncio.wrap_future(service.write(change))
        explorer = snapshot.explorer
        entries = [explorer.entry(explorer.network.index(v)) for v in change.texts]
        state = {"version": snapshot.version, "numbering": snapshot.numbering}
        return JSONResponse(state | {"vertices": entries})

    @routes.post(
        "/reload",
        summary="Read the model folder again, without an interruption",
        response_model=schemas.Reloaded,
    )
    async def reload() -> Response:
        if service.journal is None:
            raise ReadOnlyError("This server is read-only; start it with --writable, or send HUP.")
        snapshot = await asyncio.wrap_future(service.reload())
        return JSONResponse({"version": snapshot.version, "numbering": snapshot.numbering})

    return routes
