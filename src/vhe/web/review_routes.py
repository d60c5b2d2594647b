"""Routes for the review of suggested links: the ranked list, decisions, and their precision."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from starlette.responses import Response

from vhe.storage.decisions import Decision
from vhe.web import schemas
from vhe.web.explorer import Answer, json_value
from vhe.web.exports import csv_text, markdown_checklist
from vhe.web.guard import JSONResponse
from vhe.web.ranking import precision
from vhe.web.routes import ERRORS, VertexNumber
from vhe.web.service import Service

CONFLICT: dict[int | str, dict[str, Any]] = {
    409: {"model": schemas.Error, "description": "Vertex numbers have changed"}
}
Numbering = Annotated[
    int | None, Query(description="status 409 if vertex numbers have changed since")
]
MAX_OFFSET = 10**9


def review_routes(service: Service) -> APIRouter:
    routes = APIRouter(prefix="/api", responses=ERRORS)

    @routes.get(
        "/suggestions",
        summary="The ranked missing links of the whole network, with the decisions on them",
        response_model=schemas.Suggestions,
    )
    async def suggestions(
        state: Annotated[
            schemas.ReviewState | Literal["all"], Query(description="only links in this state")
        ] = "open",
        label: Annotated[
            str | None, Query(description="only links of a vertex with this label")
        ] = None,
        min_probability: Annotated[
            float, Query(ge=0, le=1, description="smallest probability")
        ] = 0.0,
        offset: Annotated[int, Query(ge=0, le=MAX_OFFSET, description="links to skip")] = 0,
        limit: Annotated[int, Query(ge=0, le=1000, description="links to return")] = 50,
    ) -> Response:
        return JSONResponse(service.suggestions(state, label, min_probability, offset, limit))

    @routes.put(
        "/decisions/{source}/{target}",
        summary="Accept, reject or postpone a suggested link",
        response_model=schemas.SuggestedLink,
        responses=CONFLICT,
    )
    async def decide(
        source: VertexNumber, target: VertexNumber, decision: schemas.DecisionState
    ) -> Response:
        return await changed(source, target, decision.state, decision.numbering)

    @routes.delete(
        "/decisions/{source}/{target}",
        summary="Undo a decision",
        response_model=schemas.SuggestedLink,
        responses=CONFLICT,
    )
    async def undo(
        source: VertexNumber,
        target: VertexNumber,
        numbering: Numbering = None,
    ) -> Response:
        return await changed(source, target, None, numbering)

    async def changed(
        source: int, target: int, state: schemas.Decided | None, numbering: int | None
    ) -> Response:
        answer = await asyncio.to_thread(service.decide, source, target, state, numbering)
        return JSONResponse(answer)

    @routes.get(
        "/decisions",
        summary="All decisions, as JSON, CSV or a Markdown checklist",
        response_model=list[schemas.SavedDecision],
        responses={200: {"content": {"text/csv": {}, "text/markdown": {}}}},
    )
    async def decisions(
        format: Annotated[
            Literal["json", "csv", "markdown"], Query(description="format of the answer")
        ] = "json",
    ) -> Response:
        saved = [] if service.decisions is None else [*service.decisions.all().values()]
        rows = [_row(d) for d in sorted(saved, key=lambda d: (d.state, -d.probability))]
        if format == "json":
            return JSONResponse(rows)
        writer, media_type, name = {
            "csv": (csv_text, "text/csv", "decisions.csv"),
            "markdown": (markdown_checklist, "text/markdown", "decisions.md"),
        }[format]
        attachment = {"content-disposition": f'attachment; filename="{name}"'}
        body = writer(rows).encode("utf-8", "replace")
        return Response(body, media_type=media_type, headers=attachment)

    @routes.get(
        "/precision",
        summary="Share of accepted links among those reviewed, by predicted probability",
        response_model=schemas.Precision,
    )
    async def review_precision() -> Response:
        saved = [] if service.decisions is None else service.decisions.all().values()
        return JSONResponse(precision(saved))

    return routes


def _row(decision: Decision) -> Answer:
    return {
        "source": json_value(decision.source),
        "target": json_value(decision.target),
        "state": decision.state,
        "probability": decision.probability,
        "decided": decision.decided,
    }
