"""The explorer of a model in memory: in a notebook cell, or in a tab of the browser."""

from __future__ import annotations

import atexit
import copy
import html
import sys
import threading
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

from vhe.errors import VHEError
from vhe.storage.decisions import Decisions

if TYPE_CHECKING:
    from vhe.fitted import FittedModel

HEIGHT = 760  # pixels of the frame in a notebook


class RunningExplorer:
    """An explorer that runs until it is closed or Python ends; a notebook cell shows it.

    Attributes
    ----------
    url : its address, for this machine only
    """

    def __init__(self, model: FittedModel, state: Path | None, port: int, height: int) -> None:
        from vhe.web.app import make_app
        from vhe.web.loading import Loaded
        from vhe.web.server import LOOPBACK, bind, server
        from vhe.web.service import Service, first_snapshot

        bound = bind("127.0.0.1", port)
        bound.listen()  # requests that arrive before the loop runs wait in the backlog
        self.url, self.height = f"http://127.0.0.1:{bound.getsockname()[1]}/", height
        decisions = None if state is None else Decisions(state)
        snapshot = first_snapshot(Loaded(copy.copy(model), "", None, None))
        self._service = Service(snapshot, decisions=decisions)
        self._server = server(make_app(self._service, hosts=LOOPBACK, framed=True))
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [bound]}, daemon=True
        )
        self._thread.start()
        self._service.start()
        atexit.register(self.close)

    def wait(self) -> None:
        """Wait until the explorer is closed, or Ctrl-C closes it."""
        try:
            while self._thread.is_alive():
                self._thread.join(0.5)
        except KeyboardInterrupt:
            self.close()

    def close(self) -> None:
        """Stop the explorer."""
        atexit.unregister(self.close)
        self._server.should_exit = True
        self._thread.join(10)
        self._service.close()

    def __repr__(self) -> str:
        return f"<explorer at {self.url}; close() stops it>"

    def _repr_html_(self) -> str:
        url, style = html.escape(self.url), "width: 100%; border: 1px solid #8884"
        return (
            f'<iframe src="{url}" height="{self.height}" style="{style}"></iframe>'
            f'<p><a href="{url}" target="_blank" rel="noopener">Open in a tab</a></p>'
        )


def explore(
    model: FittedModel,
    *,
    state: str | Path | None = None,
    port: int = 0,
    height: int = HEIGHT,
    block: bool | None = None,
) -> RunningExplorer:
    """Start the explorer; `FittedModel.explore` documents it."""
    try:
        import fastapi  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise VHEError(f"{error.name} is not installed: pip install 'vhe[web]'") from None
    running = RunningExplorer(model, None if state is None else Path(state), port, height)
    if in_notebook():
        return running
    webbrowser.open(running.url)
    interactive = hasattr(sys, "ps1") or bool(sys.flags.interactive)
    if block or (block is None and not interactive):
        print(f"{running.url}  (Ctrl-C to stop)", file=sys.stderr)
        running.wait()
    return running


def in_notebook() -> bool:
    """Whether the result of a cell is shown as HTML."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and hasattr(shell, "kernel")
