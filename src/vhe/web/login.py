"""The page that asks a browser for the access token; the token is never part of an address."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from starlette.responses import HTMLResponse, Response

if TYPE_CHECKING:
    from starlette.types import Receive, Scope

FORM = "application/x-www-form-urlencoded"
MAX_FORM_BYTES = 2**14
POLICY = "default-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark"><title>Access token · vhe</title></head>
<body><main><h1>Access token</h1>
<p>{message}</p>
<form method="post"><label>Access token
<input type="password" name="token" autocomplete="current-password" required autofocus></label>
<button>Continue</button></form></main></body>
</html>
"""


def wants_page(scope: Scope, headers: dict[str, str]) -> bool:
    """Whether a browser requests a page, not an answer of the API."""
    return scope["method"] == "GET" and "text/html" in headers.get("accept", "")


def is_login(scope: Scope, headers: dict[str, str]) -> bool:
    """Whether a request is the form of the page."""
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    return scope["method"] == "POST" and media_type == FORM


def login_page(message: str) -> Response:
    # without a referrer, browsers send the origin "null" with a form
    headers = {"content-security-policy": POLICY, "referrer-policy": "same-origin"}
    return HTMLResponse(PAGE.format(message=message), status_code=401, headers=headers)


async def submitted_token(receive: Receive) -> str:
    """The token of a form; empty if there is none, or if the body is too large."""
    body, more = b"", True
    while more and len(body) <= MAX_FORM_BYTES:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    if len(body) > MAX_FORM_BYTES:
        return ""
    return parse_qs(body.decode("latin-1")).get("token", [""])[0]
