"""Middleware that logs requests by the logger ``vhe.access``."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = logging.getLogger("vhe.access")


class AccessLog:
    """Logs one line per request with level INFO, without its query, which has words of a search."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not log.isEnabledFor(logging.INFO):
            await self.app(scope, receive, send)
            return
        began, status, size = time.perf_counter(), 0, 0

        async def counting(message: Message) -> None:
            nonlocal status, size
            status = message.get("status", status)
            size += len(message.get("body", b""))
            await send(message)

        try:
            await self.app(scope, receive, counting)
        finally:
            client = scope["client"][0] if scope["client"] else "-"
            path = ascii(scope["path"])[1:-1]  # control characters cannot forge lines
            milliseconds = 1000 * (time.perf_counter() - began)
            log.info(
                "%s %s %s %d %d %.1f ms", client, scope["method"], path, status, size, milliseconds
            )
