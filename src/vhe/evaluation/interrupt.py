"""Ctrl-C while a method is measured: never the score of a method that was only half trained."""

from __future__ import annotations

import contextlib
import signal
import socket
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def raise_on_sigint() -> Iterator[None]:
    """Raise `KeyboardInterrupt` at the end if Ctrl-C was pressed inside, whoever took it.

    Training takes Ctrl-C for the wish to stop early and returns what it has. That is right for a
    model that somebody waits for, and wrong for a measurement.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    reader, writer = socket.socketpair()
    with reader, writer:
        reader.setblocking(False)
        writer.setblocking(False)
        # Python writes the number of every signal there, before and beside any handler.
        before = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
        try:
            yield
            with contextlib.suppress(BlockingIOError):  # nothing came
                if signal.SIGINT in reader.recv(4096):
                    raise KeyboardInterrupt
        finally:
            signal.set_wakeup_fd(before)
