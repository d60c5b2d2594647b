"""The explorer as a web application: its page, an interface for programs, and their limits."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import hmac
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.cookies import CookieError, SimpleCookie
from string import Template
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import parse_qs

from fastapi import FastAPI, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vhe import __version__
from vhe.data.checks import counted
from vhe.errors import VHEError
from vhe.web.docs import docs_page
from vhe.web.explorer import Answer, Explorer, UnknownVertexError
from vhe.web.figures import escaped
from vhe.web.report import page_file

if TYPE_CHECKING:
    from collections.abc import Iterable

LARGEST = 2**20  # bytes of a request's body
PASSED_OVER = 2**24  # bytes of a larger one that are read before it is refused
ON_THE_SPOT = 10_000  # vertices up to which suggestions are a matter of milliseconds
FILES = {
    name: {"css": "text/css", "js": "text/javascript"}[name.rpartition(".")[2]]
    for name in (
        *("map.css", "explorer.css", "theme.js", "grid.js", "raster.js", "map.js", "parts.js"),
        "explorer.js",
    )
}
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
WELL_SAID = {
    404: "there is nothing at this address; /docs lists what there is.",
    413: "the body is larger than 1 MB.",
}


class Text(BaseModel):
    """A text that is not in the network."""

    text: str = Field(min_length=1, description="the text; words that are new are passed over")
    k: int = Field(10, ge=1, le=100, description="how many vertices to name")


class Json(Response):
    """JSON in ASCII, so that an id with half a letter in it does no harm."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return json.dumps(content, separators=(",", ":")).encode()


Number = Annotated[int, Path(description="a vertex's number, from 0 on")]


def make_app(
    explorer: Explorer, *, token: str | None = None, hosts: Iterable[str] | None = None
) -> Guard:
    """The application; with a ``token`` it answers only those who know it.

    ``hosts`` are the names by which it may be addressed; anything when left out. Where there is
    no token this keeps other web pages from asking under a name of their own.
    """
    app = FastAPI(
        title="vhe",
        version=__version__,
        description="Vertices go by their number; `/api/vertices?id=` finds the number of an id.",
        docs_url=None,
        redoc_url=None,
    )
    # The neural network has a thread of its own: nobody who asks for suggestions waits for
    # somebody's text, and it is never asked two things at once. What takes a few milliseconds is
    # answered on the spot, because changing threads would take longer.
    thorough = ThreadPoolExecutor(1)
    quick = ThreadPoolExecutor(1) if len(explorer) > ON_THE_SPOT else None

    async def answered(
        pool: ThreadPoolExecutor | None, ask: Callable[..., Answer], *of: Any
    ) -> Json:
        if pool is None:
            return Json(ask(*of))
        return Json(await asyncio.get_running_loop().run_in_executor(pool, ask, *of))

    whole_map = gzip.compress(Json(explorer.map).body, 6)
    about = explorer.about()
    vertices, links = counted(len(explorer), "vertex", "vertices"), counted(about["links"], "link")
    page = Template(page_file("explorer.html")).substitute(
        title=escaped(about["name"]), size=f"{vertices} · {links}"
    )
    files = {name: page_file(name) for name in FILES}

    @app.get("/", include_in_schema=False)
    async def explore() -> HTMLResponse:
        return HTMLResponse(page.encode("utf-8", "replace"))

    @app.get("/page/{name}", include_in_schema=False)
    async def page_part(name: str) -> Response:
        if name not in files:
            raise HTTPException(404)
        return Response(files[name], media_type=FILES[name], headers={"cache-control": "no-cache"})

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return HTMLResponse(docs_page(app.openapi()))

    @app.get("/api", summary="The network and its size")
    async def network() -> Json:
        return Json(about)

    @app.get("/api/map", summary="Every vertex with its place on the map, compressed")
    async def places() -> Response:
        return Response(
            whole_map, media_type="application/json", headers={"content-encoding": "gzip"}
        )

    @app.get("/api/vertices", summary="Find vertices by an id, or by words of ids and texts")
    async def find(
        q: Annotated[str | None, Query(max_length=500, description="words to look for")] = None,
        id: Annotated[str | None, Query(description="an id as it is printed")] = None,
        limit: Annotated[int, Query(ge=0, le=1000, description="vertices to describe")] = 20,
    ) -> Json:
        if (q is None) == (id is None):
            raise VHEError("ask for q=WORDS or for id=ID.")
        if id is not None:
            return await answered(quick, explorer.find, id)
        return await answered(quick, explorer.search, q, limit)

    @app.get("/api/vertices/{number}", summary="A vertex with its text, label and links")
    async def vertex(number: Number) -> Json:
        return await answered(quick, explorer.vertex, number)

    @app.get("/api/vertices/{number}/suggestions", summary="Likely links that are not there")
    async def suggestions(
        number: Number, k: Annotated[int, Query(ge=1, le=1000, description="how many")] = 10
    ) -> Json:
        return await answered(quick, explorer.suggestions, number, k)

    @app.get("/api/pairs/{source}/{target}", summary="How likely a link is, and the words for it")
    async def pair(source: Number, target: Number) -> Json:
        return await answered(thorough, explorer.pair, source, target)

    @app.post("/api/texts", summary="Where a text that is not in the network belongs")
    async def place(text: Text) -> Json:
        return await answered(thorough, explorer.place, text.text, text.k)

    @app.exception_handler(UnknownVertexError)
    async def unknown(request: Request, error: UnknownVertexError) -> Json:
        return refusal(404, str(error))

    @app.exception_handler(VHEError)
    async def mistaken(request: Request, error: VHEError) -> Json:
        return refusal(422, str(error))

    @app.exception_handler(RequestValidationError)
    async def malformed(request: Request, error: RequestValidationError) -> Json:
        return refusal(422, _sentence(error))

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> Json:
        if error.status_code == 400:  # a body that is no text at all
            return refusal(422, "the body is not JSON.")
        said = WELL_SAID.get(error.status_code, f"{str(error.detail).lower()}.")
        return refusal(error.status_code, said, error.headers)

    @app.exception_handler(Exception)
    async def broken(request: Request, error: Exception) -> Json:
        return refusal(500, "this went wrong here; the terminal of vhe serve says more.")

    return Guard(app, token=token, hosts=hosts)


