"""`vhe serve`: a page to explore a model with, and an interface for programs."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.types import NonNegativeInt

from vhe.cli.output import diagnostics_to_stderr, say
from vhe.cli.source import read_model
from vhe.errors import VHEError


def serve(
    model: Path,
    /,
    *,
    host: str = "127.0.0.1",
    port: int = 8765,
    token: Annotated[str | None, Parameter(env_var="VHE_TOKEN")] = None,
    seed: NonNegativeInt = 0,
) -> None:
    """Explore a model in a browser; programs ask it over HTTP.

    The page shows the map, suggested links and the words behind them, and places
    new texts. It answers this machine only, and asks for nothing elsewhere.
    Ctrl-C ends it.

    Parameters
    ----------
    model
        a model folder that vhe fit wrote
    host
        the address to answer at; 127.0.0.1, this machine alone, when left out
    port
        the port to answer at; 8765 when left out, 0 for any that is free
    token
        a secret that everybody has to know, needed for any other host; VHE_TOKEN
        in the environment says it without showing it
    seed
        where chance starts for the map; 0 when left out
    """
    try:
        import fastapi  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise VHEError(f"{error.name} is missing: pip install 'vhe[serve]'") from None
    from urllib.parse import quote

    from vhe.web import server

    if not 0 <= port < 2**16:
        raise VHEError(f"port {port} does not exist; choose one from 1024 to 65535.")
    if token is not None and not token.strip():
        raise VHEError("the token is empty; give a word that nobody guesses.")
    alone = server.is_loopback(host)
    if token is None and not alone:
        raise VHEError(f"other machines can reach {host}; give --token WORD, which they must know.")
    with server.bind(host, port) as bound, diagnostics_to_stderr(json=False):
        fitted = read_model(model)
        from vhe.runtime.device import using_threads
        from vhe.web.app import make_app
        from vhe.web.atlas import place
        from vhe.web.explorer import Explorer

        explorer = Explorer(fitted, place(fitted, seed))
        explorer.warm_up()
        app = make_app(explorer, token=token, hosts=server.LOOPBACK | {host} if alone else None)
        shown = f"[{host}]" if ":" in host else host
        secret = f"?token={quote(token, safe='')}" if token else ""
        bound.listen()  # who is quick waits a moment
        say(f"http://{shown}:{bound.getsockname()[1]}/{secret}  (Ctrl-C ends it)")
        try:
            with using_threads(1):  # many small questions: a second thread would only wait
                server.serve(app, bound)
        except KeyboardInterrupt:
            say("stopped")
