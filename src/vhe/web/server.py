"""A server for the explorer: its address is checked before anything long, slow clients are cut."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import os
import socket
import sys
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from vhe.errors import VHEError
from vhe.web.app import Guard

LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
SECONDS = 30.0  # that a request may take, from its first byte to the last one of its answer
SECONDS_IDLE = 15  # that a connection may wait for its next request
CONNECTIONS = 1024  # at a time


class TimeoutProtocol(H11Protocol):
    """HTTP that cuts a client who takes too long to ask, or to read the answer."""

    seconds = SECONDS
    deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_request()

    def data_received(self, data: bytes) -> None:
        if self.deadline is None:
            self._await_request()
        super().data_received(data)

    def on_response_complete(self) -> None:
        self._let_be()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._let_be()
        super().connection_lost(exc)

    def _await_request(self) -> None:
        self.deadline = self.loop.call_later(self.seconds, self.transport.abort)

    def _let_be(self) -> None:
        if self.deadline is not None:
            self.deadline.cancel()
            self.deadline = None


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a host's address."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def bind(host: str, port: int) -> socket.socket:
    """A socket at an address, which is ours from now on; nobody can connect before it listens."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError:
        raise VHEError(f"{host} is no address of this machine; leave --host out.") from None
    bound = socket.socket(family, kind, protocol)
    try:
        if os.name == "posix":
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError as error:
        bound.close()
        if error.errno == errno.EADDRINUSE:
            raise VHEError(f"port {port} is taken; choose another, as --port {port + 1}.") from None
        if error.errno == errno.EACCES:
            raise VHEError(f"port {port} is not allowed; choose one above 1023.") from None
        raise VHEError(f"{host} is no address of this machine; leave --host out.") from None
    return bound


def serve(app: Guard, bound: socket.socket, protocol: type[H11Protocol] = TimeoutProtocol) -> None:
    """Answer until Ctrl-C."""
    sys.setswitchinterval(1e-4)  # an answer that is ready does not wait long for torch's thread
    server(app, protocol).run(sockets=[bound])


def server(app: Guard, protocol: type[H11Protocol] = TimeoutProtocol) -> uvicorn.Server:
    settings: dict[str, Any] = {
        "http": protocol,
        "ws": "none",
        "lifespan": "off",
        "log_level": "warning",
        "access_log": False,
        "server_header": False,
        "limit_concurrency": CONNECTIONS,
        "timeout_keep_alive": SECONDS_IDLE,
        "timeout_graceful_shutdown": 3,
    }
    return uvicorn.Server(uvicorn.Config(app, **settings))