def refusal(status: int, sentence: str, headers: Any = None) -> Json:
    return Json({"error": sentence}, status_code=status, headers=headers)


def _sentence(error: RequestValidationError) -> str:
    """The first thing that is wrong with a request."""
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return f"the body is not JSON: {first['ctx']['error'].lower()}."
    where = " ".join(str(part) for part in first["loc"][1:]) or "the body"
    return f"{where}: {first['msg'].lower()}."


class Guard:
    """What every request passes: its host, its token, its size; and what every answer carries."""

    def __init__(
        self, app: ASGIApp, *, token: str | None = None, hosts: Iterable[str] | None = None
    ) -> None:
        self.app = app
        self.hosts = None if hosts is None else frozenset(hosts)
        # What is compared, and kept as a cookie, is a digest: any token fits into a header.
        self.digest = None if token is None else _digest(token)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return

        async def guarded_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = {name for name, _ in message["headers"]}
                more = [(k.encode(), v.encode()) for k, v in HEADERS.items()]
                message["headers"] = [*message["headers"], *(m for m in more if m[0] not in own)]
            await send(message)

        length = 0

        async def guarded_receive() -> Message:
            nonlocal length
            message = await receive()
            length += len(message.get("body", b""))
            if length > LARGEST:
                await _drain(receive, message)
                raise HTTPException(413, headers={"connection": "close"})
            return message

        headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in scope["headers"]}
        refused = self._refused(scope, headers)
        if refused is not None and refused.status_code == 413:
            await _drain(receive, await receive())
        await (refused or self.app)(scope, guarded_receive, guarded_send)

    def _refused(self, scope: Scope, headers: dict[str, str]) -> Response | None:
        """Why a request is not let through, or None."""
        if self.hosts is not None and _host(headers.get("host", "")) not in self.hosts:
            return refusal(403, "this address is not served; open the one that vhe serve printed.")
        if self.digest is not None:
            asked = parse_qs(scope["query_string"].decode("latin-1")).get("token")
            if asked and hmac.compare_digest(_digest(asked[0]), self.digest):
                welcome = RedirectResponse(scope["path"], status_code=303)
                welcome.set_cookie("vhe", self.digest, httponly=True, samesite="strict")
                return welcome
            if not self._knows(headers):
                return refusal(
                    401,
                    "a token is needed: open /?token=TOKEN, or send Authorization: Bearer TOKEN.",
                    {"www-authenticate": "Bearer"},
                )
        length = headers.get("content-length", "0")
        if length.isdigit() and int(length) > LARGEST:
            return refusal(413, WELL_SAID[413], {"connection": "close"})
        return None

    def _knows(self, headers: dict[str, str]) -> bool:
        """Whether a request brings the token, in its header or as the cookie."""
        assert self.digest is not None
        kind, _, word = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            given = _digest(word.strip().encode("latin-1").decode("utf-8", "replace"))
            return hmac.compare_digest(given, self.digest)
        try:
            kept = SimpleCookie(headers.get("cookie", "")).get("vhe")
        except CookieError:
            return False
        return kept is not None and hmac.compare_digest(kept.value.encode(), self.digest.encode())


async def _drain(receive: Receive, message: Message) -> None:
    """Pass over what comes at once of a body that is too large: who still sends hears no answer."""
    length = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(1):
            while message.get("more_body") and length < PASSED_OVER:
                message = await receive()
                length += len(message.get("body", b""))


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def _host(header: str) -> str:
    """The name in a Host header, without its port."""
    name, colon, port = header.lower().rpartition(":")
    return name if colon and port.isdigit() else header.lower()
