"""Middleware of the HTTP API: checks of host, token and body size, and security headers."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import time
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from vhe.errors import VHEError
from vhe.web.login import is_login, login_page, submitted_token, wants_page

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY_BYTES = 2**20
MAX_DISCARDED_BYTES = 2**24  # of a larger body, read before the request is refused
MIN_TOKEN_LENGTH = 16
MAX_FAILURES, FAILURE_WINDOW = 20, 60  # wrong tokens per client address and number of seconds
FRAMING = "http://localhost:* http://127.0.0.1:* vscode-webview:"  # notebooks
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


def json_bytes(content: Any) -> bytes:
    """JSON in ASCII: lone surrogates in ids and texts are escaped instead of failing to encode."""
    return json.dumps(content, separators=(",", ":")).encode()


class JSONResponse(Response):
    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return content if isinstance(content, bytes) else json_bytes(content)


def error_response(status: int, message: str, headers: Any = None) -> JSONResponse:
    return JSONResponse({"error": message}, status_code=status, headers=headers)


def check_token(token: str) -> None:
    """Reject an access token that could be guessed."""
    if len(token) < MIN_TOKEN_LENGTH:
        raise VHEError(
            f"the access token has {len(token)} characters; "
            f"give a random string of at least {MIN_TOKEN_LENGTH}"
        )


class Guard:
    """ASGI middleware that refuses requests and adds `HEADERS` to every response.

    Parameters
    ----------
    token : str, optional
        Access token; required by every request if given.
    hosts : iterable of str, optional
        Allowed host names; default: all. Without a token this prevents DNS rebinding: a page of
        another site cannot read responses through a name that resolves to this machine.
    public : iterable of str
        Paths that need neither, such as that of a health check.
    framed : bool
        Whether a page of this machine, such as a notebook, may show the pages in a frame.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        token: str | None = None,
        hosts: Iterable[str] | None = None,
        public: Iterable[str] = (),
        framed: bool = False,
    ) -> None:
        if token is not None:
            check_token(token)
        self.app, self.public = app, frozenset(public)
        self.hosts = None if hosts is None else frozenset(hosts)
        # The cookie holds a digest, so that a token with any characters fits into a header.
        self.digest = None if token is None else _digest(token)
        policy = HEADERS["content-security-policy"]
        framing = policy.replace("frame-ancestors 'none'", f"frame-ancestors {FRAMING}")
        headers = HEADERS | {"content-security-policy": framing if framed else policy}
        self.headers = [(k.encode(), v.encode()) for k, v in headers.items()]
        self.failures: Counter[str] = Counter()  # wrong tokens by client address
        self.failures_since = time.monotonic()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return

        async def guarded_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                present = {name for name, _ in message["headers"]}
                added = [header for header in self.headers if header[0] not in present]
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
        if refusal is None and self.digest is not None and is_login(scope, headers):
            refusal = self._log_in(scope, await submitted_token(receive))
        if refusal is not None and refusal.status_code == 413:
            await _discard(receive, await receive())
        await (refusal or self.app)(scope, guarded_receive, guarded_send)

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> Response | None:
        """The response to a request that is not passed on to the application, or None."""
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        if path in self.public:
            return None
        if self.hosts is not None and _host_name(headers.get("host", "")) not in self.hosts:
            return error_response(
                403, "This host name is not allowed; open the address that vhe serve printed."
            )
        if scope["path"].startswith("//"):  # a redirect to it would lead to another host
            return error_response(404, "Not found.")
        if _of_other_site(scope, headers):
            return error_response(403, "Requests by pages of other sites are not allowed.")
        if self.digest is not None and (response := self._too_many_failures(scope)):
            return response
        if self.digest is None or not is_login(scope, headers):
            if scope["method"] in ("POST", "PUT", "PATCH") and not _is_json(headers):
                return error_response(415, "The request body must be application/json.")
            if self.digest is not None and (response := self._authorise(scope, headers)):
                return response
        length = headers.get("content-length", "0")
        if length.isdigit() and int(length) > MAX_BODY_BYTES:
            return error_response(413, BODY_TOO_LARGE, {"connection": "close"})
        return None

    def _too_many_failures(self, scope: Scope) -> Response | None:
        if time.monotonic() - self.failures_since > FAILURE_WINDOW:
            self.failures.clear()
            self.failures_since = time.monotonic()
        if self.failures[_client(scope)] < MAX_FAILURES:
            return None
        wait = {"retry-after": str(FAILURE_WINDOW)}
        return error_response(429, "Too many wrong access tokens; try again later.", wait)

    def _authorise(self, scope: Scope, headers: dict[str, str]) -> Response | None:
        """None for a request with the token in its Authorization header or cookie."""
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            given = _digest(bearer.strip().encode("latin-1").decode("utf-8", "replace"))
        else:
            given = _cookie(headers.get("cookie", ""), _cookie_name(scope))
        if self._is_right(given):
            return None
        self.failures[_client(scope)] += bool(given)
        if wants_page(scope, headers):
            return login_page("This server requires an access token.")
        return error_response(
            401,
            "An access token is required: open the address in a browser, or send the header "
            "Authorization: Bearer TOKEN.",
            {"www-authenticate": "Bearer"},
        )

    def _log_in(self, scope: Scope, token: str) -> Response:
        """Store the digest of the right token in a cookie, and return to the page."""
        assert self.digest is not None
        if not self._is_right(_digest(token)):
            self.failures[_client(scope)] += 1
            return login_page("This is not the access token of this server.")
        redirect = RedirectResponse(scope["path"], status_code=303)
        redirect.set_cookie(
            _cookie_name(scope),
            self.digest,
            path=scope.get("root_path") or "/",
            secure=scope["scheme"] == "https",
            httponly=True,
            samesite="strict",
        )
        return redirect

    def _is_right(self, digest: str) -> bool:
        assert self.digest is not None
        return hmac.compare_digest(digest.encode(), self.digest.encode())


def _client(scope: Scope) -> str:
    return scope["client"][0] if scope["client"] else ""


def _cookie_name(scope: Scope) -> str:
    return f"vhe-{scope['server'][1]}"  # browsers share cookies among ports


def _of_other_site(scope: Scope, headers: dict[str, str]) -> bool:
    """Whether a browser sends a request for a page of another site.

    Pages of other ports of this machine are of the same site. They may read nothing either, but
    their requests must not change anything.
    """
    site = headers.get("sec-fetch-site", "none")
    if scope["method"] in ("GET", "HEAD"):
        return site == "cross-site" and "/api" in scope["path"]
    origin = headers.get("origin")
    other = (
        origin is not None and urlsplit(origin).netloc.lower() != headers.get("host", "").lower()
    )
    return other or site not in ("same-origin", "none")


def _is_json(headers: dict[str, str]) -> bool:
    media_type = headers.get("content-type", "application/json").partition(";")[0]
    return media_type.strip().lower() == "application/json"


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


def _cookie(header: str, name: str) -> str:
    """The value of a cookie that is in the header exactly once, or an empty string."""
    cookies = [cookie.strip().partition("=") for cookie in header.split(";")]
    values = [value for key, _, value in cookies if key == name]
    return values[0] if len(values) == 1 else ""


def _host_name(header: str) -> str:
    """The name in a Host header, without the port."""
    name, colon, port = header.lower().rpartition(":")
    return name if colon and port.isdigit() else header.lower()
