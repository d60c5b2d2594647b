"""`vhe serve`: a web application and an HTTP interface for a model."""

import ipaddress
import re
from pathlib import Path
from typing import Annotated

from cyclopts.types import NonNegativeInt

from vhe.cli.options import Help, ModelFolder
from vhe.cli.output import diagnostics_to_stderr, print_status
from vhe.cli.source import check_is_model
from vhe.errors import VHEError


def serve(
    model: ModelFolder,
    /,
    *,
    host: Annotated[str, Help("address to bind")] = "127.0.0.1",
    port: Annotated[int, Help("port to bind; 0: any free port")] = 8765,
    token: Annotated[
        str | None,
        Help("access token, required for other hosts; or set VHE_TOKEN", env_var="VHE_TOKEN"),
    ] = None,
    writable: Annotated[
        bool, Help("allow adding and removing vertices and links; requires an access token")
    ] = False,
    allow_host: Annotated[
        list[str] | None, Help("further host name to answer to, e.g. of a proxy", metavar="NAME")
    ] = None,
    root_path: Annotated[
        str | None,
        Help("path under which a reverse proxy serves it, e.g. /papers", metavar="PATH"),
    ] = None,
    trusted_proxy: Annotated[
        str | None, Help("address of a proxy whose X-Forwarded headers are used", metavar="IP")
    ] = None,
    state: Annotated[
        Path | None,
        Help("file of decisions on suggestions (default: MODEL.decisions.sqlite)", metavar="FILE"),
    ] = None,
    seed: Annotated[
        NonNegativeInt | None, Help("random seed of the map layout (default: of the stored map)")
    ] = None,
) -> None:
    """Explore a model in a browser or over HTTP.

    The page shows the map, suggested links and their word attributions, embeds
    new texts, and saves what you decide on suggestions. The map is computed once,
    in the background, and stored in the model folder. The server binds to
    localhost by default and makes no external requests. Press Ctrl-C to stop it.
    """
    try:
        import fastapi  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise VHEError(f"{error.name} is not installed: pip install 'vhe[web]'") from None

    from vhe.web import server
    from vhe.web.guard import check_token

    if not 0 <= port < 2**16:
        raise VHEError(f"--port {port}: not a port number; choose one from 1024 to 65535")
    if token is not None and not token.strip():
        raise VHEError("the access token is empty; give a random string")
    if token is not None:
        check_token(token)
    if writable and token is None:
        raise VHEError("--writable requires an access token: set one with --token TOKEN")
    if root_path and not re.fullmatch(r"(/[\w.~-]+)+", root_path):
        raise VHEError(f"--root-path {root_path}: not a path; give one such as /papers")
    if trusted_proxy is not None:
        check_address(trusted_proxy)
    loopback = server.is_loopback(host)
    if token is None and not loopback:
        raise VHEError(
            f"--host {host}: reachable from other machines; set an access token with --token TOKEN"
        )
    with server.bind(host, port) as bound, diagnostics_to_stderr(json=False):
        check_is_model(model)
        from vhe.runtime.device import using_threads
        from vhe.web.app import make_app
        from vhe.web.start import start_service

        service = start_service(model, state=state, seed=seed, writable=writable, note=print_status)
        hosts = None
        if loopback or allow_host:
            hosts = server.LOOPBACK | {host.lower(), *map(str.lower, allow_host or ())}
        app = make_app(service, token=token, hosts=hosts)
        shown = f"[{host}]" if ":" in host else host
        asks = "asks for the access token; " if token else ""
        bound.listen()  # requests that arrive before the loop runs wait in the backlog
        print_status(f"http://{shown}:{bound.getsockname()[1]}/  ({asks}Ctrl-C to stop)")
        try:
            with using_threads(1):  # requests are small: more threads would only add overhead
                server.reload_on_hangup(service)
                behind = {"root_path": root_path or "", "trusted_proxy": trusted_proxy}
                server.serve(app, bound, service.start, **behind)  # warm after the first answers
        except KeyboardInterrupt:
            print_status("stopped")
        finally:
            service.close()


def check_address(address: str) -> None:
    """Refuse anything but an IP address; a host name could resolve to another one later."""
    try:
        ipaddress.ip_address(address)
    except ValueError:
        raise VHEError(
            f"--trusted-proxy {address}: not an IP address; give one such as 127.0.0.1"
        ) from None
