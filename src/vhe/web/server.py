"""The HTTP server of the explorer, with time limits per request and per connection."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from vhe.errors import VHEError

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from vhe.web.service import Service

log = logging.getLogger("vhe.web")
LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
REQUEST_TIMEOUT = 30.0  # seconds from the first byte of a request to the last of its response
KEEP_ALIVE_TIMEOUT = 15  # seconds that a connection may be idle between requests
MAX_CONNECTIONS = 1024


class TimeoutProtocol(H11Protocol):
    """HTTP/1.1 that aborts connections whose request or response takes too long."""

    timeout = REQUEST_TIMEOUT
    deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._start_deadline()

    def data_received(self, data: bytes) -> None:
        if self.deadline is None:
            self._start_deadline()
        super().data_received(data)

    def on_response_complete(self) -> None:
        self._cancel_deadline()
        super().on_response_complete()  # handles a pipelined request that has arrived already
        unread, _ = self.conn.trailing_data
        partial = unread or self.conn.their_state is not h11.IDLE
        if self.transport.get_write_buffer_size() or (partial and not self.transport.is_closing()):
            self._start_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_deadline()
        super().connection_lost(exc)

    def _start_deadline(self) -> None:
        self.deadline = self.loop.call_later(self.timeout, self.transport.abort)

    def _cancel_deadline(self) -> None:
        if self.deadline is not None:
            self.deadline.cancel()
            self.deadline = None


def is_loopback(host: str) -> bool:
    """Whether a host name or address is reachable from this machine only."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def bind(host: str, port: int) -> socket.socket:
    """Bind a socket, which refuses connections until it listens."""
    unavailable = f"{host} is not an address of this machine; omit --host to use localhost."
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError:
        raise VHEError(unavailable) from None
    bound = socket.socket(family, kind, protocol)
    try:
        if os.name == "posix":
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError as error:
        bound.close()
        messages = {
            errno.EADDRINUSE: f"port {port} is in use; choose another, e.g. --port {port + 1}.",
            errno.EACCES: f"port {port} requires root privileges; choose one above 1023.",
        }
        raise VHEError(messages.get(error.errno or 0, unavailable)) from None
    return bound


def reload_on_hangup(service: Service) -> None:
    """Read the model folder again on SIGHUP."""

    def reload(*_: object) -> None:
        service.reload().add_done_callback(_log_failure)

    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, reload)


def _log_failure(reloaded: Future[Any]) -> None:
    if error := reloaded.exception():
        log.error("the model is not reloaded: %s", error)


class Server(uvicorn.Server):
    """A server that calls ``on_start`` as soon as it accepts requests."""

    on_start: Callable[[], object] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.on_start is not None:
            self.on_start()


def serve(
    app: ASGIApp, bound: socket.socket, on_start: Callable[[], object], **behind: Any
) -> None:
    """Serve until interrupted; ``behind`` as in `server`."""
    sys.setswitchinterval(1e-4)  # short responses do not wait for the thread of the model
    running = server(app, **behind)
    running.on_start = on_start
    running.run(sockets=[bound])


def server(
    app: ASGIApp,
    protocol: type[H11Protocol] = TimeoutProtocol,
    *,
    root_path: str = "",
    trusted_proxy: str | None = None,
) -> Server:
    """The server.

    Parameters
    ----------
    root_path : path under which a reverse proxy, which removes it, makes the server available
    trusted_proxy : address of the proxy whose X-Forwarded-For and X-Forwarded-Proto are believed
    """
    settings: dict[str, Any] = {
        "root_path": root_path,
        "proxy_headers": trusted_proxy is not None,
        "forwarded_allow_ips": trusted_proxy,
        "http": protocol,
        "ws": "none",
        "lifespan": "off",
        "log_level": "warning",
        "access_log": False,
        "server_header": False,
        "limit_concurrency": MAX_CONNECTIONS,
        "timeout_keep_alive": KEEP_ALIVE_TIMEOUT,
        "timeout_graceful_shutdown": 3,
    }
    return Server(uvicorn.Config(app, **settings))
