"""Work that takes long, in processes of its own: the map's layout and the ranking of links.

    python -m vhe.web.background layout|ranking MODEL FINGERPRINT SEED

writes arrays to standard output. The server's own process stays small and quick to answer.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from vhe.storage.derived import Arrays, fingerprint
from vhe.web.loading import layout_arrays, load_model

if TYPE_CHECKING:
    from vhe.fitted import FittedModel

Task = Literal["layout", "ranking"]
NICENESS = 10


def compute(task: Task, model: FittedModel, seed: int = 0) -> Arrays:
    """The arrays of a task, computed in this process."""
    if task == "layout":
        from vhe.predict.layout import layout

        return layout_arrays(layout(model.embedding_, seed), seed)
    from vhe.web.ranking import MOST_LINKS

    table = model.suggest_all(MOST_LINKS)
    ends = [model.network_.indices(table[name].tolist()) for name in ("source", "target")]
    return {
        "pairs": np.column_stack(ends).astype(np.int64).reshape(-1, 2),
        "probability": table["probability"].to_numpy(np.float64),
        "duplicate": table["duplicate"].to_numpy(np.int32),
    }


class Background:
    """A task in a process of its own; it ends with the server."""

    def __init__(self, task: Task, folder: Path, model: str, seed: int = 0) -> None:
        arguments = [task, str(folder), model, str(seed)]
        command = [sys.executable, "-m", "vhe.web.background", *arguments]
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )

    def result(self) -> Arrays | None:
        """Wait for the arrays; None if the process was stopped or failed."""
        assert self.process.stdout is not None
        output = self.process.stdout.read()
        if self.process.wait():
            return None
        with np.load(io.BytesIO(output), allow_pickle=False) as found:
            return dict(found)

    def stop(self) -> None:
        with suppress(ProcessLookupError):
            self.process.kill()


def _exit_with_parent() -> None:
    """End this process when the server, which holds the other end of standard input, ends."""
    sys.stdin.buffer.read()
    os._exit(1)


def main(task: Task, folder: str, expected: str, seed: str) -> None:
    import threading

    threading.Thread(target=_exit_with_parent, daemon=True).start()
    with suppress(OSError, AttributeError):
        os.nice(NICENESS)
    buffer = io.BytesIO()
    model = load_model(Path(folder))
    if fingerprint(Path(folder)) != expected:  # the folder was replaced
        os._exit(1)
    np.savez(buffer, allow_pickle=False, **compute(task, model, int(seed)))
    sys.stdout.buffer.write(buffer.getvalue())
    sys.stdout.buffer.flush()
    os._exit(0)  # the thread that waits for standard input does not end


if __name__ == "__main__":
    main(*sys.argv[1:])  # type: ignore[arg-type]
