"""Middleware that tells clients which vertices the numbers of an answer refer to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.datastructures import MutableHeaders

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from vhe.web.service import Service


class NumberingHeader:
    """Adds the header ``vhe-numbering``: the numbering and the number of vertices.

    They are read after the answer was computed: an answer with the numbering that a page was
    loaded with is about the vertices of that page.
    """

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self.app, self.service = app, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def named(message: Message) -> None:
            if message["type"] == "http.response.start":
                snapshot = self.service.snapshot
                value = f"{snapshot.numbering}, {len(snapshot.explorer)}"
                MutableHeaders(scope=message)["vhe-numbering"] = value
            await send(message)

        await self.app(scope, receive, named)
