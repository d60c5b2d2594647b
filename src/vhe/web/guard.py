"""Middleware of the HTTP API: checks of host, token and body size, and security headers."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from contextlib import suppress
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY_BYTES = 2**20
MAX_DISCARDED_BYTES = 2**24  # of a larger body, read before the request is refused
BODY_TOO_LARGE = "The request body is larger than 1 MB."
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class JSONResponse(Response):
    """JSON in ASCII: lone surrogates in ids and texts are escaped instead of failing to encode."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return json.dumps(content, separators=(",", ":")).encode()


def error_response(status: int, message: str, headers: Any = None) -> JSONResponse:
    return JSONResponse({"error": message}, status_code=status, headers=headers)


class Guard:
    """ASGI middleware that refuses requests and adds `HEADERS` to every response.

    Parameters
    ----------
    token : str, optional
        Access token; required by every request if given.
    hosts : iterable of str, optional
        Allowed host names; default: all. Without a token this prevents DNS rebinding: a page of
        another site cannot read responses through a name that resolves to this machine.
    """

    def __init__(
        self, app: ASGIApp, *, token: str | None = None, hosts: Iterable[str] | None = None
    ) -> None:
        self.app = app
        self.hosts = None if hosts is None else frozenset(hosts)
        # The cookie holds a digest, so that a token with any characters fits into a header.
        self.digest = None if token is None else _digest(token)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return

        async def guarded_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                present = {name for name, _ in message["headers"]}
                added = [(k.encode(), v.encode()) for k, v in HEADERS.items()]
                added = [header for header in added if header[0] not in present]
                message["headers"] = [*message["headers"], *added]
            await send(message)

        length = 0

        async def guarded_receive() -> Message:
            nonlocal length
            message = await receive()
            length += len(message.get("body", b""))
            if length > MAX_BODY_BYTES:
                await _discard(receive, message)
                raise HTTPException(413, BODY_TOO_LARGE, {"connection": "close"})
            return message

        headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in scope["headers"]}
        refusal = self._refusal(scope, headers)
        if refusal is not None and refusal.status_code == 413:
            await _discard(receive, await receive())
        await (refusal or self.app)(scope, guarded_receive, guarded_send)

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> Response | None:
        """The response to a request that is not passed on to the application, or None."""
        if self.hosts is not None and _host_name(headers.get("host", "")) not in self.hosts:
            return error_response(
                403, "This host name is not allowed; open the address that vhe serve printed."
            )
        if self.digest is not None:
            given = parse_qs(scope["query_string"].decode("latin-1")).get("token")
            if given and hmac.compare_digest(_digest(given[0]), self.digest):
                redirect = RedirectResponse(scope["path"], status_code=303)
                redirect.set_cookie("vhe", self.digest, httponly=True, samesite="strict")
                return redirect
            if not self._is_authorised(headers):
                return error_response(
                    401,
                    "An access token is required: open /?token=TOKEN or send the header "
                    "Authorization: Bearer TOKEN.",
                    {"www-authenticate": "Bearer"},
                )
        length = headers.get("content-length", "0")
        if length.isdigit() and int(length) > MAX_BODY_BYTES:
            return error_response(413, BODY_TOO_LARGE, {"connection": "close"})
        return None

    def _is_authorised(self, headers: dict[str, str]) -> bool:
        """Whether the Authorization header or the cookie holds the token."""
        assert self.digest is not None
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            given = _digest(token.strip().encode("latin-1").decode("utf-8", "replace"))
            return hmac.compare_digest(given, self.digest)
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get("vhe")
        except CookieError:
            return False
        return cookie is not None and hmac.compare_digest(
            cookie.value.encode(), self.digest.encode()
        )


async def _discard(receive: Receive, message: Message) -> None:
    """Read what arrives of a body that is too large: a client that is sending reads no response."""
    length = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(1):
            while message.get("more_body") and length < MAX_DISCARDED_BYTES:
                message = await receive()
                length += len(message.get("body", b""))


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def _host_name(header: str) -> str:
    """The name in a Host header, without the port."""
    name, colon, port = header.lower().rpartition(":")
    return name if colon and port.isdigit() else header.lower()
