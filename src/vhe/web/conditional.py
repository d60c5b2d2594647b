"""Middleware for HEAD, ETag with 304 responses, and compression."""

from __future__ import annotations

import gzip
import hashlib
from typing import TYPE_CHECKING

from starlette.datastructures import Headers, MutableHeaders

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MIN_COMPRESSED = 1000  # bytes; below, compression saves nothing


class Conditional:
    """Answers HEAD like GET without the body, and GET with 304 if the client has the answer.

    Responses of the application come in one part.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD"):
            await self.app(scope, receive, send)
            return
        asked = Headers(scope=scope)
        start: Message = {}
        body = b""

        async def collect(message: Message) -> None:
            nonlocal start, body
            if message["type"] == "http.response.start":
                start = message
                return
            body += message.get("body", b"")
            if not message.get("more_body"):
                await self._finish(start, body, asked, scope["method"] == "HEAD", send)

        await self.app({**scope, "method": "GET"}, receive, collect)

    async def _finish(
        self, start: Message, body: bytes, asked: Headers, head: bool, send: Send
    ) -> None:
        headers = MutableHeaders(raw=[*start["headers"]])
        if start["status"] == 200:
            tag = f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
            headers["etag"] = tag
            headers.setdefault("cache-control", "private, no-cache")
            headers.add_vary_header("accept-encoding")
            if tag in [
                t.strip().removeprefix("W/") for t in asked.get("if-none-match", "").split(",")
            ]:
                start, body = {**start, "status": 304}, b""
                del headers["content-length"]
            else:
                body = _encoded(body, headers, "gzip" in asked.get("accept-encoding", ""))
                headers["content-length"] = str(len(body))
        await send({**start, "headers": headers.raw})
        await send({"type": "http.response.body", "body": b"" if head else body})


def _encoded(body: bytes, headers: MutableHeaders, accepts_gzip: bool) -> bytes:
    """The body as the client can read it."""
    compressed = headers.get("content-encoding") == "gzip"
    if compressed and not accepts_gzip:
        del headers["content-encoding"]
        return gzip.decompress(body)
    if not compressed and accepts_gzip and len(body) >= MIN_COMPRESSED:
        headers["content-encoding"] = "gzip"
        return gzip.compress(body, 5, mtime=0)
    return body
